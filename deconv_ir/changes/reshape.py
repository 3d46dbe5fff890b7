"""Other input shapes: all shapes of a network computed again, and declared.

As in OpenVINO's ``Model.reshape``, shapes that constants state stay: a network whose layers do not
fit them is refused, and the error names the constant.  An exception is the first element of a
constant shape of a Reshape that keeps axis 0: it follows that axis, so that a batch of 1 can be
changed.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from deconv_ir.errors import DeconvError, ShapeError, UnsupportedError
from deconv_ir.findings import Finding, Severity
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.hints import Hint, both
from deconv_ir.ir.body import Body
from deconv_ir.ir.dtypes import I64
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.graph import Graph, Info, Layer, Port, constant_layers, locating
from deconv_ir.ir.infer import Inference, Outputs, declared, infer, infer_layer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shape_trace import shape_trace
from deconv_ir.ir.shapes import Shape, declared_form, format_shape
from deconv_ir.ops.constants.parameter import Parameter
from deconv_ir.ops.shape.reshape import Reshape

from .editor import Editor, with_operation

RULE: Final = "reshape-constant"
_CODES: Final = {"i64": "q", "i32": "i"}


class Reshaped(NamedTuple):
    """A network with other shapes.

    Attributes
    ----------
    graph : Graph
    weights : Weights or None
        Those of the network, with changed constants appended.
    findings : tuple of Finding
        The constants that were changed.
    """

    graph: Graph
    weights: Weights | None
    findings: tuple[Finding, ...]


def reshape(graph: Graph, context: Context, given: Mapping[int, TensorInfo]) -> Reshaped:
    """Return a network whose Parameters have the infos `given`, by index.

    Raises
    ------
    ShapeError
        A layer does not fit; the hint names the constants that fix its shapes.
    UnsupportedError
        A layer of an unknown type has other inputs.
    """
    job = _Reshaping(graph, context)
    known = job.infer(given)
    changed = [job.layer(index, known) for index in range(len(graph.layers))]
    return job.with_patterns(graph.replace(layers=tuple(changed)))


class _Reshaping:
    """The shapes of one graph, before and after."""

    def __init__(self, graph: Graph, context: Context) -> None:
        self.graph = graph
        self.context = context
        self.before = infer(graph, context, collect=True).outputs
        self.constant = constant_layers(graph, graph.topology.order)
        self.patterns: dict[int, tuple[int, ...]] = {}
        """Index of a Reshape -> its new constant shape."""

    def infer(self, given: Mapping[int, TensorInfo]) -> list[Outputs]:
        """Infer all layers in order; a Reshape that keeps axis 0 follows it."""
        known: list[Outputs] = [()] * len(self.graph.layers)
        for index in self.graph.topology.order:
            if index in given:
                known[index] = (given[index],)
                continue
            layer = self.graph.layers[index]
            inputs = self.inputs(index, known)
            if not layer.operation.implemented:
                if inputs != self.inputs(index, self.before):
                    raise self._error(index, known, UnsupportedError("its shapes are not known"))
                known[index] = tuple(map(declared, layer.outputs))
                continue
            pattern = self._pattern(index, inputs)
            if pattern is not None:
                self.patterns[index] = pattern
                inputs[1] = inputs[1]._replace(value=pattern)
            try:
                known[index] = infer_layer(layer, inputs, self.context)
            except DeconvError as error:
                raise self._error(index, known, error) from None
        return known

    def inputs(self, index: int, known: Sequence[Outputs]) -> list[TensorInfo]:
        """Return the infos of a layer's inputs."""
        sources = self.graph.topology.sources[index]
        return [known[s[0]][s[1]] for s in sources if s is not None]

    def _pattern(self, index: int, inputs: Sequence[TensorInfo]) -> tuple[int, ...] | None:
        """Return another constant shape of a Reshape whose data changes in axis 0 alone.

        If axis 0 of the output has the same extent as that of the data, the Reshape treats each
        index of the axis separately, and does so for any extent.
        """
        operation = self.graph.layers[index].operation
        if not isinstance(operation, Reshape):
            return None
        source = self.graph.topology.sources[index][1]
        target, (data, _) = inputs[1].value, self.inputs(index, self.before)
        old, new, result = data.shape, inputs[0].shape, self.before[index][0].shape
        if source is None or source[0] not in self.constant or not (old and new and result):
            return None
        if old[0] == new[0] or old[1:] != new[1:] or old[0] != result[0] or not target:
            return None
        whole = [d for d in target if isinstance(d, int)]
        rest = [d for d in result[1:] if isinstance(d, int)]
        if target[0] != old[0] or len(whole) < len(target) or len(rest) < len(result) - 1:
            return None  # it follows the axis already, or the extents are not known
        if operation.special_zero and whole[0] != 0:
            return (0, *whole[1:])
        return (-1, *rest) if math.prod(rest) else None

    def _error(self, index: int, known: Sequence[Outputs], error: DeconvError) -> DeconvError:
        """Name the constants at which a layer fails, and the shapes on the way to it."""
        layer = self.graph.layers[index]
        error.locate(file=self.graph.file, line=layer.line, layer=layer.label)
        fixed = [
            f"{self.graph.layers[s[0]].name!r} {_described(known[s[0]][s[1]])}"
            for s in self.graph.topology.sources[index]
            if s is not None and s[0] in self.constant
        ]
        hint = error.hint
        if fixed:
            found = Hint.CONSTANTS_FIX if len(fixed) > 1 else Hint.CONSTANT_FIXES
            hint = both(hint, found(", ".join(fixed)))
        outputs = tuple(k or b for k, b in zip(known, self.before, strict=True))
        error.hint = both(hint, shape_trace(self.graph, Inference(outputs, ()), index))
        return error

    def layer(self, index: int, known: Sequence[Outputs]) -> Layer:
        """Return a layer that declares the new shapes."""
        layer = self.graph.layers[index]
        inputs = self.inputs(index, known)
        layer = layer._replace(
            inputs=tuple(map(_declare, layer.inputs, inputs)),
            outputs=(
                *map(_declare, layer.outputs, known[index]),
                *layer.outputs[len(known[index]) :],
            ),
        )
        if isinstance(layer.operation, Parameter) and known[index][0].shape is not None:
            return with_operation(layer, layer.operation.replace(shape=known[index][0].shape))
        return self._with_bodies(layer, inputs) if layer.operation.bodies else layer

    def _with_bodies(self, layer: Layer, inputs: Sequence[TensorInfo]) -> Layer:
        """Reshape the bodies of a layer, and their elements, which are written as they were."""
        operation, extras = layer.operation, layer.extras
        with locating(self.graph, layer):
            parameters = operation.infer_parameters(inputs, self.context)
        for body, given in zip(operation.bodies, parameters, strict=True):
            inner = _Reshaping(body.graph, self.context)
            known = inner.infer(given)
            if inner.patterns:
                raise ShapeError(
                    f"the {body.name} fixes shapes: constant shapes of Reshape in it state a batch",
                    file=self.graph.file,
                    line=layer.line,
                    layer=layer.label,
                    rule="reshape",
                )
            layers = tuple(inner.layer(i, known) for i in range(len(body.graph.layers)))
            changed: Body = body.replace(graph=body.graph.replace(layers=layers))
            operation = operation.replace(**{body.name: changed})
            extras = tuple(
                redeclare_body(info, layers) if info.tag == body.name else info for info in extras
            )
        return layer._replace(operation=operation, extras=extras)

    def with_patterns(self, graph: Graph) -> Reshaped:
        """Put the new constant shapes of Reshapes into a graph."""
        editor = Editor(graph, self.context.weights)
        findings = []
        for index, pattern in self.patterns.items():
            source = graph.topology.sources[index][1]
            assert source is not None, "a Reshape with a shape"
            info = self.before[source[0]][source[1]]
            _replace_input(editor, graph, index, 1, pattern, info)
            layer = graph.layers[index]
            old, new = format_shape(info.value), format_shape(pattern)
            findings.append(
                Finding(
                    f"the constant shape {old} is now {new}: axis 0 is that of the data",
                    file=graph.file,
                    line=layer.line,
                    layer=layer.label,
                    expected=new,
                    actual=old,
                    rule=RULE,
                    severity=Severity.INFO,
                )
            )
        return Reshaped(editor.graph(), editor.weights, tuple(findings))


