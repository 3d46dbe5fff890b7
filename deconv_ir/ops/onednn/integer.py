"""Convolutions and products of dequantized tensors, summed as integers.

A oneDNN library computes Dequantize, Dequantize, ConvTranspose, Quantize as one int8 primitive:
sums of ``(src - zp) * (weights - zp)`` are exact, and scaled and quantized afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.ir.dtypes import F32, Array, ElementType
from deconv_ir.ir.graph import Graph, Source, rewire
from deconv_ir.ir.lazy_tensor import whole
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.convolution.base import AnyConvolution
from deconv_ir.ops.convolution.dims import describe_requested
from deconv_ir.ops.convolution.fusing import as_activation
from deconv_ir.ops.convolution.onednn import OneDNNDeconvolution
from deconv_ir.ops.numeric import narrow, np
from deconv_ir.ops.onednn.quantization import (
    Dequantize,
    GroupedWeights,
    QuantizationType,
    Quantize,
    quantized,
)

if TYPE_CHECKING:
    from deconv_ir.kernels.activation import Activation
    from deconv_ir.kernels.plan import ConvolutionPlan
    from deconv_ir.kernels.quantized.kernel import QuantizedKernel

_OUTPUT_LETTERS = {
    "Convolution": "O",
    "ConvTranspose": "O",
    "ConvolutionBackwardData": "I",
    "ConvTransposeBackwardData": "I",
}
"""The letter of the output channels in layouts of weights."""
_PRODUCT = "MatMul"
_BYTES = ("u8", "i8")
_ACTIVATIONS = ("ReLU", "Clamp")
"""Operations behind a convolution that it computes with the same bits."""


class _HeldWeights(NamedTuple):
    """Weights and bias of the last run, packed."""

    constants: Arrays
    kernel: QuantizedKernel | None
    plans: dict[tuple[object, ...], ConvolutionPlan]
    """By threads and shapes: the last one."""

    def holds(self, constants: Arrays) -> bool:
        """Whether they are these arrays."""
        return all(map(np.array_equal, self.constants, constants))


class OnIntegers(Operation):
    """An operation on two dequantized tensors, given the quantized ones.

    Sums are exact below 2**53: those of a convolution of 8-bit integers have 32 bits, others are of
    f64.  The scales and the bias are applied in f64, and the result is rounded once, before it may
    be quantized.

    Attributes
    ----------
    operation : Operation
    data, weights : Dequantize
        The operations before its first two inputs.
    element_type : ElementType
        Type of the operation's inputs: f32, or the type of a TypeCast in between.
    activation : Operation or None
        ReLU or Clamp behind it, computed as well.
    quantize : Quantize or None
        The operation behind both, computed as well: one scale, to u8 or s8.
    """

    inputs = ("src", "weights", "bias")
    required_inputs = 2
    checks_values = False

    operation: Operation = field()
    data: Dequantize = field()
    weights: Dequantize = field()
    element_type: ElementType = field()
    activation: Operation | None = field(default=None)
    quantize: Quantize | None = field(default=None)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Infer the operation on dequantized tensors."""
        data, weights, *rest = inputs
        both = (*self.data.infer([data], context), *self.weights.infer([weights], context))
        cast = [info._replace(element_type=self.element_type) for info in both]
        found = self.operation.infer([*cast, *rest], context)
        if self.activation is not None:
            found = self.activation.infer(found, context)
        return found if self.quantize is None else self.quantize.infer(found, context)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        return self.operation.explain(inputs, context, output, axis)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Sum bytes in 32 bits, or numbers in f64 without Winograd, then scale."""
        return self.bind_any(context)(inputs, None)

    def bind_any(self, context: Context) -> Call:
        """Return a call that packs weights, and packs them again only if they differ."""
        held: list[_HeldWeights] = []

        def call(inputs: Arrays, out: Array | None) -> Arrays:
            _, constants = self._parts(inputs)
            packed = next(iter(held), None)
            if packed is None or not packed.holds(constants):
                packed = _HeldWeights(
                    [array.copy() for array in constants],
                    self._packed(inputs, constants, context),
                    {},
                )
                held[:] = [packed]
            found = self._sum_bytes(packed, inputs, context)
            if found is None:
                found = self._in_f64(inputs, context)
            if out is None:
                return (found,)
            out[...] = found
            return (out,)

        return call

    def _parts(self, inputs: Arrays) -> tuple[Arrays, Arrays]:
        """Return the shape of the output, if it is an input, and weights and bias."""
        is_shape = self.operation.inputs[2:] == ("dst_shape",)
        return (inputs[2:], inputs[1:2]) if is_shape else ([], inputs[1:])

    def _factors(self, channels: int) -> Array:
        """Return the scale of each output channel, or one for all."""
        scales = np.array(self.data.scales, np.float32).astype(np.float64)
        factors = scales * np.array(self.weights.scales, np.float32).astype(np.float64)
        return np.tile(factors, channels // len(factors)) if len(factors) > 1 else factors

    def _in_f64(self, inputs: Arrays, context: Context) -> Array:
        data, weights = inputs[:2]
        shape, (_, *bias) = self._parts(inputs)
        levels = []
        for array, how in ((data, self.data), (weights, self.weights)):
            _, zps = how.parameters(array.shape)
            levels.append(array.astype(np.float64) - zps)
        exact = context._replace(accuracy=Accuracy.DIRECT)
        (total,) = self._summed().execute([*levels, *shape], exact)
        last = _channels_last(self.operation)
        along = (-1,) if last else (-1, *(1,) * (total.ndim - 2))
        factors = self._factors(total.shape[-1 if last else 1] if total.ndim > 1 else 1)
        result = total * (factors.reshape(along) if len(factors) > 1 else factors[0])
        if bias:
            added = bias[0].astype(np.float64)
            result += added if added.ndim > 1 else added.reshape(along)
        to = getattr(self.operation, "output_type", None) or self.element_type
        found = self._activation().apply(narrow(result, to.numpy()))
        if self.quantize is None:
            return found
        assert self.quantize.output_type is not None, "it is u8 or s8"
        return quantized(found, *self.quantize.parameters(found.shape), self.quantize.output_type)

    def _packed(
        self, inputs: Arrays, constants: Arrays, context: Context
    ) -> QuantizedKernel | None:
        """Pack weights and bias of a convolution of 8-bit integers; None: it is another."""
        from deconv_ir.kernels.quantized.kernel import pack_integers

        data, weights, *bias = inputs[0], *constants
        if weights.dtype not in (np.uint8, np.int8) or data.dtype not in (np.uint8, np.int8):
            return None
        if self.element_type is not F32 or (bias and bias[0].ndim != 1):
            return None
        _, zps = self.weights.parameters(weights.shape)
        wide = weights.astype(np.int32) - np.asarray(zps).astype(np.int32)
        found = self._convolution(data, wide, context)
        if found is None:
            return None
        operation, _, wide = found
        axes = operation.axes(data.ndim - 2)
        kernel = pack_integers(
            np.ascontiguousarray(whole(operation.canonical_filter(wide))),
            (float(np.float32(self.data.scales[0])), self.data.zps[0] if self.data.zps else 0),
            self._factors,
            bias[0] if bias else None,
            self._activation(),
            signed=data.dtype == np.int8,
            forward=not operation.transposed,
            strides=tuple(axis.stride for axis in axes),
            dilations=tuple(axis.dilation for axis in axes),
            groups=operation.groups_of(wide.shape),
            scratch_bytes=context.scratch_bytes,
        )
        if kernel is None:
            return None
        writes = None
        if self.quantize is not None and kernel.can_write_codes:
            writes = self.quantize.levels
        return kernel.coded(reads=kernel.can_read_codes, writes=writes)

    def _sum_bytes(self, packed: _HeldWeights, inputs: Arrays, context: Context) -> Array | None:
        """Return the result of packed weights; None: there is none."""
        from deconv_ir.kernels.quantized.codes import from_codes, to_codes
        from deconv_ir.kernels.runtime.threads import get_threads

        data, kernel = inputs[0], packed.kernel
        if kernel is None:
            return None
        shape, _ = self._parts(inputs)
        key = get_threads(), data.shape, *(tuple(array.tolist()) for array in shape)
        plan = packed.plans.get(key)
        if plan is None:
            packed.plans.clear()
            plan = packed.plans[key] = self._planned(kernel, inputs, context)
        if plan.shapes.is_empty:
            return None
        if _channels_last(self.operation):
            data = np.moveaxis(data, -1, 1)
        codes = to_codes(data) if kernel.reads_codes else data.astype(np.float32, order="C")
        (result,) = plan.run([codes])
        if self.quantize is not None:
            to = self.quantize.output_type
            assert to is not None, "it is u8 or s8"
            if kernel.writes is None:
                result = quantized(result, *self.quantize.parameters(result.shape), to)
            else:
                result = from_codes(result, plan.shapes.output[1], to.numpy())
        return np.moveaxis(result, 1, -1) if _channels_last(self.operation) else result

    def _planned(
        self, kernel: QuantizedKernel, inputs: Arrays, context: Context
    ) -> ConvolutionPlan:
        """Plan runs with data of one shape."""
        shape, _ = self._parts(inputs)
        found = self._convolution(inputs[0], inputs[1], context)
        assert found is not None, "its weights are packed"
        operation, data, weights = found
        given = [describe_requested(array) for array in shape]
        placed = operation.placement(data.shape, weights.shape, given, context)
        assert placed is not None, "actual arrays have static shapes"
        by_channel = np.moveaxis(data, -1, 1) if operation.channels_last else data
        return kernel.plan(by_channel.shape, *placed)

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

    def _activation(self) -> Activation:
        """Return the activation for kernels."""
        from deconv_ir.kernels.activation import Activation

        found = None
        if self.activation is not None:
            found = as_activation(self.activation, [], np.dtype(np.float32))
        return found or Activation()

    def _summed(self) -> Operation:
        """Return the operation with the type of the sums."""
        typed = "output_type" in self.operation.fields
        return self.operation.replace(output_type=None) if typed else self.operation

    def computes_in(self, inputs: Infos) -> str | None:
        """Return ``i8`` for a convolution of bytes to f32, which kernels sum; others are in f64."""
        types = [info.element_type for info in inputs[:2]]
        has_kernel = self.operation.type != _PRODUCT and self.element_type is F32
        if has_kernel and all(one is not None and one.name in _BYTES for one in types):
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

    Each operation keeps its layer, name and output.  So does an activation or a Quantize that alone
    reads one: it computes the operation, too.  The layers before them remain, and run if others
    need them.
    """
    layers, sources = list(graph.layers), [tuple(row) for row in graph.topology.sources]
    users: dict[Source, int] = {}
    for row in sources:
        for source in row:
            if source is not None:
                users[source] = users.get(source, 0) + 1
    for index in graph.topology.order:
        layer, row = layers[index], sources[index]
        found = _dequantized(graph, index)
        if found is not None:
            operation, feeders = found
            before = [graph.layers[feeder].inputs[0] for feeder in feeders]
            ports = [port._replace(id=i) for i, port in enumerate(before)]
            sources[index] = (*(sources[feeder][0] for feeder in feeders), *row[2:])
            layers[index] = layer._replace(operation=operation, inputs=(*ports, *layer.inputs[2:]))
        elif len(row) == 1 and row[0] is not None and users[row[0]] == 1:
            maker = layers[row[0][0]]
            made = maker.operation
            joined = _joined(made, layer.operation) if isinstance(made, OnIntegers) else None
            if joined is not None:
                sources[index] = sources[row[0][0]]
                layers[index] = layer._replace(
                    operation=joined, type=maker.type, inputs=maker.inputs
                )
    return rewire(graph, layers, sources)


def _joined(made: OnIntegers, behind: Operation) -> OnIntegers | None:
    """Return an operation that computes the one behind it as well; None: it cannot."""
    if made.quantize is not None or made.operation.type == _PRODUCT:
        return None
    if behind.type in _ACTIVATIONS:
        is_first = made.activation is None and made.element_type is F32
        return made.replace(activation=behind) if is_first else None
    if not isinstance(behind, Quantize) or behind.qtype is not QuantizationType.PER_TENSOR:
        return None
    to = behind.output_type
    return made.replace(quantize=behind) if to is not None and to.name in _BYTES else None


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
