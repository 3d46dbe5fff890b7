"""OpenVINO Inverse-14: the inverse of matrices."""

from __future__ import annotations

from deconv_ir.errors import ShapeError
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import format_shape, intersect_dims
from deconv_ir.ops.base import attribute, boolean, operation
from deconv_ir.ops.checks import check_least_rank, check_type
from deconv_ir.ops.numeric import narrow, np, widen


@operation(
    "Inverse-14(data)",
    "f32[2,3,3]{4,1,0,1,4,1,0,1,4,5,0,1,0,5,1,1,0,5} -> f32[2,3,3] | adjoint=false",
)
class Inverse(Operation):
    """The inverse of each matrix, or of its adjoint: the transpose."""

    formula = "the shape of data, {shape[data]}"

    adjoint: bool = attribute(boolean(), False)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        check_least_rank(inputs[0], "data", 2)
        shape = inputs[0].shape
        if shape is not None:
            side = intersect_dims(shape[-2], shape[-1])
            if side is None:
                message = f"data must hold square matrices, found {format_shape(shape)}"
                raise ShapeError(message, actual=format_shape(shape), rule="input-shape")
            shape = (*shape[:-2], side, side)
        return (TensorInfo(shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        try:
            found = np.linalg.inv(data)
        except np.linalg.LinAlgError:
            raise ShapeError(
                "a matrix of data is singular and has no inverse", rule="singular"
            ) from None
        if self.adjoint:
            found = np.swapaxes(found, -1, -2)
        return (narrow(found, inputs[0].dtype),)
