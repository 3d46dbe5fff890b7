"""Elementwise operations on one array, without attributes: one line each."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .base import attribute, boolean, choice, operation
from .elementwise import Unary, unary

if TYPE_CHECKING:
    from ..dtypes import Array


def softplus(np: Any, x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def hard_sigmoid_6(np: Any, x: Any) -> Any:
    """min(max(x + 3, 0), 6) / 6."""
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


def erf(x: Any) -> Any:
    """Return the error function, in the precision of its argument."""
    from scipy.special import erf as function

    return function(x)


unary("Abs", lambda np, x: np.abs(x), "Absolute value; the smallest integer stays as it is.")
unary("Negative", lambda np, x: np.negative(x), "The opposite; integers wrap.")
unary("Sign", lambda np, x: np.sign(x), "-1, 0 or 1; NaN stays NaN.")
unary("Floor", lambda np, x: np.floor(x), "Round down.", on_reals=math.floor)
unary("Ceiling", lambda np, x: np.ceil(x), "Round up.", on_reals=math.ceil)
unary("ReLU", lambda np, x: np.maximum(x, x.dtype.type(0)), "max(x, 0); NaN stays NaN.")
unary("Exp", lambda np, x: np.exp(x), "e to the power of x.", through_reals=True)
unary("Log", lambda np, x: np.log(x), "Natural logarithm.", through_reals=True)
unary("Sqrt", lambda np, x: np.sqrt(x), "Square root.", through_reals=True, on_reals=math.sqrt)
unary("Sin", lambda np, x: np.sin(x), "Sine of x in radians.", through_reals=True)
unary("Cos", lambda np, x: np.cos(x), "Cosine of x in radians.", through_reals=True)
unary("Tan", lambda np, x: np.tan(x), "Tangent of x in radians.", through_reals=True)
unary("Asin", lambda np, x: np.arcsin(x), "Arcsine, in radians.", through_reals=True)
unary("Acos", lambda np, x: np.arccos(x), "Arccosine, in radians.", through_reals=True)
unary("Atan", lambda np, x: np.arctan(x), "Arctangent, in radians.", through_reals=True)
unary("Sinh", lambda np, x: np.sinh(x), "Hyperbolic sine.", through_reals=True)
unary("Cosh", lambda np, x: np.cosh(x), "Hyperbolic cosine.", through_reals=True)
unary("Tanh", lambda np, x: np.tanh(x), "Hyperbolic tangent.", through_reals=True)
unary(
    "Asinh",
    lambda np, x: np.arcsinh(x),
    "Inverse hyperbolic sine.",
    version="opset4",
    through_reals=True,
)
unary(
    "Acosh",
    lambda np, x: np.arccosh(x),
    "Inverse hyperbolic cosine.",
    version="opset4",
    through_reals=True,
)
unary(
    "Atanh",
    lambda np, x: np.arctanh(x),
    "Inverse hyperbolic tangent.",
    version="opset4",
    through_reals=True,
)
unary("Erf", lambda np, x: erf(x), "Gauss error function.", through_reals=True)
unary("Sigmoid", lambda np, x: 1 / (1 + np.exp(-x)), "1 / (1 + exp(-x)).", through_reals=True)
unary("SoftPlus", softplus, "log(1 + exp(x)).", version="opset4", family="float")
unary(
    "Mish",
    lambda np, x: x * np.tanh(softplus(np, x)),
    "x * tanh(SoftPlus(x)).",
    version="opset4",
    family="float",
)
unary(
    "HSwish",
    lambda np, x: x * hard_sigmoid_6(np, x),
    "x * min(max(x + 3, 0), 6) / 6.",
    version="opset4",
    family="float",
)
unary("HSigmoid", hard_sigmoid_6, "min(max(x + 3, 0), 6) / 6.", version="opset5", family="float")
unary(
    "SoftSign",
    lambda np, x: x / (1 + np.abs(x)),
    "x / (1 + |x|).",
    version="opset9",
    family="float",
)
unary("LogicalNot", lambda np, x: np.logical_not(x), "The opposite.", family="boolean")
unary(
    "BitwiseNot",
    lambda np, x: np.invert(x),
    "The opposite of every bit.",
    version="opset13",
    family="bits",
)
unary(
    "IsNaN",
    lambda np, x: np.isnan(x),
    "Whether it is not a number.",
    version="opset10",
    family="float",
    boolean_result=True,
)
unary(
    "IsFinite",
    lambda np, x: np.isfinite(x),
    "Whether it is neither infinite nor NaN.",
    version="opset10",
    family="float",
    boolean_result=True,
)


class RoundMode(enum.Enum):
    """Where a number halfway between two integers goes."""

    HALF_TO_EVEN = "half_to_even"
    HALF_AWAY_FROM_ZERO = "half_away_from_zero"


@operation(
    "Round",
    "opset5",
    inputs=("data",),
    examples=("f32[2,3] -> f32[2,3]", "f32[2] -> f32[2] | mode=half_away_from_zero"),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Unary):
    """Round to the nearest integer.

    Source: OpenVINO operation specification, Round-5.

    Attributes
    ----------
    mode : RoundMode
        Where halves go.
    """

    mode: RoundMode = attribute(choice(RoundMode), RoundMode.HALF_TO_EVEN)

    def apply(self, np: Any, data: Array) -> Array:
        """Compute the output."""
        result: Array
        if data.dtype.kind != "f" or self.mode is RoundMode.HALF_TO_EVEN:
            result = np.rint(data) if data.dtype.kind == "f" else data
        else:
            # Not floor(|x| + 0.5): the sum of the number below 0.5 and 0.5 rounds to 1.
            whole = np.trunc(data)
            result = whole + np.copysign(np.abs(data - whole) >= 0.5, data)
        return result


@operation(
    "IsInf",
    "opset10",
    inputs=("data",),
    examples=("f32[2,3] -> boolean[2,3]", "f32[2] -> boolean[2] | detect_negative=false"),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class IsInf(Unary):
    """Whether a number is infinite.

    Source: OpenVINO operation specification, IsInf-10.

    Attributes
    ----------
    detect_negative, detect_positive : bool
        Which infinities count.
    """

    family = "float"
    boolean_result = True

    detect_negative: bool = attribute(boolean(), True)
    detect_positive: bool = attribute(boolean(), True)

    def apply(self, np: Any, data: Array) -> Array:
        """Compute the output."""
        found: Array = np.isinf(data)
        if not self.detect_negative:
            found = found & ~(data < 0)
        if not self.detect_positive:
            found = found & ~(data > 0)
        return found
