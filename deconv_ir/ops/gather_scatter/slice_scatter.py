"""OpenVINO SliceScatter-15: part of an array replaced."""

from __future__ import annotations

from deconv_ir.errors import ShapeError
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, format_shape
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import merged_type
from deconv_ir.ops.shape.slicing import Slice


@operation(
    "SliceScatter-15(data, updates, start, stop, step, axes?)",
    "f32[2,5], f32[2,2], i64[1]{1}, i64[1]{-1}, i64[1]{2}, i64[1]{1} -> f32[2,5]",
    "i32[4,3], i32[2,3], i64[1]{3}, i64[1]{1}, i64[1]{-1} -> i32[4,3]",
)
class SliceScatter(Operation):
    """The data, with a slice of it replaced by updates; `axes` absent: the first ones."""

    formula = "the shape of data, {shape[data]}"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, updates, *lists = inputs
        element_type = merged_type(inputs[:2], self.inputs)
        (part,) = Slice().infer([data, *lists], context)
        if not compatible(part.shape, updates.shape):
            raise _misfit(part.shape, updates.shape)
        return (TensorInfo(data.shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, updates, *lists = inputs
        result = data.copy()
        (part,) = Slice().execute([result, *lists], context)
        if part.shape != updates.shape:
            raise _misfit(part.shape, updates.shape)
        part[...] = updates
        return (result,)


def _misfit(part: Shape, updates: Shape) -> ShapeError:
    expected, actual = format_shape(part), format_shape(updates)
    message = f"updates {actual} must have the shape of the slice {expected}"
    return ShapeError(message, expected=expected, actual=actual, rule="slice")
