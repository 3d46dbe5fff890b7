"""OpenVINO SoftMax-1, SoftMax-8 and LogSoftmax-5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.shapes import element_count, format_shape, static
from deconv_ir.ops.base import attribute, integer, operation
from deconv_ir.ops.checks import check_type, normalize_axis
from deconv_ir.ops.numeric import widened_bytes

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


# Bytes of a float.
_WIDEST = 8


class _Softmax(Operation):
    """A function of all elements along an axis, for each of them."""

    def chosen_axis(self) -> int:
        """Tell the axis, as written."""
        raise NotImplementedError

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Shape and type are those of the input; the axis must exist."""
        data = inputs[0]
        element_type = check_type(data, "data", "float")
        if data.shape is not None:
            normalize_axis(self.chosen_axis(), len(data.shape))
        return (TensorInfo(data.shape, element_type),)

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Name the shape of the input."""
        return f"the shape of the input, {format_shape(inputs[0].shape)}"

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Subtract the greatest element along the axis first, and compute."""
        import numpy as np

        from deconv_ir.ops.numeric import narrow, widen

        data = widen(inputs[0])
        axis = self.chosen_axis()
        with np.errstate(all="ignore"):
            shifted = data - np.maximum.reduce(data, axis=axis, keepdims=True, initial=-np.inf)
            return (narrow(self.finish(np, shifted, axis), inputs[0].dtype),)

    def scratch(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Count copies in f32 of narrow floats."""
        return widened_bytes(outputs[0])

    def finish(self, np: Any, shifted: Array, axis: int) -> Array:
        """Compute the output from ``x - max``, which may be overwritten."""
        np.exp(shifted, out=shifted)
        shifted /= np.add.reduce(shifted, axis=axis, keepdims=True)
        return shifted


@operation("SoftMax", "opset1", inputs=("data",), examples=("f32[2,3] -> f32[2,3] | axis=1",))
class Softmax1(_Softmax):
    """exp(x) / sum(exp(x)) along an axis.

    Source: OpenVINO operation specification, SoftMax-1.

    Attributes
    ----------
    axis : int
        Counted from the start.
    """

    axis: int = attribute(integer(0), 1)

    def chosen_axis(self) -> int:
        """Tell the axis, as written."""
        return self.axis


@operation("SoftMax", "opset8", inputs=("data",), examples=("f32[2,3] -> f32[2,3] | axis=-2",))
class Softmax8(_Softmax):
    """exp(x) / sum(exp(x)) along an axis.

    Source: OpenVINO operation specification, SoftMax-8.

    Attributes
    ----------
    axis : int
        Negative: counted from the end.
    """

    axis: int = attribute(integer(), 1)

    def chosen_axis(self) -> int:
        """Tell the axis, as written."""
        return self.axis


@operation("LogSoftmax", "opset5", inputs=("data",), examples=("f32[2,3] -> f32[2,3] | axis=-1",))
class LogSoftmax(_Softmax):
    """Logarithm of SoftMax along an axis.

    Source: OpenVINO operation specification, LogSoftmax-5.

    Attributes
    ----------
    axis : int
        Negative: counted from the end.
    """

    axis: int = attribute(integer(), 1)

    def chosen_axis(self) -> int:
        """Tell the axis, as written."""
        return self.axis

    def scratch(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Count what is summed, too."""
        summed = element_count(static(outputs[0].shape)) * _WIDEST
        return summed + widened_bytes(outputs[0])

    def finish(self, np: Any, shifted: Array, axis: int) -> Array:
        """Compute x - max - log(sum(exp(x - max)))."""
        shifted -= np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
        return shifted
