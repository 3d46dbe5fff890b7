"""OpenVINO SoftMax-1, SoftMax-8 and LogSoftmax-5."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deconv_ir.ir.boxes import Boxes, LayerTile
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Context, Infos, TensorInfo
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.base import TakesOut, attribute, integer, operation
from deconv_ir.ops.checks import check_type, normalize_axis
from deconv_ir.ops.numeric import narrow, np, numpy_width, widen, widened_bytes
from deconv_ir.ops.tile_rules import along_axes

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case

# Size of a float in bytes.
_WIDEST = 8


class _Softmax(TakesOut):
    """A function of all elements along an axis, for each of them."""

    formula = "the shape of the input, {shape[data]}"

    axis: int = 1
    logarithm: ClassVar[bool] = False

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        element_type = check_type(data, "data", "float")
        if data.shape is not None:
            normalize_axis(self.axis, len(data.shape))
        return (TensorInfo(data.shape, element_type),)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        axis = normalize_axis(self.axis, len(static(inputs[0].shape)))
        return along_axes(self, boxes, (axis,), inputs, outputs)

    def compute(self, inputs: Arrays, context: Context, out: Array | None) -> Array:
        """Subtract the maximum along the axis first; narrow floats are widened."""
        from deconv_ir.kernels.normalization import softmax

        (data,) = inputs
        wide = widen(data)
        axis = normalize_axis(self.axis, wide.ndim)
        if out is not None and (wide.dtype != data.dtype or not out.flags.c_contiguous):
            out = None
        found = softmax(wide, axis, logarithm=self.logarithm, out=out)
        if found is None:
            with np.errstate(all="ignore"):
                most = np.maximum.reduce(wide, axis=axis, keepdims=True, initial=-np.inf)
                found = self.finish(np.subtract(wide, most, out=out), axis)
        del wide  # The rounded result reuses its memory.
        return narrow(found, data.dtype)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import ARGUMENT_ULPS, FUNCTION_ULPS, SUM_ULPS, ULPS

        precision, exact = case.precision, case.outputs[0]
        eps = max(precision.sums, precision.result)
        axis = normalize_axis(self.axis, exact.ndim)
        data = case.inputs[0]
        shifted = np.abs(data - np.max(data, axis=axis, keepdims=True, initial=-np.inf))
        shifted[~np.isfinite(shifted)] = 0
        # Errors of the shifted argument, and of the sum over the axis.
        error = precision.sums * (ARGUMENT_ULPS * shifted + FUNCTION_ULPS + SUM_ULPS)
        delta = case.perturbation(0, 0)
        if delta is not None:
            error = error + delta + np.max(delta, axis=axis, keepdims=True)
        error = error + ULPS * eps
        if self.logarithm:
            return [error + ULPS * eps * np.abs(exact)]
        return [np.abs(exact) * np.expm1(np.minimum(error, 700))]

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count copies in f32 of narrow floats; maxima and sums of the axis that NumPy computes."""
        shape = static(outputs[0].shape)
        lines = element_count(shape) // max(1, shape[normalize_axis(self.axis, len(shape))])
        return widened_bytes(outputs[0]) + 2 * numpy_width(outputs[0]) * lines

    def finish(self, shifted: Array, axis: int) -> Array:
        """Compute the output from ``x - max``, which may be overwritten."""
        np.exp(shifted, out=shifted)
        shifted /= np.add.reduce(shifted, axis=axis, keepdims=True)
        return shifted


@operation("SoftMax-1(data)", "f32[2,3] -> f32[2,3] | axis=1")
class Softmax1(_Softmax):
    """exp(x) / sum(exp(x)) along an axis."""

    axis: int = attribute(integer(0), 1)


@operation("SoftMax-8(data)", "f32[2,3] -> f32[2,3] | axis=-2")
class Softmax8(_Softmax):
    """exp(x) / sum(exp(x)) along an axis."""

    axis: int = attribute(integer(), 1)


@operation("LogSoftmax-5(data)", "f32[2,3] -> f32[2,3] | axis=-1")
class LogSoftmax(_Softmax):
    """Logarithm of SoftMax along an axis."""

    logarithm = True
    axis: int = attribute(integer(), 1)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the summands, too."""
        summed = element_count(static(outputs[0].shape)) * _WIDEST
        return summed + super().scratch(inputs, outputs, context)

    def finish(self, shifted: Array, axis: int) -> Array:
        """Compute x - max - log(sum(exp(x - max)))."""
        shifted -= np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
        return shifted
