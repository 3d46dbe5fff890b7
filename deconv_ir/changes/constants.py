"""Other arrays in place of constants of a network, those in bodies too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from deconv_ir.errors import DeconvError, InputError, IRError
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Graph, Layer, needed_layers
from deconv_ir.ir.operation import ConstantSource
from deconv_ir.ir.shapes import static
from deconv_ir.ops.constants.constant import Const
from deconv_ir.suggestions import nearest

from .editor import Editor, with_operation
from .reshape import redeclare_body

if TYPE_CHECKING:
    from deconv_ir.arrays.casting import Cast


class _Place(NamedTuple):
    """A layer, with its index in its graph, and the way to that.

    `path` has the index of a layer and of one of its bodies for each body on the way, `prefix`
    their names: ``LAYER/BODY/``.
    """

    path: tuple[tuple[int, int], ...]
    prefix: str
    at: int
    layer: Layer


def replace_constants(
    graph: Graph, weights: ConstantSource | None, given: Mapping[str, Any], cast: Cast
) -> tuple[Graph, Weights | None]:
    """Return the network with other constants, by name, and its weights.

    Names are those of layers or tensors, or layer ids; with ``LAYER/BODY/`` before them in bodies.

    Raises
    ------
    IRError
        A name is unknown, not unique, or that of another layer.
    InputError
        An array differs in shape or element type, or a constant is given twice.
    """
    editor = Editor(graph, weights)
    changed = graph
    taken: dict[tuple[Any, int], str] = {}
    for name, array in given.items():
        place = _find(graph, name)
        key = (place.path, place.at)
        try:
            constant = _stored(editor, place, name, array, cast)
        except DeconvError as error:
            error.locate(file=graph.file, line=place.layer.line, layer=place.layer.label)
            raise
        if taken.setdefault(key, name) != name:
            message = f"a constant is given under two of its names, {taken[key]!r} and {name!r}"
            raise InputError(message, file=graph.file, layer=place.layer.label)
        changed = _replace(changed, place.path, place.at, constant)
    editor.layers = list(changed.layers)
    return editor.graph(), editor.weights


def _stored(editor: Editor, place: _Place, name: str, given: Any, cast: Cast) -> Const:
    """Check an array, and append its bytes to the weights."""
    from deconv_ir.arrays.fitting import fit
    from deconv_ir.ops.constants.packing import pack

    constant = place.layer.operation
    assert isinstance(constant, Const), "it was found"
    constant.check()
    element_type, shape = constant.element_type, constant.shape
    assert element_type is not None, "it was checked"
    array = fit(given, name, shape, element_type, cast=cast, what="constant")
    try:
        data = pack(array, element_type)
    except InputError as error:
        error.message = f"constant {name!r}: {error.message}"
        raise
    return editor.store(data, element_type, static(shape))


def _replace(graph: Graph, path: tuple[tuple[int, int], ...], index: int, constant: Const) -> Graph:
    """Return a graph with another constant in it, or in a body."""
    layers = list(graph.layers)
    if not path:
        layers[index] = with_operation(layers[index], constant)
        return graph.replace(layers=tuple(layers))
    (own, number), *rest = path
    layer = layers[own]
    body = layer.operation.bodies[number]
    inner = _replace(body.graph, tuple(rest), index, constant)
    operation = layer.operation.replace(**{body.name: body.replace(graph=inner)})
    extras = tuple(
        redeclare_body(info, inner.layers) if info.tag == body.name else info
        for info in layer.extras
    )
    layers[own] = layer._replace(operation=operation, extras=extras)
    return graph.replace(layers=tuple(layers))


def _walk(
    graph: Graph, path: tuple[tuple[int, int], ...] = (), prefix: str = ""
) -> Iterator[_Place]:
    """Iterate over all layers, those of bodies after those around them."""
    for index, layer in enumerate(graph.layers):
        yield _Place(path, prefix, index, layer)
    for index, layer in enumerate(graph.layers):
        for number, body in enumerate(layer.operation.bodies):
            around = f"{prefix}{layer.name}/{body.name}/"
            yield from _walk(body.graph, (*path, (index, number)), around)


def _find(graph: Graph, name: str) -> _Place:
    """Find a constant by tensor name, layer name or layer id, in this order."""
    if not isinstance(name, str):
        raise InputError(f"constants are named by strings, found {name!r}", file=graph.file)
    by_tensor: list[_Place] = []
    by_name: list[_Place] = []
    by_id: list[_Place] = []
    inside: str | None = None
    known: list[str] = []
    for place in _walk(graph):
        layer = place.layer
        tensors = [n for port in layer.outputs for n in port.names]
        if layer.type == "Const":
            known += [place.prefix + n for n in dict.fromkeys((layer.name, *tensors))]
            if place.path and inside is None and name in (layer.name, *tensors):
                inside = place.prefix + name
        if not name.startswith(place.prefix) or layer.type == "Result":
            continue
        rest = name[len(place.prefix) :]
        if rest in tensors:
            by_tensor.append(place)
        elif rest == layer.name:
            by_name.append(place)
        elif rest == str(layer.id):
            by_id.append(place)
    found = by_tensor or by_name or by_id
    if not found:
        hint = Hint.NAMED_IN_BODY(inside) if inside else nearest(name, known)
        raise IRError(f"there is no constant {name!r}", file=graph.file, actual=name, hint=hint)
    if len(found) > 1:
        options = ", ".join(f"{p.prefix}{p.layer.id}" for p in found)
        message = f"{len(found)} layers have the name {name!r}"
        raise IRError(message, file=graph.file, hint=Hint.LAYER_ID_IS(options))
    (place,) = found
    if not isinstance(place.layer.operation, Const):
        raise _not_a_constant(graph, place, name)
    return place


def _not_a_constant(graph: Graph, place: _Place, name: str) -> DeconvError:
    """Return the error for another layer; the hint names the only constant that it depends on."""
    inner = graph
    for index, number in place.path:
        inner = inner.layers[index].operation.bodies[number].graph
    needed = [inner.layers[i] for i in _before(inner, place.at)]
    constants = [layer for layer in needed if layer.type == "Const"]
    computed = all(layer.type not in ("Parameter", "ReadValue") for layer in needed)
    hint = None
    if computed and len(constants) == 1:
        hint = Hint.COMPUTED_FROM(place.prefix + constants[0].name)
    return IRError(
        f"{name!r} is not a constant",
        file=graph.file,
        line=place.layer.line,
        layer=place.layer.label,
        expected="Const",
        actual=place.layer.type,
        hint=hint,
    )


def _before(graph: Graph, index: int) -> tuple[int, ...]:
    return needed_layers(graph, [(index, 0)])
