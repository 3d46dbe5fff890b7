"""ConvertLike-1, Identity-16 and Eye-9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.ir.boxes import Boxes, LayerTile, whole_box
from deconv_ir.ir.dtypes import ElementType, from_numpy
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, Sharing, TensorInfo
from deconv_ir.ir.shapes import Shape, static
from deconv_ir.ops.base import attribute, operation, result_type
from deconv_ir.ops.checks import (
    check_rank,
    check_single,
    check_type,
    integers,
    misfit,
    only,
    unknown_shape,
)
from deconv_ir.ops.elementwise.convert import Convert, convert
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import as_dim, as_dims

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


@operation("ConvertLike-1(data, like)", "f32[2,3], i32[4] -> i32[2,3]")
class ConvertLike(Operation):
    """The same values in the element type of another input."""

    scratch_ratios = (2.5, 2.5)

    formula = "the shape of data, {shape[data]}"
    sharing = Sharing.WHOLE

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        to = inputs[1].element_type
        if to is None:
            return (TensorInfo(inputs[0].shape),)
        return Convert(destination_type=to).infer(inputs[:1], context)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        (box,) = boxes
        return LayerTile((box, whole_box(static(inputs[1].shape))), self)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import elementwise

        return elementwise(case, arguments=0, ulps=0)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        to = from_numpy(inputs[1].dtype)
        assert to is not None, "arrays of a model have element types"
        return (convert(inputs[0], to),)


@operation("Identity-16(data)", "f32[2,3] -> f32[2,3]")
class Identity(Operation):
    """The data unchanged."""

    formula = "the shape of data, {shape[data]}"
    sharing = Sharing.WHOLE

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return (inputs[0],)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        return LayerTile(tuple(boxes), self)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (inputs[0],)


def _check_extent(dim: Dim, name: str) -> None:
    if isinstance(dim, int) and dim < 0:
        raise misfit("input-value", name, "not be negative", dim, ">= 0")


@operation(
    "Eye-9(num_rows, num_columns, diagonal_index, batch_shape?)",
    "i64[]{3}, i64[]{4}, i64[]{-1} -> f32[3,4] | output_type=f32",
    "i64[]{2}, i64[]{2}, i64[]{0}, i64[2]{3,1} -> i32[3,1,2,2] | output_type=i32",
)
class Eye(Operation):
    """Ones on a diagonal, zeros elsewhere."""

    formula = "num_rows {element[num_rows]}, num_columns {element[num_columns]}"

    output_type: ElementType = attribute(result_type())

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        for info, name in zip(inputs, self.inputs, strict=False):
            check_type(info, name, "integer")
            if name == "batch_shape":
                check_rank(info, name, 1)
            else:
                check_single(info, name)
        rows, columns = (as_dim(i.value[0]) if i.value else UNKNOWN for i in inputs[:2])
        for dim, name in ((rows, "num_rows"), (columns, "num_columns")):
            _check_extent(dim, name)
        batch: Shape = ()
        if len(inputs) > 3:
            given = inputs[3].value
            batch = unknown_shape(inputs[3]) if given is None else as_dims(given)
            for dim in batch or ():
                _check_extent(dim, "batch_shape")
        shape = None if batch is None else (*batch, rows, columns)
        return (TensorInfo(shape, self.output_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        rows, columns, diagonal = (
            int(only(a, name)) for a, name in zip(inputs, self.inputs[:3], strict=False)
        )
        one = np.eye(rows, columns, diagonal).astype(self.output_type.numpy())
        batch = integers(inputs[3]) if len(inputs) > 3 else ()
        return (np.broadcast_to(one, (*batch, rows, columns)),)
