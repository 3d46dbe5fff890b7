"""The rules for broadcasting the shapes of two inputs.

Source: OpenVINO operation specification, 'BroadcastRule Rules For Elementwise
Operations'.
"""

from __future__ import annotations

import enum

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Operation
from deconv_ir.ir.shapes import Shape, broadcast_symbolic, format_shape, intersect_dims, static
from deconv_ir.ops.base import attribute, choice, integer
from deconv_ir.ops.checks import shape_misfit


class BroadcastRule(enum.Enum):
    """The rule by which the shapes of two inputs are broadcast."""

    NONE = "none"
    NUMPY = "numpy"
    PDPD = "pdpd"


AUTO_BROADCAST = choice(BroadcastRule, explicit=BroadcastRule.NONE)


class WithBroadcast(Operation):
    """The attributes for broadcasting the other inputs with the first."""

    auto_broadcast: BroadcastRule = attribute(AUTO_BROADCAST, BroadcastRule.NUMPY)
    auto_broadcast_axis: int = attribute(integer(-1), 0, name="auto_broadcast.auto_broadcast_axis")

    @property
    def realigns(self) -> bool:
        """Whether the other inputs must be reshaped for NumPy's rule."""
        return self.auto_broadcast is BroadcastRule.PDPD

    @property
    def is_sum(self) -> bool:
        return self.type == "Add" and self.auto_broadcast is BroadcastRule.NUMPY

    @property
    def is_product(self) -> bool:
        return self.type == "Multiply" and self.auto_broadcast is BroadcastRule.NUMPY

    def broadcast(self, a: Shape, b: Shape) -> Shape:
        """Broadcast the shapes of two inputs."""
        return broadcast_shapes(a, b, self.auto_broadcast, self.auto_broadcast_axis)

    def aligned_shapes(self, *shapes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return shapes that NumPy's rule broadcasts as the operation does."""
        if not self.realigns:
            return shapes
        first, *others = shapes
        return first, *(static(align(first, s, self.auto_broadcast_axis)) for s in others)

    def aligned(self, inputs: Arrays) -> Arrays:
        """Reshape arrays to the `aligned_shapes`."""
        if not self.realigns:
            return inputs
        shapes = self.aligned_shapes(*(array.shape for array in inputs))
        return [array.reshape(shape) for array, shape in zip(inputs, shapes, strict=True)]


def not_broadcast(name: str, shape: Shape, data: Shape) -> ShapeError:
    """Return the error for an input that cannot be broadcast to the data."""
    return shape_misfit("broadcast", name, shape, "cannot be broadcast to data", data)


def broadcast_dim(a: Dim, b: Dim) -> Dim | None:
    """Broadcast two dims by NumPy's rule; None if they do not fit."""
    if a == 1:
        return b
    if b == 1:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return a if a == b else broadcast_symbolic(a, b)
    common = intersect_dims(a, b)
    if isinstance(a, int) or isinstance(b, int):
        # A known dim other than 1 is the result, if the other can be equal to it, or 1.
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
    """Broadcast with a dim: one that may be 1 keeps the other dim, any other narrows it."""
    return dim if low <= 1 else common


def broadcast_shapes(a: Shape, b: Shape, rule: BroadcastRule, axis: int = -1) -> Shape:
    """Broadcast two shapes; PDPD: `b` starts at the axis in `a`; -1: aligned at the end."""
    if a is None or b is None:
        if rule is BroadcastRule.NUMPY or (a is None and b is None):
            return None
        return a if rule is BroadcastRule.PDPD else (a if b is None else b)
    if rule is BroadcastRule.PDPD:
        b = align(a, b, axis)
    if rule is BroadcastRule.NONE and len(a) != len(b):
        raise _misfit(a, b, rule)
    rank = max(len(a), len(b))
    dims: list[Dim] = []
    for x, y in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        dim = intersect_dims(x, y) if rule is BroadcastRule.NONE else broadcast_dim(x, y)
        if rule is BroadcastRule.PDPD and dim is not None:
            dim = x if y == 1 else intersect_dims(x, dim)
        if dim is None:
            raise _misfit(a, b, rule)
        dims.append(dim)
    return tuple(dims)


def broadcasts_to(shape: tuple[Dim, ...], wanted: tuple[Dim, ...]) -> bool:
    """Whether a shape may be broadcast to another by NumPy's rule."""
    missing = len(wanted) - len(shape)
    return missing >= 0 and all(
        a == 1 or intersect_dims(a, b) is not None or intersect_dims(a, 1) is not None
        for a, b in zip(shape, wanted[missing:], strict=True)
    )


def align(a: tuple[Dim, ...], b: tuple[Dim, ...], axis: int) -> tuple[Dim, ...]:
    """Place `b` at PDPD's axis, with ones around it."""
    start = len(a) - len(b) if axis == -1 else axis
    if axis != -1:
        while b and b[-1] == 1 and start + len(b) > len(a):
            b = b[:-1]
    if start < 0 or start + len(b) > len(a):
        raise _misfit(a, b, BroadcastRule.PDPD)
    return (1,) * start + b + (1,) * (len(a) - start - len(b))


def _misfit(a: Shape, b: Shape, rule: BroadcastRule) -> ShapeError:
    message = (
        f"shapes {format_shape(a)} and {format_shape(b)} do not fit (auto_broadcast={rule.value})"
    )
    return ShapeError(message, expected=format_shape(a), actual=format_shape(b), rule="broadcast")
