"""Arithmetic on the known elements of small integer tensors.

Shapes that a graph computes travel as tuples of elements, each an int or an
`Interval`.  An element, other than a dim, may be negative, so an interval may
begin below zero here; `as_dims` converts elements to dims.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Sequence

from deconv_ir.ir.dtypes import Array, ElementType, from_numpy
from deconv_ir.ir.geometry import UNKNOWN, Dim, Interval, bounds, interval
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import (
    Shape,
    element_count,
    is_static,
    is_symbolic,
    larger,
    smaller,
    static,
)
from deconv_ir.ops.checks import VALUE_LIMIT

LOWEST = -(2**63)
ANY = Interval(LOWEST, None)
"""An unknown element."""

Ends = tuple[float, float]
"""Smallest and largest value; an int, or an infinity if unbounded."""


def ends(value: Dim) -> Ends:
    """Return the ends of an element."""
    low, high = bounds(value)
    return (-math.inf if low <= LOWEST else low, math.inf if high is None else high)


def between(low: float, high: float) -> Dim:
    """Return the element between two ends; the inverse of `ends`."""
    first = LOWEST if low == -math.inf else whole(low)
    return interval(first, None if high == math.inf else whole(high))


def whole(end: float) -> int:
    """Return an end that is not an infinity as an int; a symbolic size stays one."""
    return end if isinstance(end, int) else int(end)


def as_dim(value: Dim) -> Dim:
    """Return an element as a dim; an unknown one is at least 0."""
    if isinstance(value, int) or value.min >= 0:
        return value
    if value.max is not None and value.max < 0:
        return value
    return interval(0, value.max)


def as_dims(value: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return elements as dims."""
    return tuple(map(as_dim, value))


def wrap(value: int, element_type: ElementType | None) -> int:
    """Wrap an exact result to an integer type, as two's complement does."""
    if element_type is None or not element_type.is_integer or type(value) is not int:
        return value  # a symbolic size, which is small
    modulus = 1 << element_type.bits
    value %= modulus
    return value - modulus if element_type.kind == "int" and value >= modulus // 2 else value


class OnValues:
    """An operation on two partly known integers.

    `function` takes two ints and returns None if the result is not defined.  `ends` takes the ends
    of two elements; without it, the result is known only if both elements are.
    """

    __slots__ = ("ends", "function")

    def __init__(
        self,
        function: Callable[[int, int], int | None],
        ends: Callable[[Ends, Ends], Ends] | None = None,
    ) -> None:
        self.function = function
        self.ends = ends

    def __call__(self, a: Dim, b: Dim, element_type: ElementType | None) -> Dim:
        """Apply the operation to two elements."""
        if isinstance(a, int) and isinstance(b, int):
            result = self.function(a, b)
            return ANY if result is None else wrap(result, element_type)
        if self.ends is None:
            return ANY
        return between(*self.ends(ends(a), ends(b)))


def actual(array: Array, element_type: ElementType | None = None) -> TensorInfo:
    """Return the info of an array, with its value; some element types share a dtype."""
    element_type = element_type or from_numpy(array.dtype)
    value = reals = None
    if element_type is not None and array.size <= VALUE_LIMIT:
        if element_type.is_float:
            reals = tuple(map(float, array.ravel()))
        elif element_type.kind != "string":
            value = tuple(map(int, array.ravel()))
    return TensorInfo(array.shape, element_type, value, reals)


def rounded(reals: Sequence[float], element_type: ElementType) -> tuple[float, ...] | None:
    """Round known numbers to an element type; None if a number overflows, or for other types."""
    code = {"f16": "e", "f32": "f", "f64": "d"}.get(element_type.name)
    if code is None:
        return None
    form = f"{len(reals)}{code}"
    try:
        return struct.unpack(form, struct.pack(form, *reals))
    except OverflowError:
        return None


def on_reals(
    rule: Callable[..., float], element_type: ElementType | None, *operands: Sequence[float]
) -> tuple[float, ...] | None:
    """Apply a rule to known numbers; None unless all numbers and results are finite.

    For other numbers, Python's functions raise or differ from arithmetic on arrays.
    """
    if element_type is None or not all(map(math.isfinite, itertools.chain(*operands))):
        return None
    try:
        results = [float(rule(*numbers)) for numbers in zip(*operands, strict=True)]
    except (ArithmeticError, ValueError):
        return None
    return rounded(results, element_type) if all(map(math.isfinite, results)) else None


