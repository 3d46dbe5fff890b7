"""OpenVINO RMSNorm-14: division by the root of the mean square."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, element_type, number, operation
from deconv_ir.ops.checks import check_axes, integers, merged_type, misfit, normalize_axes
from deconv_ir.ops.elementwise.broadcasting import broadcasts_to
from deconv_ir.ops.numeric import narrow, np, widen

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


@operation(
    "RMSNorm-14(data, axes, scale?)",
    "f32[2,3,4], i64[1]{-1}, f32[4] -> f32[2,3,4] | epsilon=1e-6",
    "f32[2,3,4], i64[2]{2,1} -> f32[2,3,4] | epsilon=0.5 compute_type=f32",
)
class RMSNorm(Operation):
    """x / sqrt(mean of x * x along axes + epsilon), times scale."""

    scratch_ratios = (0.75, 1.75)

    formula = "the shape of data, {shape[data]}"

    epsilon: float = attribute(number(minimum=0))
    compute_type: ElementType | None = attribute(element_type(), None)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        found = merged_type((data, *inputs[2:]), ("data", "scale"), "float")
        if self.compute_type is not None and not self.compute_type.is_float:
            must = "be a floating-point type"
            raise misfit(
                "attribute-value", "compute_type", must, self.compute_type, must, "compute_type"
            )
        check_axes(inputs[1], data.shape)
        scale = inputs[2].shape if len(inputs) > 2 else None
        if scale is not None and data.shape is not None and not broadcasts_to(scale, data.shape):
            must = f"be broadcastable to data {data}"
            raise misfit("broadcast", "scale", must, scale, must)
        return (TensorInfo(data.shape, found),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=4)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        dtype = inputs[0].dtype
        compute = dtype if self.compute_type is None else self.compute_type.numpy()
        data = widen(narrow(inputs[0], compute))
        axes = normalize_axes(integers(inputs[1]), data.ndim)
        with np.errstate(all="ignore"):
            count = np.prod([data.shape[axis] for axis in axes], dtype=data.dtype)
            mean = np.add.reduce(data * data, axis=axes, keepdims=True) / count
            result: Array = data / np.sqrt(mean + data.dtype.type(self.epsilon))
            result = narrow(result, compute)
            if len(inputs) > 2:
                result = widen(result) * widen(inputs[2])
        return (narrow(result, dtype),)
