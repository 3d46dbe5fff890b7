"""Layers in the same place of blocks that repeat, and the one among them with another number.

The place of a layer is the types, versions and ranks of the layers around it, up to `RADIUS` edges
away, and the attributes and axes of its neighbours: two rounds of Weisfeiler and Leman's colour
refinement, in time linear in the edges.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.shapes import is_static
from deconv_ir.linter.context import SINKS
from deconv_ir.ops.base import AttributeSpec, attributes_of

if TYPE_CHECKING:
    from deconv_ir.ir.graph import Layer
    from deconv_ir.ir.infer import Outputs
    from deconv_ir.ir.operation import TensorInfo
    from deconv_ir.linter.context import LintContext

LEAST: Final = 3
"""Siblings that must agree."""
LEAST_MEASURED: Final = 5
"""Siblings that must agree on a number that is measured, such as an epsilon, or on a list."""
MAX_CHANGED: Final = 4
"""Steps behind a layer within which shapes may differ."""
OF_AXES: Final = frozenset({"axes", "axis", "input_order", "axes_mapping", "reversed_axes"})
"""Inputs that name axes."""
WITH_RANGES: Final = frozenset({"FakeQuantize", "FakeConvert"})
"""Types whose constants are measured for each layer."""
RADIUS: Final = 2
MOST_ELEMENTS: Final = 8
"""Elements of a constant of integers that belong to a place, such as axes."""
OF_SHAPES: Final = frozenset(
    {"auto_broadcast", "auto_pad", "ceil_mode", "keep_dims", "rounding_type", "special_zero"}
)
"""Attributes that only decide shapes: if the shapes agree, so do the results."""
OF_DESIGN: Final = frozenset({"direction", "global_seed", "op_seed"})
"""Attributes that differ between layers of one network by design."""

_Numbers = Mapping[int, int]
"""Numbers of places, by layer."""


class Key(NamedTuple):
    """An attribute of an operation, or an input that is a small constant."""

    name: str
    attribute: AttributeSpec | None = None
    port: int = 0
    """Of the input."""

    def shown(self, value: Any) -> str:
        """Return a value as a text."""
        if self.attribute is not None:
            return self.attribute.kind.format(value)
        return ",".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}"

    def location(self, layer: int) -> GraphLocation:
        """Return the place of the value in a layer."""
        if self.attribute is None:
            return GraphLocation(layer=layer, side="input", port=self.port)
        return GraphLocation(layer=layer, attribute=self.name)


def odd_ones(context: LintContext) -> Iterator[Finding]:
    """Report layers whose siblings all have another value in one place, which fits here too."""
    places = Places(context)
    layers = [i for type_name in context.uneven_types for i, _ in context.valid_layers(type_name)]
    for members in places.uneven_groups(layers):
        yield from _odd_one(context, members, places)


def _odd_one(context: LintContext, members: list[int], places: Places) -> Iterator[Finding]:
    """Report the member of a group that differs from all others in one place."""
    differing = []
    for key in _keys(context, members[0]):
        values: dict[object, list[int]] = {}
        for index in members:
            values.setdefault(_value(context, index, key), []).append(index)
        if len(values) > 1:
            differing.append((key, values))
    singular = [
        (key, sorted(values.items(), key=lambda item: len(item[1])))
        for key, values in differing
        if len(values) == 2 and min(map(len, values.values())) == 1
    ]
    for key, ((own, odd), (value, siblings)) in singular:
        alone = [k for k, ((_, others), _) in singular if others == odd] == [key]
        spec = key.attribute
        if not alone or value is None or own is None:
            continue
        if spec is not None and spec.name in OF_SHAPES | OF_DESIGN:
            continue
        is_measured = isinstance(value, float | tuple)
        least = LEAST_MEASURED if is_measured else LEAST
        if len(siblings) < least or (is_measured and len(differing) > 1):
            continue
        if _fits(context, odd[0], key, (own, value), places):
            shown, theirs = key.shown(own), key.shown(value)
            layer, like = (context.graph.layers[i] for i in (odd[0], siblings[0]))
            yield Finding(
                f"{key.name} is {shown}, but {theirs} in the {len(siblings)} other "
                f"layers of type {layer.type} in the same place of repeated blocks, such as "
                f"{like.name!r} in line {like.line}",
                key.location(odd[0]),
                expected=theirs,
                actual=shown,
            )


def _keys(context: LintContext, index: int) -> Iterator[Key]:
    """Iterate over the places in which a layer may differ from its siblings."""
    operation = context.graph.layers[index].operation
    for spec in attributes_of(type(operation)):
        yield Key(spec.name, spec)
    if operation.type in WITH_RANGES:
        return
    for port in range(len(context.inputs(index))):
        name = operation.inputs[port] if port < len(operation.inputs) else f"input {port}"
        yield Key(name, port=port)


def _value(context: LintContext, index: int, key: Key) -> object:
    """Return an attribute, or the elements of a constant: axes, or one real number."""
    if key.attribute is not None:
        return getattr(context.graph.layers[index].operation, key.attribute.field)
    sources = context.topology.sources[index]
    source = sources[key.port] if key.port < len(sources) else None
    if source is None or context.graph.layers[source[0]].type != "Const":
        return None
    info = context.outputs(source[0])[source[1]]
    if key.name in OF_AXES:
        return info.value
    return None if info.reals is None or len(info.reals) != 1 else info.reals[0]


def _fits(
    context: LintContext, index: int, key: Key, values: tuple[object, Any], places: Places
) -> bool:
    """Whether the network has the same shapes with the other value in one place of a layer."""
    own, value = values
    layer, inputs = context.graph.layers[index], context.inputs(index)
    rank = len(inputs[0].shape or ())
    if key.attribute is None:
        if isinstance(value, float):
            return True  # no shape depends on it
        if rank and isinstance(own, tuple) and [n % rank for n in own] == [n % rank for n in value]:
            return False
        inputs[key.port] = inputs[key.port]._replace(value=value)
        return _has_same_shapes(context, index, layer, inputs, places)
    field = key.attribute.field
    if field == "axis" and isinstance(own, int) and rank and own % rank == value % rank:
        return False  # the same axis, counted from the other end
    if isinstance(value, tuple) and not all(is_static(i.shape) for i in context.outputs(index)):
        return False  # any strides fit unknown dims
    changed = layer._replace(operation=layer.operation.replace(**{field: value}))
    return _has_same_shapes(context, index, changed, inputs, places)


def _has_same_shapes(
    context: LintContext, index: int, layer: Layer, inputs: Sequence[TensorInfo], places: Places
) -> bool:
    """Whether other attributes or inputs of a layer change no shape, or only some behind it.

    The layers behind it must fit, and a few steps further on the shapes must be the same.
    """
    changed: dict[int, Outputs] = {}
    at = [(index, layer, inputs)]
    for _ in range(MAX_CHANGED):
        try:
            changed |= {i: infer_layer(x, x_in, context.inference_context) for i, x, x_in in at}
        except DeconvError:
            return False
        fresh = [i for i, *_ in at if _differ(changed[i], context.outputs(i))]
        users = sorted({user for i in fresh for user, *_ in places.users[i]} - changed.keys())
        if not fresh:
            return True
        if not users or any(context.graph.layers[user].type in SINKS for user in users):
            return False
        at = []
        for user in users:
            given = [
                changed[source[0]][source[1]] if source and source[0] in changed else info
                for source, info in zip(
                    context.topology.sources[user], context.inputs(user), strict=True
                )
            ]
            at.append((user, context.graph.layers[user], given))
    return False


def _differ(outputs: Sequence[TensorInfo], others: Sequence[TensorInfo]) -> bool:
    """Whether shapes or types of outputs differ."""
    return [(a.shape, a.element_type) for a in outputs] != [
        (b.shape, b.element_type) for b in others
    ]


class Places:
    """Numbers for the places of layers; equal ones for equal places.

    Attributes
    ----------
    users : list of list
        For each layer, the layers that use it, with their port and its own.
    """

    def __init__(self, context: LintContext) -> None:
        self.context = context
        self.layers = context.graph.layers
        self.sources = context.topology.sources
        self.users: list[list[tuple[int, int, int]]] = [[] for _ in self.layers]
        for index, sources in enumerate(self.sources):
            for port, source in enumerate(sources):
                if source is not None:
                    # The inputs of a Concat are alike.
                    at = 0 if self.layers[index].type == "Concat" else port
                    self.users[source[0]].append((index, at, source[1]))
        self.numbers: dict[Hashable, int] = {}
        self.own: _Numbers = {
            i: self._number(_look(context, i, layer)) for i, layer in enumerate(self.layers)
        }

    def _number(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def of_layers(self) -> _Numbers:
        """Return the number of each layer's place."""
        layers = range(len(self.layers))
        around = self.own
        for _ in range(RADIUS):
            around = self._refined(layers, around, around)
        return self._with_attributes(layers, around)

    def uneven_groups(self, layers: Sequence[int]) -> list[list[int]]:
        """Return those in equal places, in groups that may have an odd one.

        The last rounds leave out layers whose group is too small or even: so are its parts.
        """
        around = self.own
        for _ in range(RADIUS - 1):
            around = self._refined(range(len(self.layers)), around, around)
        layers = [index for members in self._uneven(layers, around) for index in members]
        around = self._refined(layers, around, around)
        layers = [index for members in self._uneven(layers, around) for index in members]
        return self._uneven(layers, self._with_attributes(layers, around))

    def _with_attributes(self, layers: Sequence[int], around: _Numbers) -> _Numbers:
        """Refine numbers of layers by the attributes of those around them."""
        near = {source[0] for index in layers for source in self.sources[index] if source}
        near.update(user for index in layers for user, *_ in self.users[index])
        attributes = {
            index: self._number(
                (self.own[index], _contents(self.context, index, self.layers[index]))
            )
            for index in near
        }
        return self._refined(layers, around, attributes)

    def _uneven(self, layers: Sequence[int], numbers: _Numbers) -> list[list[int]]:
        """Return the layers with equal numbers that do not all have the same attributes."""
        groups: dict[int, list[int]] = {}
        for index in layers:
            groups.setdefault(numbers[index], []).append(index)
        return [g for g in groups.values() if len(g) > LEAST and self.context.are_uneven(g)]

    def _refined(
        self, layers: Iterable[int], own: _Numbers, neighbours: _Numbers
    ) -> dict[int, int]:
        """Return numbers for layers and those around them."""
        number, sources, users = self._number, self.sources, self.users
        return {
            index: number(
                (
                    own[index],
                    tuple([s and (neighbours[s[0]], s[1]) for s in sources[index]]),
                    tuple(sorted([(neighbours[i], port, out) for i, port, out in users[index]])),
                )
            )
            for index in layers
        }


def _contents(context: LintContext, index: int, layer: Layer) -> Hashable:
    """Return the attributes and axes that belong to the place of a layer's neighbours."""
    if layer.type == "Const" or layer.operation.bodies:
        return None  # its own: the place of its bytes, or its bodies
    return layer.operation, _integers(context, index, of_axes=True)


def _look(context: LintContext, index: int, layer: Layer) -> Hashable:
    """Return what a layer has in common with its siblings, apart from its neighbours."""
    return (
        layer.type,
        layer.version,
        tuple(None if info.shape is None else len(info.shape) for info in context.outputs(index)),
        _integers(context, index, of_axes=False),
    )


def _integers(context: LintContext, index: int, *, of_axes: bool) -> Hashable:
    """Return the elements of small constants of integers: of axes, or of all other inputs."""
    operation = context.graph.layers[index].operation
    found = []
    for port, source in enumerate(context.topology.sources[index]):
        if source is None or context.graph.layers[source[0]].type != "Const":
            continue
        name = operation.inputs[port] if port < len(operation.inputs) else ""
        value = context.outputs(source[0])[source[1]].value
        if (name in OF_AXES) is of_axes and value and len(value) <= MOST_ELEMENTS:
            found.append((port, value))
    return tuple(found)
