"""Convolutions and products of dequantized tensors, summed as integers.

A oneDNN library computes Dequantize, Dequantize, ConvTranspose as one int8 primitive:
sums of ``(src - zp) * (weights - zp)`` are exact, and scaled afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deconv_ir.ir.dtypes import F32, Array, ElementType
from deconv_ir.ir.geometry import bounds
from deconv_ir.ir.graph import Edge, Graph
from deconv_ir.ir.lazy_tensor import whole
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.checks import product
from deconv_ir.ops.convolution.base import AnyConvolution
from deconv_ir.ops.convolution.dims import describe_requested
from deconv_ir.ops.convolution.onednn import OneDNNDeconvolution
from deconv_ir.ops.numeric import narrow, np
from deconv_ir.ops.onednn.quantization import Dequantize, GroupedWeights, QuantizationType, Quantize

_OUTPUT_LETTERS = {
    "Convolution": "O",
    "ConvTranspose": "O",
    "ConvolutionBackwardData": "I",
    "ConvTransposeBackwardData": "I",
}
"""The letter of the output channels in layouts of weights."""
_PRODUCT = "MatMul"
_FEWEST_TERMS = 128
"""Products of an output from which sums in 32 bits are faster, with their passes over tensors."""


class OnIntegers(Operation):
    """An operation on two dequantized tensors, given the quantized ones.

    Sums are exact below 2**53: those of a convolution of 8-bit integers have 32 bits, others are of
    f64.  The scales and the bias are applied in f64, and the result is rounded once.

    Attributes
    ----------
    operation : Operation
    data, weights : Dequantize
        The operations before its first two inputs.
    element_type : ElementType
        Type of the operation's inputs: f32, or the type of a TypeCast in between.
    """

    inputs = ("src", "weights", "bias")
    required_inputs = 2
    checks_values = False

    operation: Operation = field()
    data: Dequantize = field()
    weights: Dequantize = field()
    element_type: ElementType = field()

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Infer the operation on dequantized tensors."""
        data, weights, *rest = inputs
        both = (*self.data.infer([data], context), *self.weights.infer([weights], context))
        cast = [info._replace(element_type=self.element_type) for info in both]
        return self.operation.infer([*cast, *rest], context)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        return self.operation.explain(inputs, context, output, axis)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Sum bytes in 32 bits, or numbers in f64 without Winograd, then scale."""
        data, weights, *rest = inputs
        shape, bias = (rest, None) if self.operation.inputs[2:] == ("dst_shape",) else ([], rest)
        total = self._sums_of_bytes(data, weights, shape, context)
        if total is None:
            levels = []
            for array, how in ((data, self.data), (weights, self.weights)):
                _, zps = how.parameters(array.shape)
                levels.append(array.astype(np.float64) - zps)
            exact = context._replace(accuracy=Accuracy.DIRECT)
            (total,) = self._summed().execute([*levels, *shape], exact)
        last = _channels_last(self.operation)
        scales = np.array(self.data.scales, np.float32).astype(np.float64)
        factors = scales * np.array(self.weights.scales, np.float32).astype(np.float64)
        along = (-1,) if last else (-1, *(1,) * (total.ndim - 2))
        if len(factors) > 1:
            channels = total.shape[-1 if last else 1]
            factors = np.tile(factors, channels // len(factors)).reshape(along)
        else:
            factors = factors[0]
        result = total * factors
        if bias:
            added = bias[0].astype(np.float64)
            result += added if added.ndim > 1 else added.reshape(along)
        to = getattr(self.operation, "output_type", None) or self.element_type
        return (narrow(result, to.numpy()),)

    def _sums_of_bytes(
        self, data: Array, weights: Array, shape: Arrays, context: Context
    ) -> Array | None:
        """Return the sums of a convolution of 8-bit integers; None: they are others."""
        from deconv_ir.kernels.quantized.kernel import pack_integers
        from deconv_ir.kernels.quantized.plan import QuantizedPlan

        last = _channels_last(self.operation)
        if not data.size or data.dtype not in (np.uint8, np.int8):
            return None
        if weights.dtype not in (np.uint8, np.int8):
            return None
        _, zps = self.weights.parameters(weights.shape)
        wide = weights.astype(np.int32) - np.asarray(zps).astype(np.int32)
        found = self._convolution(data, wide, context)
        if found is None:
            return None
        operation, data, wide = found
        axes = operation.axes(data.ndim - 2)
        steps = math.prod(axis.stride for axis in axes) if operation.transposed else 1
        dims = operation.filter_dims(wide.shape)
        if bounds(product(dims.inputs, *dims.kernel))[0] < _FEWEST_TERMS * steps:
            return None
        given = [describe_requested(array) for array in shape]
        placed = operation.placement(data.shape, wide.shape, given, context)
        assert placed is not None, "actual arrays have static shapes"
        filter_ = whole(operation.canonical_filter(wide))
        kernel = pack_integers(
            np.ascontiguousarray(filter_),
            self.data.zps[0] if self.data.zps else 0,
            signed=data.dtype == np.int8,
            forward=not operation.transposed,
            strides=tuple(axis.stride for axis in axes),
            dilations=tuple(axis.dilation for axis in axes),
            groups=operation.groups_of(wide.shape),
            scratch_bytes=context.scratch_bytes,
        )
        if kernel is None:
            return None
        by_channel = np.moveaxis(data, -1, 1) if operation.channels_last else data
        numbers = by_channel.astype(np.float32, order="C")
        plan = kernel.plan(numbers.shape, *placed)
        if 0 in plan.shapes.output or not isinstance(plan, QuantizedPlan):
            return None
        total = plan.exact_sums(numbers)
        return np.moveaxis(total, 1, -1) if last else total

    def _convolution(
        self, data: Array, weights: Array, context: Context
    ) -> tuple[AnyConvolution, Array, Array] | None:
        """Return the convolution with kernels, and its inputs; None: it has none."""
        from deconv_ir.ops.onednn.windows import WindowedConvolution

        operation = self._summed()
        if isinstance(operation, AnyConvolution):
            return operation, data, weights
        if not isinstance(operation, WindowedConvolution):
            return None
        infos = [TensorInfo(array.shape, F32) for array in (data, weights)]
        steps, _ = operation.build(infos, context)
        made = [s.operation for s in steps.steps if isinstance(s.operation, AnyConvolution)]
        by_channel = np.moveaxis(data, -1, 1) if operation.channels_last else data
        return made[0], by_channel, operation.by_outputs(weights)

    def _summed(self) -> Operation:
        """Return the operation with the type of the sums."""
        typed = "output_type" in self.operation.fields
        return self.operation.replace(output_type=None) if typed else self.operation

    def computes_in(self, inputs: Infos) -> str | None:
        """Return ``i8`` for sums of integers, which are exact; those of f8 are in f64."""
        types = [info.element_type for info in inputs[:2]]
        if all(one is not None and one.is_integer for one in types):
            return "i8"
        return "f64"

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count the operation's own work."""
        return self.operation.work(inputs, output)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count all tensors in f64, the result twice."""
        shapes = [i.shape for i in (*inputs, *outputs, *outputs)]
        return 8 * sum(element_count(static(shape)) for shape in shapes if shape is not None)


def _channels_last(operation: Operation) -> bool:
    return operation.type == _PRODUCT or bool(getattr(operation, "channels_last", False))


def _output_axis(operation: Operation, rank: int) -> int:
    """Return the axis of the weights that has the channels of the output."""
    if operation.type == _PRODUCT:
        return rank - 2 if getattr(operation, "transpose_b", False) else rank - 1
    for name in ("filter_format", "weights_format"):
        layout = getattr(operation, name, None)
        if layout is not None:
            wanted = _OUTPUT_LETTERS[operation.type]
            at: int = layout.value.replace("X", "X" * (rank - 2)).index(wanted)
            return at
    return -1


def with_grouped_scales(graph: Graph) -> Graph:
    """Return a graph whose weights in groups may have a scale for each output channel.

    The axis of the output channels of a ConvTranspose's weights has those of one group; oneDNN's
    library takes the scales of all groups there, in the order of the output's channels.
    """
    layers = list(graph.layers)
    for index, layer in enumerate(graph.layers):
        operation = layer.operation
        if not isinstance(operation, OneDNNDeconvolution) or operation.groups < 2:
            continue
        feeder = _dequantize_before(graph, _weights_before(graph, index, operation))
        shape = None if feeder is None else graph.layers[feeder].inputs[0].shape
        if feeder is None or shape is None or len(shape) < 3:
            continue
        weights = layers[feeder].operation
        assert isinstance(weights, Dequantize), "_dequantize_before requires it"
        at = _output_axis(operation, len(shape))
        per_channel = weights.qtype is QuantizationType.PER_CHANNEL
        if not per_channel or weights.axis % len(shape) != at or not isinstance(shape[at], int):
            continue
        inputs = len(shape) - 1 if operation.spatial_first else 0
        if len(weights.scales) == operation.groups * shape[at] != shape[at]:
            grouped = GroupedWeights(operation.groups, inputs)
            layers[feeder] = layers[feeder]._replace(operation=weights.replace(grouped=grouped))
            (before, *_) = graph.topology.sources[feeder]
            made = None if before is None else layers[before[0]].operation
            if before is not None and isinstance(made, Quantize) and _same_channels(made, weights):
                made = made.replace(grouped=grouped)
                layers[before[0]] = layers[before[0]]._replace(operation=made)
    return graph.replace(layers=tuple(layers)) if layers != list(graph.layers) else graph


def _weights_before(
    graph: Graph, index: int, operation: OneDNNDeconvolution
) -> Sequence[tuple[int, int] | None]:
    """Return the source of the weights, before a StaticReshape that keeps the axes of channels."""
    found = graph.topology.sources[index][1:2]
    source = found[0] if found else None
    if source is None or graph.layers[source[0]].type != "StaticReshape":
        return found
    reshape = graph.layers[source[0]]
    before, after = (ports[0].shape for ports in (reshape.inputs, reshape.outputs))
    channels = slice(-2, None) if operation.spatial_first else slice(2)
    if before is None or after is None or before[channels] != after[channels]:
        return found
    return graph.topology.sources[source[0]][:1]


def _same_channels(a: Quantize, b: Dequantize) -> bool:
    """Whether both have the same number of scales along the same axis."""
    return (a.qtype, a.axis, len(a.scales)) == (b.qtype, b.axis, len(b.scales))


def on_integers(graph: Graph) -> Graph:
    """Return a graph whose operations on dequantized tensors read the quantized ones.

    Each operation keeps its layer, name and output; the Dequantize layers remain, and run if other
    layers need them.
    """
    layers = list(graph.layers)
    sources = graph.topology.sources
    moved: dict[tuple[int, int], Edge] = {}
    for index, layer in enumerate(graph.layers):
        found = _dequantized(graph, index)
        if found is None:
            continue
        operation, feeders = found
        ports = list(layer.inputs)
        for i, feeder in enumerate(feeders):
            ports[i] = graph.layers[feeder].inputs[0]._replace(id=i)
            origin = sources[feeder][0]
            assert origin is not None, "_dequantized requires it"
            start = graph.layers[origin[0]]
            port = start.outputs[origin[1]].id
            moved[(layer.id, i)] = Edge(start.id, port, layer.id, i, layer.line)
        layers[index] = layer._replace(operation=operation, inputs=tuple(ports))
    edges = tuple(moved.get((edge.to_layer, edge.to_port), edge) for edge in graph.edges)
    return graph.replace(layers=tuple(layers), edges=edges)


def _dequantized(graph: Graph, index: int) -> tuple[OnIntegers, list[int]] | None:
    """Return the operation on integers, and the two Dequantize layers before it."""
    layer = graph.layers[index]
    operation = layer.operation
    if operation.type not in _OUTPUT_LETTERS and operation.type != _PRODUCT:
        return None
    sources = graph.topology.sources[index]
    feeders = [_dequantize_before(graph, sources[i : i + 1]) for i in (0, 1)]
    found = [i for i in feeders if i is not None]
    types = {port.element_type for port in layer.inputs[:2]}
    if len(found) < 2 or len(types) > 1:
        return None
    element_type = types.pop()
    data, weights = (graph.layers[i].operation for i in found)
    assert isinstance(data, Dequantize), "_dequantize_before requires it"
    assert isinstance(weights, Dequantize), "_dequantize_before requires it"
    shape = graph.layers[found[1]].inputs[0].shape
    if data.qtype is not QuantizationType.PER_TENSOR or shape is None or element_type is None:
        return None
    if weights.qtype is QuantizationType.PER_CHANNEL and weights.axis % len(shape) != _output_axis(
        operation, len(shape)
    ):
        return None
    if weights.qtype is QuantizationType.PER_GROUP:
        return None
    made = OnIntegers(operation=operation, data=data, weights=weights, element_type=element_type)
    return made, found


def _dequantize_before(graph: Graph, found: Sequence[tuple[int, int] | None]) -> int | None:
    """Return the Dequantize to f32 that produces an input, possibly through a TypeCast."""
    sources = graph.topology.sources
    source = found[0] if found else None
    if source is not None and graph.layers[source[0]].type == "TypeCast":
        source = sources[source[0]][0] if sources[source[0]] else None
    if source is None or sources[source[0]][:1] in ((), (None,)):
        return None
    operation = graph.layers[source[0]].operation
    if not isinstance(operation, Dequantize) or operation.output_type is not F32:
        return None
    return source[0]
