"""OpenVINO SoftMax-1, SoftMax-8 and LogSoftmax-5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..model import Context, TensorInfo
from .base import attribute, integer, operation
from .checks import normalize_axis
from .elementwise import Unary

if TYPE_CHECKING:
    from ..dtypes import Array


class _Softmax(Unary):
    """A function of all elements along an axis, for each of them."""

    family = "float"

    def chosen_axis(self) -> int:
        """Tell the axis, as written."""
        raise NotImplementedError

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Shape and type are those of the input; the axis must exist."""
        if inputs[0].shape is not None:
            normalize_axis(self.chosen_axis(), len(inputs[0].shape))
        return Unary.infer(self, inputs, context)

    def apply(self, np: Any, data: Array) -> Array:
        """Compute exp(x) / sum(exp(x)), the greatest element subtracted first."""
        axis = self.chosen_axis()
        powers = np.exp(data - np.max(data, axis=axis, keepdims=True, initial=-np.inf))
        result: Array = powers / np.sum(powers, axis=axis, keepdims=True)
        return result


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

    def apply(self, np: Any, data: Array) -> Array:
        """Compute x - max - log(sum(exp(x - max)))."""
        shifted = data - np.max(data, axis=self.axis, keepdims=True, initial=-np.inf)
        total = np.sum(np.exp(shifted), axis=self.axis, keepdims=True)
        result: Array = shifted - np.log(total)
        return result
