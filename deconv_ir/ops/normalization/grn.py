"""OpenVINO GRN-1: normalization over channels."""

from __future__ import annotations

from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, number, operation
from deconv_ir.ops.checks import check_rank, check_type
from deconv_ir.ops.numeric import narrow, np, widen


@operation("GRN-1(data)", "f32[2,3,4,5] -> f32[2,3,4,5] | bias=1e-4")
class GRN(Operation):
    """x / sqrt(bias + sum of squares over the channels)."""

    formula = "the shape of data, {shape[data]}"

    bias: float = attribute(number(minimum=0))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        check_rank(inputs[0], "data", 2, 3, 4)
        return (TensorInfo(inputs[0].shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        squares = np.sum(data * data, axis=1, keepdims=True)
        result = data / np.sqrt(squares + data.dtype.type(self.bias))
        return (narrow(result, inputs[0].dtype),)
