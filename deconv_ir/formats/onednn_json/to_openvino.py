"""Conversion of a oneDNN Graph to an OpenVINO IR: every operation as layers of opsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError, UnsupportedError
from deconv_ir.formats.exchange import Lowered
from deconv_ir.formats.onednn_json.missing import Missing
from deconv_ir.ir.dtypes import F32
from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.graph import Edge, Graph, Layer, Port, Source
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.base import format_attributes
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.convolution.onednn import DataFormat, OneDNNDeconvolution
from deconv_ir.ops.elementwise.unary import RoundMode
from deconv_ir.ops.onednn.decomposition import Composite, Decomposition, Literal, Ref
from deconv_ir.ops.onednn.quantization import (
    Dequantize,
    DynamicDequantize,
    DynamicQuantize,
    QuantizationType,
    Quantize,
)
from deconv_ir.ops.onednn.weights_gradient import WeightsGradient
from deconv_ir.ops.shape.pad import PadValues

if TYPE_CHECKING:
    from deconv_ir.ops.onednn.quantization import Quantization

_ALIGNED = 8


def lower(graph: Graph) -> Lowered:
    """Express a graph in layers of OpenVINO opsets.

    Raises
    ------
    UnsupportedError
        An operation has no counterpart; all such operations are named.
    DeconvError
        The inputs of an operation do not fit it.
    """
    context = Context()
    inference = infer(graph, context)
    writer = _IRWriter()
    missing = Missing("the graph cannot be written as an OpenVINO IR")
    sources = graph.topology.sources
    for index in graph.topology.order:
        layer = graph.layers[index]
        feeds = [source for source in sources[index] if source is not None]
        infos = [inference.outputs[source[0]][source[1]] for source in feeds]
        steps = Decomposition(infos, context)
        try:
            outputs = _own(steps, _lower_layer(layer, steps))
        except UnsupportedError as error:
            missing.add(error, layer)
            outputs = []
        except DeconvError as error:
            error.locate(file=graph.file, line=layer.line, layer=layer.label)
            raise
        if not missing.found:
            writer.add(index, layer, steps, outputs, feeds)
    missing.refuse(graph)
    return Lowered(
        Graph(
            name=graph.name,
            layers=tuple(writer.layers),
            edges=tuple(writer.edges),
            ir_version=11,
        ),
        bytes(writer.weights),
        {source: writer.layers[number].name for source, (number, _) in writer.made.items()},
    )


def _own(steps: Decomposition, outputs: Sequence[Ref]) -> list[Ref]:
    """Give each output a separate layer, which can have the output's name."""
    found: list[Ref] = []
    for ref in outputs:
        element_type = steps.infos[ref].element_type
        if (ref < steps.count or ref in found) and element_type is not None:
            ref = steps.add("Convert", ref, destination_type=element_type)
        found.append(ref)
    return found


def has_counterpart(cls: type[Operation]) -> bool:
    """Whether operations of a class can be layers of opsets, with some types and attributes."""
    return cls.implemented and (bool(cls.versions) or issubclass(cls, (Composite, *_RULES)))


def _lower_layer(layer: Layer, steps: Decomposition) -> Sequence[Ref]:
    operation = layer.operation
    if not has_counterpart(type(operation)):
        raise UnsupportedError(f"{layer.type} has no counterpart")
    for port in layer.outputs:
        if port.element_type is None and steps.count == 0:
            raise UnsupportedError("an input of type undef has no counterpart")
    if isinstance(operation, Composite):
        return operation.decompose(steps)
    for kind, rule in _RULES.items():
        if isinstance(operation, kind):
            return (rule(operation, steps),)
    return (steps.apply(operation, *range(steps.count)),)