def _replace_input(
    editor: Editor, graph: Graph, index: int, port: int, elements: Sequence[int], info: TensorInfo
) -> None:
    """Replace an input that is a constant list of integers."""
    element_type = info.element_type
    assert element_type is not None, "it has elements"
    code = _CODES.get(element_type.name)
    if code is None:
        element_type, code = I64, "q"
    constant = editor.store(
        struct.pack(f"<{len(elements)}{code}", *elements), element_type, (len(elements),)
    )
    layer, source = graph.layers[index], graph.topology.sources[index][port]
    assert source is not None, "the input is connected"
    producer = graph.layers[source[0]]
    made = editor.add(f"{layer.name}/shape", constant, (), constant.shape, element_type)
    editor.move([editor.edge_into(layer, layer.inputs[port])], made)
    editor.drop_unused(producer.id)


def _declare(port: Port, info: TensorInfo) -> Port:
    """Return a port that declares a shape; ranges of dims are written as dynamic dims."""
    if info.shape is None:
        return port._replace(shape=None)
    return port._replace(shape=tuple(d if isinstance(d, int) else UNKNOWN for d in info.shape))


def _described(info: TensorInfo) -> str:
    return format_shape(info.value) if info.value is not None else str(info)


def redeclare_body(body: Info, layers: Sequence[Layer]) -> Info:
    """Write shapes, Parameters and constants of layers into the element of their body."""
    found = {str(layer.id): layer for layer in layers}

    def section(info: Info, ports: Sequence[Port]) -> Info:
        shapes = {str(port.id): port.shape for port in ports}
        ids = [dict(port.attributes).get("id", "") for port in info.children]
        written = zip(ids, info.children, strict=True)
        return info._replace(children=tuple(_with_dims(p, shapes.get(own)) for own, p in written))

    def layer(info: Info) -> Info:
        changed = found.get(dict(info.attributes).get("id", "").strip())
        if changed is None:
            return info
        children = []
        for child in info.children:
            if child.tag == "input":
                child = section(child, changed.inputs)
            elif child.tag == "output":
                child = section(child, changed.outputs)
            elif child.tag == "data" and changed.type in ("Parameter", "Const"):
                child = child._replace(attributes=changed.attributes)
            else:
                inner = [b for b in changed.operation.bodies if b.name == child.tag]
                child = redeclare_body(child, inner[0].graph.layers) if inner else child
            children.append(child)
        return info._replace(children=tuple(children))

    def walk(info: Info) -> Info:
        if info.tag == "layers":
            return info._replace(children=tuple(map(layer, info.children)))
        return info._replace(children=tuple(map(walk, info.children)))

    return walk(body)


def _with_dims(port: Info, shape: Shape) -> Info:
    others = tuple(child for child in port.children if child.tag != "dim")
    dims = tuple(Info("dim", text=text) for text in declared_form(shape))
    return port._replace(children=(*dims, *others))
