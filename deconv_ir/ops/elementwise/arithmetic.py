"""Elementwise operations on two arrays."""

from __future__ import annotations

import functools
import operator
from typing import Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Infos, TensorInfo
from deconv_ir.ops import values
from deconv_ir.ops.base import attribute, boolean, operation
from deconv_ir.ops.elementwise.elementwise import Binary, register, ufunc_into
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import OnValues

binary = functools.partial(register, Binary, __name__)


def _power(a: Any, b: Any) -> Any:
    """Power; an integer to a negative power is the exact quotient, truncated toward zero."""
    if a.dtype.kind != "i" or not (b < 0).any():
        return np.power(a, b)
    a, b = np.broadcast_arrays(a, b)
    odd = (b & 1).astype(bool)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(odd, -1, 1), 0)).astype(a.dtype)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


def _squared_difference(a: Any, b: Any) -> Any:
    difference = np.subtract(a, b)
    return np.multiply(difference, difference)


binary(
    "Add",
    "add",
    "Sum; integers wrap.",
    on_values=values.ADD,
    on_reals=operator.add,
    arithmetic=True,
)
binary(
    "Subtract",
    "subtract",
    "Difference; integers wrap.",
    on_values=values.SUBTRACT,
    on_reals=operator.sub,
    arithmetic=True,
)
binary(
    "Multiply",
    "multiply",
    "Product; integers wrap.",
    on_values=values.MULTIPLY,
    on_reals=operator.mul,
    arithmetic=True,
)
binary(
    "Maximum",
    "maximum",
    "The greater of two elements; NaN if one is.",
    on_values=values.MAXIMUM,
    on_reals=max,
    selects=True,
)
binary(
    "Minimum",
    "minimum",
    "The smaller of two elements; NaN if one is.",
    on_values=values.MINIMUM,
    on_reals=min,
    selects=True,
)
binary("Mod", "fmod", "Remainder, with the sign of the dividend.", on_values=values.MOD)
binary("FloorMod", "mod", "Remainder, with the sign of the divisor.", on_values=values.FLOOR_MOD)
binary(
    "Power",
    _power,
    "a to the power of b.",
    on_values=values.POWER,
    compiled="power",
)
binary(
    "SquaredDifference",
    _squared_difference,
    "Square of the difference; integers wrap.",
    compiled="squared_difference",
    arithmetic=True,
)

compare = functools.partial(binary, family="any", boolean_result=True)
compare("Equal", "equal", "Whether a == b.", on_values=values.EQUAL)
compare("NotEqual", "not_equal", "Whether a != b.", on_values=values.NOT_EQUAL)
compare("Greater", "greater", "Whether a > b.", on_values=values.GREATER)
compare("GreaterEqual", "greater_equal", "Whether a >= b.", on_values=values.GREATER_EQUAL)
compare("Less", "less", "Whether a < b.", on_values=values.LESS)
compare("LessEqual", "less_equal", "Whether a <= b.", on_values=values.LESS_EQUAL)

binary("LogicalAnd", "logical_and", "Logical and.", family="boolean")
binary("LogicalOr", "logical_or", "Logical or.", family="boolean")
binary("LogicalXor", "logical_xor", "Logical exclusive or.", family="boolean")
binary("Xor", "logical_xor", "LogicalXor under its first name.", family="boolean")

binary("BitwiseAnd", "bitwise_and", "Bitwise and.", version="opset13", family="bits")
binary("BitwiseOr", "bitwise_or", "Bitwise or.", version="opset13", family="bits")
binary("BitwiseXor", "bitwise_xor", "Bitwise exclusive or.", version="opset13", family="bits")
binary("BitwiseLeftShift", "left_shift", "Bits shifted left.", version="opset15", family="integer")
binary(
    "BitwiseRightShift", "right_shift", "Bits shifted right.", version="opset15", family="integer"
)


@operation(
    "Divide-1(a, b)",
    "f32[2,3,4], f32[3,1] -> f32[2,3,4]",
    "i32[2,3], i32[] -> i32[2,3] | m_pythondiv=false",
)
class Divide(Binary):
    """Quotient."""

    on_reals = staticmethod(operator.truediv)
    into = staticmethod(ufunc_into("true_divide"))
    compiled = "true_divide"
    arithmetic = True

    m_pythondiv: bool = attribute(boolean(), True)

    def value_rule(self) -> OnValues | None:
        """Round down or toward zero."""
        return values.FLOOR_DIVIDE if self.m_pythondiv else values.TRUNCATE_DIVIDE

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        element_type = output.element_type
        is_float = element_type is not None and element_type.is_float
        return is_float and Binary.accepts_out(self, inputs, output)

    def apply(self, *arrays: Array) -> Array:
        """Divide; an integer divided by 0 gives 0."""
        a, b = arrays
        if a.dtype.kind == "f":
            quotient: Array = np.true_divide(a, b)
        else:
            quotient = np.floor_divide(a, b)
            if not self.m_pythondiv and a.dtype.kind == "i":
                inexact = (quotient < 0) & (quotient * b != a) & (b != 0)
                quotient = quotient + inexact.astype(a.dtype)
        return quotient