def corners(function: Callable[[float, float], float]) -> Callable[[Ends, Ends], Ends]:
    """Extend a function that is monotone in each argument to intervals."""

    def lifted(a: Ends, b: Ends) -> Ends:
        values = [function(x, y) for x in a for y in b]
        return min(values), max(values)

    return lifted


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def _over(a: float, b: float) -> float:
    """Floor division that accepts infinities."""
    if math.isinf(b):
        return 0 if a >= 0 else -1
    return a * math.copysign(1, b) if math.isinf(a) else a // b


def _floor_divide(a: Ends, b: Ends) -> Ends:
    if b[0] <= 0 <= b[1]:
        return -math.inf, math.inf
    return corners(_over)(a, b)


def _truncate_divide(a: Ends, b: Ends) -> Ends:
    if a[0] < 0 or b[0] <= 0:
        return -math.inf, math.inf
    return corners(_over)(a, b)


def _modulo(a: Ends, b: Ends) -> Ends:
    if b[0] <= 0:
        return -math.inf, math.inf
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return 0, b[1] - 1


def _truncated_modulo(a: Ends, b: Ends) -> Ends:
    return _modulo(a, b) if a[0] >= 0 else (-math.inf, math.inf)


def _power(a: Ends, b: Ends) -> Ends:
    if a[0] < 1 or b[0] < 0 or math.isinf(a[1]) or math.isinf(b[1]) or b[1] > 64:
        return (1, math.inf) if a[0] >= 1 and b[0] >= 0 else (-math.inf, math.inf)
    return a[0] ** b[0], a[1] ** b[1]


def truncated_quotient(a: int, b: int) -> int:
    """Divide, rounding toward zero as in C."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


ADD = OnValues(lambda a, b: a + b, corners(lambda x, y: x + y))
SUBTRACT = OnValues(lambda a, b: a - b, lambda a, b: (a[0] - b[1], a[1] - b[0]))
MULTIPLY = OnValues(lambda a, b: a * b, corners(_times))
MAXIMUM = OnValues(larger, corners(max))
MINIMUM = OnValues(smaller, corners(min))
FLOOR_DIVIDE = OnValues(lambda a, b: a // b if b else None, _floor_divide)
TRUNCATE_DIVIDE = OnValues(lambda a, b: truncated_quotient(a, b) if b else None, _truncate_divide)
FLOOR_MOD = OnValues(lambda a, b: a % b if b else None, _modulo)
MOD = OnValues(lambda a, b: a - b * truncated_quotient(a, b) if b else None, _truncated_modulo)
POWER = OnValues(lambda a, b: a**b if 0 <= b <= 64 else None, _power)


def exceeds(a: int, b: int) -> int:
    """Return 1 if a > b, and 0 otherwise; of symbolic sizes the difference, if it is 0 or 1."""
    if is_symbolic(a) or is_symbolic(b):
        difference = a - b
        if is_symbolic(difference) and difference.is_flag:  # type: ignore[attr-defined]
            return difference
    return int(a > b)


def _comparison(function: Callable[[int, int], bool]) -> OnValues:
    return OnValues(lambda a, b: int(function(a, b)), lambda a, b: (0, 1))


EQUAL = OnValues(lambda a, b: int(a == b), lambda a, b: (0, 0 if a[1] < b[0] or b[1] < a[0] else 1))
NOT_EQUAL = OnValues(
    lambda a, b: int(a != b), lambda a, b: (1 if a[1] < b[0] or b[1] < a[0] else 0, 1)
)
GREATER = OnValues(lambda a, b: exceeds(a, b), lambda a, b: (0, 1))
GREATER_EQUAL = _comparison(operator.ge)
LESS = _comparison(operator.lt)
LESS_EQUAL = _comparison(operator.le)


def combine(
    rule: OnValues | None,
    a: TensorInfo,
    b: TensorInfo,
    shape: Shape,
    element_type: ElementType | None,
) -> tuple[Dim, ...] | None:
    """Apply a rule to known small tensors that are broadcast to a shape, element by element."""
    if rule is None or a.value is None or b.value is None or not is_static(shape):
        return None
    count = element_count(static(shape))
    if count > VALUE_LIMIT:
        return None
    rows = []
    for info in (a, b):
        assert info.value is not None
        if len(info.value) == count and (len(info.shape or ()) <= 1 or info.shape == shape):
            rows.append(info.value)
        elif len(info.value) == 1:
            rows.append(info.value * count)
        else:
            return None
    return tuple(rule(x, y, element_type) for x, y in zip(*rows, strict=True))


def unknown_dims(rank: int) -> tuple[Dim, ...]:
    """Return a shape of known rank and unknown dims."""
    return (UNKNOWN,) * rank
