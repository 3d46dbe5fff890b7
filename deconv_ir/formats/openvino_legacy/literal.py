"""A small constant that a conversion adds; `complete` gives it a place behind the weights."""

from __future__ import annotations

from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import field


class AddedConstant(Operation):
    """Numbers that are in no weights file.

    Attributes
    ----------
    values : tuple of float
    element_type : ElementType
    shape : tuple of int
    """

    type = "Const"
    required_inputs = 0

    values: tuple[float, ...] = field()
    element_type: ElementType = field()
    shape: tuple[int, ...] = field()

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Return the elements, too."""
        if self.element_type.is_float:
            return (TensorInfo(self.shape, self.element_type, None, self.values),)
        return (TensorInfo(self.shape, self.element_type, tuple(map(int, self.values))),)

    def array(self) -> Array:
        """Return the elements."""
        import numpy as np

        with np.errstate(all="ignore"):
            made: Array = np.array(self.values).astype(self.element_type.numpy())
        return made.reshape(self.shape)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Return the elements."""
        return (self.array(),)
