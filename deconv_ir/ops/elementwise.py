"""Elementwise operations on one or two arrays: one small class each.

A binary operation names its NumPy function and, where shapes are computed
with it, its meaning on dims.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..errors import ShapeError
from ..geometry import Dim, Interval, bounds, interval
from ..model import Context, Operation, TensorInfo
from ..shapes import Shape, format_shape, intersect_dims, static
from .base import attribute, choice, integer, operation
from .deconvolution import merged_type

if TYPE_CHECKING:
    from ..dtypes import Array


class Broadcast(enum.Enum):
    """How the shapes of two inputs are made the same."""

    NONE = "none"
    NUMPY = "numpy"
    PDPD = "pdpd"


def broadcast_dim(a: Dim, b: Dim) -> Dim | None:
    """Broadcast one dim by NumPy's rule; None where the two do not fit."""
    if a == 1:
        return b
    if b == 1:
        return a
    common = intersect_dims(a, b)
    if isinstance(a, int) or isinstance(b, int):
        # A known dim other than 1 decides, if the other can be it, or 1.
        known, other = (a, b) if isinstance(a, int) else (b, a)
        low, high = bounds(other)
        return known if common is not None or (low <= 1 and (high is None or high >= 1)) else None
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    if a_low > 1 and b_low > 1:
        return common
    if a_low > 1:
        return a if common is None else _or_one(common, b_low, a)
    if b_low > 1:
        return b if common is None else _or_one(common, a_low, b)
    high = None if a_high is None or b_high is None else max(a_high, b_high)
    return interval(min(a_low, b_low), high)


def _or_one(common: Dim, low: int, dim: Dim) -> Dim:
    """A dim that may be 1 leaves the other as it is; one that may not narrows it."""
    return dim if low <= 1 else common


def broadcast_shapes(a: Shape, b: Shape, rule: Broadcast, axis: int = -1) -> Shape:
    """Broadcast two shapes.

    Parameters
    ----------
    a, b : Shape
    rule : Broadcast
        OpenVINO documents, 'Broadcast Rules For Elementwise Operations'.
    axis : int
        PDPD: where `b` starts in `a`; -1: it ends where `a` does.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    """
    if a is None or b is None:
        if rule is Broadcast.NUMPY or (a is None and b is None):
            return None
        return a if rule is Broadcast.PDPD else (a if b is None else b)
    if rule is Broadcast.PDPD:
        b = _align(a, b, axis)
    if rule is Broadcast.NONE and len(a) != len(b):
        raise _misfit(a, b, rule)
    rank = max(len(a), len(b))
    dims: list[Dim] = []
    for x, y in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        dim = intersect_dims(x, y) if rule is Broadcast.NONE else broadcast_dim(x, y)
        if rule is Broadcast.PDPD and dim is not None:
            dim = x if y == 1 else intersect_dims(x, dim)
        if dim is None:
            raise _misfit(a, b, rule)
        dims.append(dim)
    return tuple(dims)


def _align(a: tuple[Dim, ...], b: tuple[Dim, ...], axis: int) -> tuple[Dim, ...]:
    """Put `b` where PDPD's axis says, with ones around it."""
    start = len(a) - len(b) if axis == -1 else axis
    if axis != -1:
        while b and b[-1] == 1 and start + len(b) > len(a):
            b = b[:-1]
    if start < 0 or start + len(b) > len(a):
        raise _misfit(a, b, Broadcast.PDPD)
    return (1,) * start + b + (1,) * (len(a) - start - len(b))


def _misfit(a: Shape, b: Shape, rule: Broadcast) -> ShapeError:
    return ShapeError(
        f"shapes {format_shape(a)} and {format_shape(b)} do not fit (auto_broadcast={rule.value})",
        expected=format_shape(a),
        actual=format_shape(b),
        rule="broadcast",
    )


