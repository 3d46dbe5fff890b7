"""Shapes: tuples of dims, or None for a dynamic rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from deconv_ir.ir.geometry import UNKNOWN, Dim, Interval, bounds, interval

Shape = tuple[Dim, ...] | None
"""A shape of an array: its dims, or None for a dynamic rank."""

MAX_EXTENT = 2**63 - 1
MAX_RANK = 64
"""NumPy's limit."""
MAX_BYTES = 2**63 - 1


def parse_dim(text: str) -> Dim:
    """Parse ``3``, ``-1``, ``?``, ``1..8``, ``1..`` or ``..8``."""
    text = text.strip()
    if text in ("-1", "?"):
        return UNKNOWN
    low, dots, high = text.partition("..")
    if not dots:
        return _extent(text)
    if not low and not high:
        raise ValueError(f"invalid dim {text!r}")
    first = _extent(low) if low else 0
    last = _extent(high) if high else None
    if last is not None and last < first:
        raise ValueError(f"the range {text!r} is empty")
    return interval(first, last)


def _extent(text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > MAX_EXTENT:
        raise ValueError(
            f"invalid dim {text!r} (expected a whole number from 0, '-1', '?' or a range 'a..b')"
        )
    return int(text)


@lru_cache(maxsize=1024)
def parse_shape(text: str) -> Shape:
    """Parse a comma-separated list of dims; ``...`` is a dynamic rank, ```` a scalar."""
    text = text.strip().removeprefix("[").removesuffix("]").strip()
    if text == "...":
        return None
    return tuple(parse_dim(t) for t in text.split(",")) if text else ()


def format_shape(shape: Shape) -> str:
    """Format a shape: ``[1,3,?,2..8]``; ``[...]`` for a dynamic rank."""
    return "[...]" if shape is None else f"[{','.join(map(str, shape))}]"


def format_sizes(sizes: Sequence[int | str] | None) -> str:
    """Format a shape whose dims may be texts of expressions: ``[N,4,2*H,2*W]``."""
    return "[...]" if sizes is None else f"[{','.join(map(str, sizes))}]"


def dim_text(dim: Dim) -> str:
    """Write a dim as a port declares it: -1 if it is dynamic."""
    return str(dim) if isinstance(dim, int) else "-1"


def declared_form(shape: Shape) -> tuple[str, ...]:
    """Return the dims that a port of a tensor declares; none for a dynamic rank."""
    return tuple(map(dim_text, shape or ()))


def is_static(shape: Shape) -> bool:
    """Whether the rank and every dim are known."""
    return shape is not None and not any(isinstance(d, Interval) for d in shape)


def largest(shape: Shape) -> Shape:
    """Return the largest shape that there may be; the same if that is not known."""
    most = None if shape is None else [bounds(dim)[1] for dim in shape]
    if most is None or None in most:
        return shape
    return tuple(dim for dim in most if dim is not None)


def static(shape: Shape) -> tuple[int, ...]:
    """Return a static shape as plain ints."""
    if shape is None:
        raise ValueError("the rank is dynamic")
    dims = tuple(d for d in shape if isinstance(d, int))
    if len(dims) != len(shape):
        raise ValueError(f"{format_shape(shape)} has a dynamic dim")
    return dims


def intersect_dims(a: Dim, b: Dim) -> Dim | None:
    """Return the intersection of two dims; None if it is empty."""
    if isinstance(a, int) and isinstance(b, int):
        return a if a == b else _equated(a, b)
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    low = max(a_low, b_low)
    highs = [h for h in (a_high, b_high) if h is not None]
    high = min(highs) if highs else None
    if high is not None and high < low:
        return None
    return interval(low, high)


def is_symbolic(dim: Dim) -> bool:
    """Whether a dim is a `SymbolicSize`, an int that records how it was computed."""
    return isinstance(dim, int) and type(dim) is not int


def _equated(a: int, b: int) -> int | None:
    """Return the common value of unequal numbers: None, unless they are symbolic sizes."""
    found: int | None
    for one, other in ((a, b), (b, a)):
        if is_symbolic(one):
            found = one.equate(other)  # type: ignore[attr-defined]
            return found
    return None


def broadcast_symbolic(a: int, b: int) -> int | None:
    """Broadcast unequal numbers, neither of them 1: None, unless they are symbolic sizes."""
    found: int | None
    for one, other in ((a, b), (b, a)):
        if is_symbolic(one):
            found = one.broadcast(other)  # type: ignore[attr-defined]
            return found
    return None


def smaller(a: int, b: int) -> int:
    """Return the smaller of two numbers; symbolic sizes record the choice."""
    return _extreme(a, b, is_largest=False)


def larger(a: int, b: int) -> int:
    """Return the larger of two numbers; symbolic sizes record the choice."""
    return _extreme(a, b, is_largest=True)


def _extreme(a: int, b: int, *, is_largest: bool) -> int:
    found: int
    for one, other in ((a, b), (b, a)):
        if is_symbolic(one):
            found = one.extreme(other, is_largest=is_largest)  # type: ignore[attr-defined]
            return found
    return max(a, b) if is_largest else min(a, b)


def compatible(a: Shape, b: Shape) -> bool:
    """Whether some static shape matches both."""
    if a is None or b is None or a == b:
        return True
    if len(a) != len(b):
        return False
    return all(intersect_dims(x, y) is not None for x, y in zip(a, b, strict=True))


def intersect(a: Shape, b: Shape) -> Shape:
    """Return the intersection of two shapes."""
    if a is None:
        return b
    if b is None:
        return a
    if len(a) == len(b):
        dims = [intersect_dims(x, y) for x, y in zip(a, b, strict=True)]
        found = tuple(d for d in dims if d is not None)
        if len(found) == len(dims):
            return found
    raise ValueError(f"{format_shape(a)} and {format_shape(b)} are incompatible")


def element_count(shape: Sequence[int]) -> int:
    """Return the number of elements of a static shape (exact, without overflow)."""
    return math.prod(shape)


def size_error(shape: Shape, bits: int) -> str | None:
    """Return the reason why no array can have this shape; None if an array can.

    Dynamic dims count with their lower bound; `bits` is the size of an element.
    """
    if shape is None:
        return None
    if len(shape) > MAX_RANK:
        return f"a tensor of rank {len(shape)}: more than {MAX_RANK} dims are not supported"
    count = 1
    for dim in shape:
        # As in NumPy, the other dims are bounded even if one is 0.
        count *= max(1, dim if isinstance(dim, int) else dim.min)
    if count * bits > MAX_BYTES * 8:
        return (
            f"a tensor of shape {format_shape(shape)} takes {count * bits // 8} bytes, "
            "more than the 2^63 - 1 that can be addressed"
        )
    return None
