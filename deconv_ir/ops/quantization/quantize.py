"""OpenVINO FakeQuantize-1: values moved to one of a few levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import ShapeError
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.shapes import compatible, format_shape, static
from deconv_ir.ops.base import attribute, choice, integer, operation
from deconv_ir.ops.checks import merged_type
from deconv_ir.ops.elementwise.broadcasting import Broadcast, align, broadcast_shapes

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

_INPUTS = ("data", "input_low", "input_high", "output_low", "output_high")


@operation(
    "FakeQuantize",
    "opset1",
    inputs=_INPUTS,
    examples=(
        "f32[1,3,4,5], f32[1,3,1,1], f32[1,3,1,1], f32[], f32[1] -> f32[1,3,4,5] | levels=256",
    ),
)
class FakeQuantize(Operation):
    """The nearest of equal levels between two bounds, mapped to two others.

    Source: OpenVINO operation specification, FakeQuantize-1.

    Attributes
    ----------
    levels : int
        At least 2.
    auto_broadcast : Broadcast
        How the bounds are broadcast to the data: numpy, none or pdpd.
    auto_broadcast_axis : int
        pdpd only: where the bounds' shape starts in that of the data.
    """

    levels: int = attribute(integer(1))
    auto_broadcast: Broadcast = attribute(
        choice(Broadcast, explicit=Broadcast.NONE), Broadcast.NUMPY
    )
    auto_broadcast_axis: int = attribute(integer(-1), 0, name="auto_broadcast.auto_broadcast_axis")

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Keep the shape of the data, to which the bounds must be broadcast."""
        element_type = merged_type(inputs, self.inputs, "float")
        if self.levels < 2:
            raise ShapeError(
                f"levels must be 2 or greater, found {self.levels}",
                attribute="levels",
                expected=">= 2",
                actual=self.levels,
                rule="levels",
            )
        shape = inputs[0].shape
        for info, name in zip(inputs[1:], self.inputs[1:], strict=True):
            both = broadcast_shapes(
                shape, info.shape, self.auto_broadcast, self.auto_broadcast_axis
            )
            if not compatible(both, shape):
                raise ShapeError(
                    f"{name} {format_shape(info.shape)} cannot be broadcast to data "
                    f"{format_shape(shape)}",
                    expected=format_shape(shape),
                    actual=format_shape(info.shape),
                    rule="broadcast",
                )
        return (TensorInfo(shape, element_type),)

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Name the shape of the data."""
        return f"the shape of data, {format_shape(inputs[0].shape)}"

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Quantise."""
        import numpy as np

        from deconv_ir.ops.numeric import narrow, widen

        data, *bounds = map(widen, inputs)
        if self.auto_broadcast is Broadcast.PDPD:
            axis = self.auto_broadcast_axis
            bounds = [b.reshape(static(align(data.shape, b.shape, axis))) for b in bounds]
        low, high, output_low, output_high = bounds
        steps = data.dtype.type(self.levels - 1)
        with np.errstate(all="ignore"):
            level = np.rint((data - low) / (high - low) * steps)
            result = level / steps * (output_high - output_low) + output_low
            result = np.where(data <= np.minimum(low, high), output_low, result)
            result = np.where(data > np.maximum(low, high), output_high, result)
            return (narrow(result, inputs[0].dtype),)
