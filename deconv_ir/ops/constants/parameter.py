"""OpenVINO Parameter-1 and Result-1: the inputs and outputs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.operation import Context, Infos, Operation, Sharing, TensorInfo
from deconv_ir.ir.shapes import Shape
from deconv_ir.ops.base import attribute, element_type, operation, shape


@operation("Parameter-1()")
class Parameter(Operation):
    """An input of the model."""

    shape: Shape = attribute(shape())
    element_type: ElementType | None = attribute(element_type(), None, required=True)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return (TensorInfo(self.shape, self.element_type),)


@operation("Result-1(data)")
class Result(Operation):
    """An output of the model."""

    sharing = Sharing.WHOLE

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return (inputs[0],)

    def execute(self, inputs: Sequence[Any], context: Context) -> Sequence[Any]:
        return (inputs[0],)
