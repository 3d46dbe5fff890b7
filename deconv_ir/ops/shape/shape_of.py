"""OpenVINO ShapeOf-1 and ShapeOf-3."""

from __future__ import annotations

from deconv_ir.ir.dtypes import I64, ElementType
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, operation, result_type
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import wrap


class _ShapeOf(Operation):
    """The shape of an array, as a list of numbers."""

    def result_type(self) -> ElementType:
        """Tell the element type of the output."""
        return I64

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        shape = inputs[0].shape
        length = UNKNOWN if shape is None else len(shape)
        kind = self.result_type()
        value = shape and tuple(wrap(dim, kind) if isinstance(dim, int) else dim for dim in shape)
        return (TensorInfo((length,), kind, value),)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        return f"the rank of the input {inputs[0]}"

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (np.array(inputs[0].shape, np.int64).astype(self.result_type().numpy()),)


@operation("ShapeOf", "opset1", inputs=("data",), examples=("f32[2,3,4] -> i64[3]",))
class ShapeOf1(_ShapeOf):
    """The shape as i64."""


@operation(
    "ShapeOf", "opset3", inputs=("data",), examples=("f32[2,3,4] -> i32[3] | output_type=i32",)
)
class ShapeOf3(_ShapeOf):
    """The shape as i64 or i32."""

    output_type: ElementType = attribute(result_type(), I64)

    def result_type(self) -> ElementType:
        """Tell the element type of the output."""
        return self.output_type or I64
