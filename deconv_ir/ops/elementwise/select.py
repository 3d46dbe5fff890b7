"""OpenVINO Select-1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.ir.boxes import Boxes, LayerTile
from deconv_ir.ir.expression import Expression
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operands, TensorInfo
from deconv_ir.ir.shapes import Shape, element_count, is_static, static
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import VALUE_LIMIT, check_type, merged_type
from deconv_ir.ops.elementwise.broadcasting import WithBroadcast
from deconv_ir.ops.numeric import np
from deconv_ir.ops.tile_rules import elementwise_tile
from deconv_ir.ops.values import between, ends

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


@operation(
    "Select-1(cond, then, else)",
    "boolean[2,1], f32[3], f32[] -> f32[2,3]",
    "boolean[2,3], f32[2,3], f32[2,3] -> f32[2,3] | auto_broadcast=none",
)
class Select(WithBroadcast):
    """Elements of one of two arrays, chosen by a condition."""

    formula = "broadcast of {shape[cond]}, {shape[then]}, {shape[else]}"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        check_type(inputs[0], "cond", "boolean")
        element_type = merged_type(inputs[1:], self.inputs[1:])
        condition, then, other = (info.shape for info in inputs)
        shape = self.broadcast(self.broadcast(then, other), condition)
        return (TensorInfo(shape, element_type, self._value(inputs, shape)),)

    @staticmethod
    def _value(inputs: Infos, shape: Shape) -> tuple[Dim, ...] | None:
        """Select known elements; join the two if the condition is not known."""
        if not is_static(shape) or (shape is not None and len(shape) > 1):
            return None
        count = element_count(static(shape))
        if count > VALUE_LIMIT or inputs[1].value is None or inputs[2].value is None:
            return None
        condition = inputs[0].value
        rows = [
            None if v is None else (v * count if len(v) == 1 else v)
            for v in (condition, inputs[1].value, inputs[2].value)
        ]
        asked, then, other = rows
        assert then is not None
        assert other is not None
        found: list[Dim] = []
        for i, (a, b) in enumerate(zip(then, other, strict=True)):
            which = None if asked is None else asked[i]
            if isinstance(which, int):
                found.append(a if which else b)
            else:
                (a_low, a_high), (b_low, b_high) = ends(a), ends(b)
                found.append(between(min(a_low, b_low), max(a_high, b_high)))
        return tuple(found)

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        return None if self.realigns else expression.apply("select", *operands)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import elementwise

        return elementwise(case, arguments=0, ulps=0)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        condition, then, other = (static(info.shape) for info in inputs)
        then, other, condition = self.aligned_shapes(then, other, condition)
        return elementwise_tile(self, boxes, inputs, (condition, then, other))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        condition, then, other = inputs
        then, other, condition = self.aligned((then, other, condition))
        return (np.where(condition, then, other),)
