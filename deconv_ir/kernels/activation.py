"""The epilogue of a kernel: activations of a result before it is stored."""

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.runtime import interface


class ActivationType(enum.Enum):
    """Element-wise functions that the kernels can apply while results are in cache."""

    NONE = interface.ACT_NONE
    RELU = interface.ACT_RELU
    LEAKY_RELU = interface.ACT_LEAKY
    CLAMP = interface.ACT_CLAMP
    FUNCTION = interface.ACT_FUNCTION


class Activation(NamedTuple):
    """An element-wise function of ``sum + bias``; NaN stays NaN."""

    type: ActivationType = ActivationType.NONE
    low: float = 0.0
    high: float = 0.0
    """Bounds of CLAMP, or immediate values of a FUNCTION."""
    slope: float = 0.0
    """Factor of negative values in LEAKY_RELU."""
    function: str = ""
    """For FUNCTION, in f32: the name of a compiled unary operation, see `pointwise`."""
    in_numpy: Callable[[Array], Array] | None = None
    """For FUNCTION: its implementation in NumPy."""
    scale: float = 1.0
    offset: float = -0.0
    """A FUNCTION's result is multiplied by `scale`, then `offset` is added; -0.0 has no effect."""
    slopes: tuple[float, ...] = ()
    """Instead of `slope`: one for each channel, which kernels of quantised layers support."""

    def fields(self) -> dict[str, Any]:
        """Return the fields of an epilogue; type and function are numbers."""
        from deconv_ir.kernels.pointwise import operation_number

        return {
            "activation": self.type.value,
            "low": self.low,
            "high": self.high,
            "slope": self.slope,
            "function": operation_number(self.function),
            "scale": self.scale,
            "offset": self.offset,
        }

    def apply(self, values: Array) -> Array:
        """Return the function of `values`, in their dtype."""
        if self.type is ActivationType.RELU:
            positive: Array = np.maximum(values, values.dtype.type(0))
            return positive
        if self.type is ActivationType.LEAKY_RELU:
            slope: Any = values.dtype.type(self.slope)
            if self.slopes:
                slope = np.array(self.slopes, values.dtype)[(..., *(None,) * (values.ndim - 2))]
            return np.where(values < 0, values * slope, values)
        if self.type is ActivationType.CLAMP:
            return np.clip(values, values.dtype.type(self.low), values.dtype.type(self.high))
        result = values if self.in_numpy is None else self.in_numpy(values)
        if (self.scale, self.offset) == (1, 0):
            return result
        scaled: Array = result * values.dtype.type(self.scale) + values.dtype.type(self.offset)
        return scaled