def combine_values(rule: OnDims | None, a: TensorInfo, b: TensorInfo) -> tuple[Dim, ...] | None:
    """Apply a function to known small tensors, element by element."""
    if rule is None or a.value is None or b.value is None:
        return None
    x, y = a.value, b.value
    if len(x) != len(y):
        if len(x) != 1 and len(y) != 1:
            return None
        x, y = (x * len(y), y) if len(x) == 1 else (x, y * len(x))
    result = [_combine(rule.function, p, q) for p, q in zip(x, y, strict=True)]
    return tuple(result)


def _combine(function: Callable[[int, int], int], a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return function(a, b)
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    if a_high is None or b_high is None:
        # Without an upper end only a function that grows with both has a lower one.
        grows = function(3, 5) < function(4, 5) and function(3, 5) < function(3, 6)
        return Interval(max(0, function(a_low, b_low)) if grows else 0)
    ends = [function(x, y) for x in (a_low, a_high) for y in (b_low, b_high)]
    return interval(max(0, min(ends)), max(0, *ends))


@dataclass(frozen=True, slots=True)
class OnDims:
    """What a binary operation means on the dims of shapes."""

    function: Callable[[int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Operation):
    """Two arrays, broadcast, give one.

    Attributes
    ----------
    auto_broadcast : Broadcast
        numpy (the default), none or pdpd.
    auto_broadcast_axis : int
        pdpd only: where the second shape starts in the first; -1: it ends
        where the first does.
    """

    function: ClassVar[str] = ""
    """Name of the NumPy function."""
    on_dims: ClassVar[OnDims | None] = None
    """Its meaning on the dims of shapes."""

    auto_broadcast: Broadcast = attribute(choice(Broadcast), Broadcast.NUMPY)
    auto_broadcast_axis: int = attribute(integer(-1), 0, name="auto_broadcast.auto_broadcast_axis")

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Broadcast the shapes; the element types must be the same."""
        a, b = inputs
        element_type = merged_type(inputs, self.inputs)
        shape = broadcast_shapes(a.shape, b.shape, self.auto_broadcast, self.auto_broadcast_axis)
        return (TensorInfo(shape, element_type, combine_values(self.on_dims, a, b)),)

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Name the shapes that are broadcast."""
        a, b = inputs
        return f"broadcast of {format_shape(a.shape)} and {format_shape(b.shape)}"

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Apply the function."""
        import numpy as np

        a, b = inputs
        if self.auto_broadcast is Broadcast.PDPD:
            b = b.reshape(static(_align(a.shape, b.shape, self.auto_broadcast_axis)))
        with np.errstate(all="ignore"):
            return (getattr(np, self.function)(a, b),)


@operation("Add", "opset1", inputs=("a", "b"))
class Add(Binary):
    """Sum; integers wrap."""

    __slots__ = ()
    function = "add"
    on_dims = OnDims(lambda a, b: a + b)


@operation("Subtract", "opset1", inputs=("a", "b"))
class Subtract(Binary):
    """Difference; integers wrap."""

    __slots__ = ()
    function = "subtract"
    on_dims = OnDims(lambda a, b: a - b)


@operation("Multiply", "opset1", inputs=("a", "b"))
class Multiply(Binary):
    """Product; integers wrap."""

    __slots__ = ()
    function = "multiply"
    on_dims = OnDims(lambda a, b: a * b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(Operation):
    """One array gives another of the same shape and type."""

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Shape and type are those of the input."""
        return (TensorInfo(inputs[0].shape, inputs[0].element_type),)

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Name the shape of the input."""
        return f"the shape of the input, {format_shape(inputs[0].shape)}"

    def apply(self, data: Array) -> Array:
        """Compute the output."""
        raise NotImplementedError

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Compute the output, keeping the element type."""
        import numpy as np

        with np.errstate(all="ignore"):
            return (self.apply(inputs[0]),)


@operation("ReLU", "opset1", inputs=("data",))
class ReLU(Unary):
    """max(x, 0); NaN stays NaN."""

    __slots__ = ()

    def apply(self, data: Array) -> Array:
        """Compute the output."""
        import numpy as np

        result: Array = np.maximum(data, data.dtype.type(0))
        return result