def _deconvolution(operation: Operation, steps: Decomposition) -> Ref:
    """Write ConvTranspose and ConvolutionBackwardData with explicit pads."""
    assert isinstance(operation, OneDNNDeconvolution)
    infos = steps.infos[: steps.count]
    geometry = operation.geometry(infos, Context())
    if geometry is None:
        raise UnsupportedError(f"{operation.type} of shapes that are not static has no counterpart")
    (result,) = operation.infer(infos, Context())
    data, filter_ = steps.wide(0), steps.wide(1)
    if operation.channels_last:
        data = steps.to_ncx(data)
    if operation.spatial_first:
        rank = steps.rank(filter_)
        filter_ = steps.transpose(filter_, (rank - 1, rank - 2, *range(rank - 2)))
    kind = "ConvolutionBackpropData"
    inputs, *rest = steps.shape(filter_)
    if operation.groups > 1:
        kind = "GroupConvolutionBackpropData"
        shape = (operation.groups, inputs // operation.groups, *rest)
        filter_ = steps.reshape(filter_, shape)
    axes = operation.axes(len(geometry))
    extents = [
        axis.natural(x, k) - g.pad_begin - g.output
        for axis, g, x, k in zip(axes, geometry, steps.shape(data)[2:], rest[1:], strict=True)
    ]
    inner = tuple(min(max(0, -e), a.stride - 1) for e, a in zip(extents, axes, strict=True))
    found = steps.add(
        kind,
        data,
        filter_,
        strides=tuple(a.stride for a in axes),
        dilations=tuple(a.dilation for a in axes),
        pads_begin=tuple(max(0, g.pad_begin) for g in geometry),
        pads_end=tuple(max(0, e) for e in extents),
        output_padding=inner,
        auto_pad=PadMode.EXPLICIT,
    )
    before = (0, 0, *(max(0, -g.pad_begin) for g in geometry))
    after = (0, 0, *(max(0, -e) - o for e, o in zip(extents, inner, strict=True)))
    if any(before + after):  # the output begins or ends with zeros
        zero = steps.constant((0.0,), steps.infos[found].element_type or F32, ())
        ends = (steps.constant(before), steps.constant(after), zero)
        found = steps.add("Pad", found, *ends, pad_mode=PadValues.CONSTANT)
    if operation.has_bias(steps.count):
        bias = steps.reshape(steps.wide(2), (1, -1, *(1,) * len(geometry)))
        found = steps.add("Add", found, bias)
    if operation.channels_last:
        found = steps.to_nxc(found)
    return steps.cast(found, result.element_type)


def _weights_gradient(operation: Operation, steps: Decomposition) -> Ref:
    """Write a convolution of `large` with `small`, with batch and channels swapped."""
    assert isinstance(operation, WeightsGradient)
    (result,) = operation.infer(steps.infos[: steps.count], Context())
    if not is_static(result.shape):
        raise UnsupportedError(f"{operation.type} of shapes that are not static has no counterpart")
    axes, geometry = operation.geometry(steps.shape(0), steps.shape(1), static(result.shape))
    rows, columns, *kernel = operation.canonical(static(result.shape))
    last = operation.data_format is DataFormat.NXC
    both = [steps.to_ncx(steps.wide(ref)) if last else steps.wide(ref) for ref in (0, 1)]
    large, small = both[operation.large], both[1 - operation.large]
    groups, (batch, _, *spatial) = operation.groups, steps.shape(large)
    inner, places = steps.shape(small)[2:], range(3, 3 + len(kernel))
    small = steps.reshape(small, (batch, groups, rows // groups, *inner))
    large = steps.reshape(large, (batch, groups, columns, *spatial))
    large = steps.transpose(large, (2, 1, 0, *places))
    windows = list(zip(axes, geometry, spatial, inner, kernel, strict=True))
    if any(g.pad_begin < 0 for g in geometry):
        raise UnsupportedError(f"{operation.type} with negative pads has no counterpart")
    found = steps.add(
        "GroupConvolution",
        steps.reshape(large, (columns, groups * batch, *spatial)),
        steps.transpose(small, (1, 2, 0, *places)),
        strides=tuple(a.dilation for a in axes),
        dilations=tuple(a.stride for a in axes),
        pads_begin=tuple(g.pad_begin for g in geometry),
        pads_end=tuple(
            max(0, a.dilation * (k - 1) + a.stride * (y - 1) + 1 - x - g.pad_begin)
            for a, g, x, y, k in windows
        ),
        auto_pad=PadMode.EXPLICIT,
    )
    if steps.shape(found)[2:] != tuple(kernel):  # windows end before the data does
        ends = [steps.constant(v) for v in ([0] * len(kernel), kernel, [1] * len(kernel))]
        found = steps.add("Slice", found, *ends, steps.constant(range(2, 2 + len(kernel))))
    behind = range(2, 2 + len(kernel))
    order = (*behind, 0, 1) if operation.spatial_first else (1, 0, *behind)
    return steps.cast(steps.transpose(found, order), result.element_type)


def _parameters(operation: Quantization, steps: Decomposition) -> tuple[Ref, Ref, Ref | None]:
    """Return data with an axis for each group, and scales and zero points that broadcast to it."""
    shape = steps.shape(0)
    sizes, counts = list(shape), list(operation.parameter_shape(shape))
    if operation.qtype is QuantizationType.PER_GROUP:
        pairs = [
            ((n, count),) if count in (1, n) else ((count, count), (n // count, 1))
            for n, count in zip(shape, counts, strict=True)
        ]
        sizes, counts = (list(found) for found in zip(*sum(pairs, ()), strict=True))
    data = steps.cast(0, F32)
    if len(sizes) > len(shape):
        data = steps.reshape(data, sizes)
    if isinstance(operation, Quantize | Dequantize) and operation.grouped is not None:
        spread, zeros = operation.parameters(shape)
        scales = steps.constant(spread.ravel().tolist(), F32, spread.shape)
        if isinstance(zeros, int) or not zeros.any():
            return data, scales, None
        return data, scales, steps.constant(zeros.ravel().tolist(), F32, zeros.shape)
    if isinstance(operation, Quantize | Dequantize):
        scales = steps.constant(operation.scales, F32, counts)
        if not any(operation.zps):
            return data, scales, None
        return data, scales, steps.constant(tuple(map(float, operation.zps)), F32, counts)
    found = []
    for ref in range(1, steps.count):
        wide = steps.cast(ref, F32)
        one = element_count(steps.shape(ref)) == 1
        found.append(steps.reshape(wide, [1] * len(counts) if one else counts))
    return data, found[0], found[1] if len(found) > 1 else None


def _dequantize(operation: Operation, steps: Decomposition) -> Ref:
    assert isinstance(operation, Dequantize | DynamicDequantize)
    found, scales, zps = _parameters(operation, steps)
    if zps is not None:
        found = steps.add("Subtract", found, zps)
    found = steps.add("Multiply", found, scales)
    return steps.cast(_ungrouped(steps, found), operation.output_type)


def _quantize(operation: Operation, steps: Decomposition) -> Ref:
    assert isinstance(operation, Quantize | DynamicQuantize)
    to = operation.output_type
    if to is None or not to.is_integer:
        raise UnsupportedError(f"{operation.type} to {to} has no counterpart")
    found, scales, zps = _parameters(operation, steps)
    found = steps.add("Divide", found, scales)
    if zps is not None:
        found = steps.add("Add", found, zps)
    found = steps.add("Round", found, mode=RoundMode.HALF_TO_EVEN)
    low = 0 if to.kind == "uint" else -(2 ** (to.bits - 1))
    found = steps.add("Clamp", found, min=float(low), max=float(low + 2**to.bits - 1))
    return steps.cast(_ungrouped(steps, found), to)


def _ungrouped(steps: Decomposition, ref: Ref) -> Ref:
    shape = steps.shape(0)
    return ref if steps.shape(ref) == shape else steps.reshape(ref, shape)


_RULES: dict[type[Operation], Callable[[Operation, Decomposition], Ref]] = {
    OneDNNDeconvolution: _deconvolution,
    WeightsGradient: _weights_gradient,
    Dequantize: _dequantize,
    DynamicDequantize: _dequantize,
    Quantize: _quantize,
    DynamicQuantize: _quantize,
}


class _IRWriter:
    """Collects layers, edges and constants."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.edges: list[Edge] = []
        self.weights = bytearray()
        self.taken: set[str] = set()
        self.made: dict[Source, tuple[int, int]] = {}
        """Tensor of the graph -> layer id and port id of the IR."""

    def add(
        self,
        index: int,
        layer: Layer,
        steps: Decomposition,
        outputs: Sequence[Ref],
        feeds: Sequence[Source],
    ) -> None:
        """Write the steps of a layer; the step that computes its first output gets its name."""
        places = [self.made[source] for source in feeds]
        names = {ref: port.names for ref, port in zip(outputs, layer.outputs, strict=False)}
        last = outputs[0] if outputs else steps.count
        for ref, step in enumerate(steps.steps, steps.count):
            number = len(self.layers)
            name = self._name(layer.name if ref == last else f"{layer.name}/{ref - steps.count}")
            if step.operation is None:
                assert step.constant is not None, "a step without an operation is a constant"
                self.layers.append(self._constant(number, name, step.constant))
                places.append((number, 0))
                continue
            infos = [steps.infos[i] for i in step.inputs]
            results = step.operation.infer(infos, steps.context)
            ports = [_port(i, info) for i, info in enumerate(infos)]
            made = [
                _port(len(ports) + i, info)._replace(names=() if i else names.get(ref, ()))
                for i, info in enumerate(results)
            ]
            if step.operation.type == "Result":
                made = []
            attributes = tuple(format_attributes(step.operation).items())
            self.layers.append(
                Layer(
                    number,
                    name,
                    step.operation,
                    step.operation.type,
                    step.operation.versions[-1],
                    tuple(ports),
                    tuple(made),
                    attributes,
                )
            )
            for i, source in enumerate(step.inputs):
                self.edges.append(Edge(*places[source], number, i))
            places.append((number, len(ports)))
        for position, ref in enumerate(outputs):
            self.made[(index, position)] = places[ref]

    def _name(self, wanted: str) -> str:
        """Return a name that no layer has yet: graph files often repeat names."""
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    def _constant(self, number: int, name: str, constant: Literal) -> Layer:
        data = constant.array().tobytes()
        self.weights.extend(bytes(-len(self.weights) % _ALIGNED))
        operation = Const(
            element_type=constant.element_type,
            shape=constant.shape,
            offset=len(self.weights),
            size=len(data),
        )
        self.weights.extend(data)
        port = _port(0, constant.info())
        attributes = tuple(format_attributes(operation).items())
        return Layer(number, name, operation, "Const", "opset1", (), (port,), attributes)


def _port(number: int, info: TensorInfo) -> Port:
    return Port(number, info.shape, info.element_type)
