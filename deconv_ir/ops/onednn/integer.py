"""Convolutions and products of dequantized tensors, summed as integers.

A oneDNN library computes Dequantize, Dequantize, ConvTranspose, Quantize as one int8 primitive:
sums of ``(src - zp) * (weights - zp)`` are exact, and scaled and quantized afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deconv_ir.ir.dtypes import F32, Array, ElementType
from deconv_ir.ir.lazy_tensor import whole
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.convolution.base import AnyConvolution
from deconv_ir.ops.convolution.dims import describe_requested
from deconv_ir.ops.convolution.fusing import as_activation
from deconv_ir.ops.numeric import narrow, np
from deconv_ir.ops.onednn.quantization import Dequantize, Quantize, quantized

if TYPE_CHECKING:
    from deconv_ir.kernels.activation import Activation
    from deconv_ir.kernels.plan import ConvolutionPlan
    from deconv_ir.kernels.quantized.kernel import QuantizedKernel
    from deconv_ir.kernels.quantized.product import QuantizedMatrix

PRODUCT = "MatMul"
BYTES = ("u8", "i8")


class _HeldWeights(NamedTuple):
    """Weights and bias of the last run, packed."""

    constants: Arrays
    kernel: QuantizedKernel | QuantizedMatrix | None
    plans: dict[tuple[object, ...], Any]
    """By threads and shapes, the last one: a plan of a convolution, or a call of a product."""

    def holds(self, constants: Arrays) -> bool:
        """Whether they are these arrays."""
        return all(map(np.array_equal, self.constants, constants))


class OnIntegers(Operation):
    """An operation on two dequantized tensors, given the quantized ones.

    Sums are exact below 2**53: those of 8-bit integers have 32 bits, others are of f64.  The
    scales and the bias are applied in f64, and the result is rounded once, before it may be
    quantized.

    Attributes
    ----------
    operation : Operation
    data, weights : Dequantize
        The operations before its first two inputs.
    element_type : ElementType
        Type of the operation's inputs: f32, or the type of a TypeCast in between.
    addition : Operation or None
        The Add behind it, computed as well, of the last input.
    activation : Operation or None
        ReLU or Clamp behind that, computed as well.
    quantize : Quantize or None
        The operation behind all, computed as well: one scale, to u8 or s8.
    """

    inputs = ("src", "weights", "bias", "addend")
    required_inputs = 2
    checks_values = False

    operation: Operation = field()
    data: Dequantize = field()
    weights: Dequantize = field()
    element_type: ElementType = field()
    addition: Operation | None = field(default=None)
    activation: Operation | None = field(default=None)
    quantize: Quantize | None = field(default=None)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Infer the operation on dequantized tensors."""
        data, weights, *rest = inputs[:-1] if self.addition else inputs
        both = (*self.data.infer([data], context), *self.weights.infer([weights], context))
        cast = [info._replace(element_type=self.element_type) for info in both]
        found = self.operation.infer([*cast, *rest], context)
        if self.addition is not None:
            found = self.addition.infer([*found, inputs[-1]], context)
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
        inputs = inputs[:-1] if self.addition else inputs
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
        last = channels_last(self.operation)
        along = (-1,) if last else (-1, *(1,) * (total.ndim - 2))
        factors = self._factors(total.shape[-1 if last else 1] if total.ndim > 1 else 1)
        result = total * (factors.reshape(along) if len(factors) > 1 else factors[0])
        if bias:
            added = bias[0].astype(np.float64)
            result += added if added.ndim > 1 else added.reshape(along)
        if self.addition is not None:
            result = result + inputs[-1]
        to = getattr(self.operation, "output_type", None) or self.element_type
        found = self._activation().apply(narrow(result, to.numpy()))
        if self.quantize is None:
            return found
        assert self.quantize.output_type is not None, "it is u8 or s8"
        return quantized(found, *self.quantize.parameters(found.shape), self.quantize.output_type)

    def _packed(
        self, inputs: Arrays, constants: Arrays, context: Context
    ) -> QuantizedKernel | QuantizedMatrix | None:
        """Pack weights and bias of 8-bit integers; None: they are others."""
        data, weights, *bias = inputs[0], *constants
        if weights.dtype not in (np.uint8, np.int8) or data.dtype not in (np.uint8, np.int8):
            return None
        if self.element_type is not F32 or (bias and bias[0].ndim != 1):
            return None
        _, zps = self.weights.parameters(weights.shape)
        wide = weights.astype(np.int32) - np.asarray(zps).astype(np.int32)
        kernel = (
            self._packed_matrix(data, wide)
            if self.operation.type == PRODUCT
            else self._packed_filter(data, wide, bias, context)
        )
        if kernel is None:
            return None
        writes = None
        is_number = all(np.isfinite(array).all() for array in bias)
        if self.quantize is not None and kernel.can_write_codes and is_number:
            writes = self.quantize.levels
        return kernel.coded(reads=kernel.can_read_codes, writes=writes)

    def _packed_matrix(self, data: Array, wide: Array) -> QuantizedMatrix | None:
        from deconv_ir.kernels.quantized.product import pack_integer_matrix

        if not self._has_rows(data.ndim, wide.ndim):
            return None
        matrix = wide.T if getattr(self.operation, "transpose_b", False) else wide
        return pack_integer_matrix(
            matrix,
            self._of_data(),
            self._factors(matrix.shape[1]),
            signed=data.dtype == np.int8,
        )

    def _has_rows(self, data: int, weights: int) -> bool:
        """Whether a product, given ranks, is one of rows with one matrix."""
        return weights == 2 and data > 1 and not getattr(self.operation, "transpose_a", False)

    def _of_data(self) -> tuple[float, int]:
        """Return the scale and the zero point of the data."""
        return float(np.float32(self.data.scales[0])), self.data.zps[0] if self.data.zps else 0

    def _packed_filter(
        self, data: Array, wide: Array, bias: Arrays, context: Context
    ) -> QuantizedKernel | None:
        from deconv_ir.kernels.quantized.kernel import pack_integers

        found = self._convolution(data, wide, context)
        if found is None:
            return None
        operation, _, wide = found
        axes = operation.axes(data.ndim - 2)
        return pack_integers(
            np.ascontiguousarray(whole(operation.canonical_filter(wide))),
            self._of_data(),
            self._factors,
            bias[0] if bias else None,
            self._activation(),
            signed=data.dtype == np.int8,
            adds=self.addition is not None,
            forward=not operation.transposed,
            strides=tuple(axis.stride for axis in axes),
            dilations=tuple(axis.dilation for axis in axes),
            groups=operation.groups_of(wide.shape),
            scratch_bytes=context.scratch_bytes,
        )

    def _sum_bytes(self, packed: _HeldWeights, inputs: Arrays, context: Context) -> Array | None:
        """Return the result of packed weights; None if they are not packed."""
        if packed.kernel is None:
            return None
        if self.operation.type == PRODUCT:
            return self._multiply(packed, inputs[0])
        return self._convolve(packed, inputs, context)

    def _multiply(self, packed: _HeldWeights, data: Array) -> Array:
        """Multiply rows of data by a packed matrix."""
        from deconv_ir.kernels.quantized.codes import from_plain_codes, to_plain_codes
        from deconv_ir.kernels.runtime.threads import get_threads

        matrix: Any = packed.kernel
        terms, columns = matrix.shape
        multiply = packed.plans.get((get_threads(),))
        if multiply is None:
            bias = packed.constants[1] if len(packed.constants) > 1 else None
            multiply = matrix.multiplier(bias, self._activation(), 0)
            packed.plans[(get_threads(),)] = multiply
        rows = data.reshape(-1, terms)
        rows = to_plain_codes(rows) if matrix.reads_codes else rows.astype(np.float32)
        result = np.empty((len(rows), columns), matrix.dtype)
        if result.size:
            multiply(rows, result)
        result = result.reshape(*data.shape[:-1], columns)
        if self.quantize is None:
            return result
        to = self.quantize.output_type
        assert to is not None, "it is u8 or s8"
        if matrix.writes is None:
            return quantized(result, *self.quantize.parameters(result.shape), to)
        return from_plain_codes(result, to.numpy())

    def _convolve(self, packed: _HeldWeights, inputs: Arrays, context: Context) -> Array | None:
        """Convolve data with a packed filter; None: the result is empty."""
        from deconv_ir.kernels.quantized.codes import from_codes, to_codes
        from deconv_ir.kernels.runtime.threads import get_threads

        data, kernel = inputs[0], cast("QuantizedKernel", packed.kernel)
        shape, _ = self._parts(inputs)
        key = get_threads(), data.shape, *(tuple(array.tolist()) for array in shape)
        plan = packed.plans.get(key)
        if plan is None:
            packed.plans.clear()
            plan = packed.plans[key] = self._planned(kernel, inputs, context)
        if plan.shapes.is_empty:
            return None
        last, addends = channels_last(self.operation), inputs[-1:] if self.addition else []
        if last:
            data, *addends = (np.moveaxis(array, -1, 1) for array in (data, *addends))
        if any(a.shape != plan.shapes.output or a.dtype != np.float32 for a in addends):
            return None
        codes = to_codes(data) if kernel.reads_codes else data.astype(np.float32, order="C")
        (result,) = plan.run([codes, *addends])
        if self.quantize is not None:
            to = self.quantize.output_type
            assert to is not None, "it is u8 or s8"
            if kernel.writes is None:
                result = quantized(result, *self.quantize.parameters(result.shape), to)
            else:
                result = from_codes(result, plan.shapes.output[1], to.numpy())
        return np.moveaxis(result, 1, -1) if last else result

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
        """Return ``i8`` for sums of bytes to f32, which kernels compute; others are in f64."""
        types = [info.element_type for info in inputs[:2]]
        ranks = [-1 if info.shape is None else len(info.shape) for info in inputs[:2]]
        has_kernel = self.element_type is F32
        if self.operation.type == PRODUCT:
            has_kernel = has_kernel and self._has_rows(*ranks)
        if has_kernel and all(one is not None and one.name in BYTES for one in types):
            return "i8"
        return "f64"

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count the operation's own work."""
        return self.operation.work(inputs, output)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count all tensors in f64, the result twice."""
        shapes = [i.shape for i in (*inputs, *outputs, *outputs)]
        return 8 * sum(element_count(static(shape)) for shape in shapes if shape is not None)


def channels_last(operation: Operation) -> bool:
    """Whether the channels of an operation's result are on its last axis."""
    return operation.type == PRODUCT or bool(getattr(operation, "channels_last", False))
