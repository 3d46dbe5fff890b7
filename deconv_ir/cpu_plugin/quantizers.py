"""Quantised tensors as the plugin sees them: the scales and zero points of their codes."""

from __future__ import annotations

import math
import struct
from typing import Final, NamedTuple

from deconv_ir.cpu_plugin.conditions import Int8Condition, UnmetCondition
from deconv_ir.ir.shapes import Shape

LEVELS: Final = frozenset({15, 16, 255, 256})
"""Numbers of levels of a FakeQuantize that the plugin decomposes."""
WEIGHT_LEVELS: Final = frozenset({255, 256})
_SYMMETRIC_LEVELS: Final = frozenset({16, 255, 256})
"""Numbers of levels with which a symmetric range has no zero point."""
_FULL_LEVELS: Final = frozenset({16, 256})
"""Numbers of levels of a range that has one more negative level."""
_ASYMMETRY: Final = 0.002
_SMALL: Final = 1e-6
_FEWEST_STEPS: Final = (1.4, 2.0)
"""Steps of a joined range: with fewer than the first it is not aligned, with the second it is."""

_ENDS: Final = {"u8": (0.0, 255.0), "i8": (-128.0, 127.0)}


class OutputRanges(NamedTuple):
    """The output ranges of a FakeQuantize."""

    levels: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    """One number, or as many as `low`."""


class ScaledCodes(NamedTuple):
    """Integers that are converted, and the numbers that are subtracted and multiplied."""

    element_type: str
    zero_points: tuple[float, ...]
    """Empty: none."""
    scales: tuple[float, ...]
    points_type: str = ""
    """The integer type of the zero points; empty: they are floating-point."""


class JoinedRanges(NamedTuple):
    """Single ranges of tensors that a Concat joins."""

    parts: tuple[OutputRanges, ...]
    counts: tuple[int, ...]
    """The channels of each, if they are joined along the channels; otherwise empty."""


class Quantized(NamedTuple):
    """How a tensor is quantised."""

    layer: int
    """The FakeQuantize or the Multiply."""
    form: OutputRanges | ScaledCodes | JoinedRanges | None
    """None: it is not known, or it has a fault."""
    shape: tuple[int, ...] = ()
    """Extents of ranges, or of scales and zero points, for each axis of the tensor."""
    fault: UnmetCondition | None = None
    doubt: str = ""
    """Why it is not known."""
    is_misread: bool = False
    """Whether the plugin misreads output ranges of different shapes."""

    @property
    def axes(self) -> frozenset[int]:
        """The axes along which ranges or scales vary."""
        return frozenset(axis for axis, extent in enumerate(self.shape) if extent != 1)


class MappedCodes(NamedTuple):
    """Scales and zero points of a range that is mapped to codes."""

    element_type: str
    zero_points: tuple[float, ...]
    """Empty: none."""
    scales: tuple[float, ...]


def map_codes(ranges: OutputRanges, allowed: tuple[str, ...]) -> MappedCodes:
    """Map levels to the codes of one of the allowed element types."""
    preferred = _preferred_type(ranges)
    chosen = preferred if preferred in allowed else allowed[0]
    first, last = _code_ends(chosen, ranges.levels)
    scales = tuple(
        _as_f32(_as_f32(high - low) / (last - first))
        for low, high in zip(ranges.low, ranges.high, strict=True)
    )
    if chosen == preferred:
        return MappedCodes(chosen, (), scales)
    points = tuple(
        first - low / scale if scale else 0.0 for low, scale in zip(ranges.low, scales, strict=True)
    )
    return MappedCodes(chosen, points, scales)


def _code_ends(element_type: str, levels: int) -> tuple[float, float]:
    """Return the first and the last code of a number of levels."""
    if element_type == "u8":
        return 0.0, levels - 1.0
    half = levels // 2
    return (-half, half) if levels % 2 else (-half, half - 1)


def _as_f32(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _preferred_type(ranges: OutputRanges) -> str | None:
    """Return the element type in which a range has no zero point; None: in neither."""
    signed, unsigned, has_zero_point = True, True, False
    expected = -ranges.levels / (ranges.levels - 2) if ranges.levels in _FULL_LEVELS else -1.0
    pairs = list(zip(ranges.low, ranges.high, strict=True))
    normal = [(a, b) for a, b in pairs if abs(a) >= _SMALL or abs(b) >= _SMALL]
    for low, high in normal:
        crosses = math.copysign(1, low) != math.copysign(1, high) and abs(low) >= _SMALL
        if not crosses:
            signed = False
            has_zero_point |= abs(low) >= _SMALL
            continue
        unsigned = False
        ratio = low / high if high else -math.inf
        off = abs((ratio - expected) / min(ratio, expected)) if high else math.inf
        has_zero_point |= off > _ASYMMETRY
    if not normal:
        signed = any(low < 0 for low, _ in pairs)
        unsigned = not signed
    if has_zero_point or signed == unsigned or ranges.levels not in _SYMMETRIC_LEVELS:
        return None
    return "i8" if signed else "u8"


def per_channel(joined: JoinedRanges) -> OutputRanges | None:
    """Return joined ranges as one range for each channel; None: channels have several."""
    if not joined.counts:
        return None
    pairs = list(zip(joined.parts, joined.counts, strict=True))
    low = tuple(part.low[0] for part, count in pairs for _ in range(count))
    high = tuple(part.high[0] for part, count in pairs for _ in range(count))
    return OutputRanges(joined.parts[0].levels, low, high)


def map_aligned(joined: JoinedRanges, allowed: tuple[str, ...]) -> MappedCodes | str | None:
    """Map joined ranges to codes of one scale.

    Returns a text if it is not known, None if the ranges are too different.
    """
    levels = joined.parts[0].levels
    if any(part.levels != levels for part in joined.parts):
        return None
    low = min(0.0, *(part.low[0] for part in joined.parts))
    high = max(0.0, *(part.high[0] for part in joined.parts))
    steps = min(part.high[0] - part.low[0] for part in joined.parts) * (levels - 1) / (high - low)
    if steps < _FEWEST_STEPS[1]:
        return None if steps < _FEWEST_STEPS[0] else "the ranges that it joins are very different"
    whole = OutputRanges(levels, (low,), (high,))
    preferred, first = _preferred_type(whole), _preferred_type(joined.parts[0])
    if first is None and preferred is not None and len(allowed) > 1:
        return "the first range that it joins has a zero point"
    if preferred == first or first not in allowed:
        return map_codes(whole, allowed)
    return map_codes(whole, (first,))


def zero_point_fits(element_type: str, points: tuple[float, ...]) -> bool:
    """Whether zero points are within the codes of a type, but for rounding."""
    first, last = _ENDS[element_type]
    return all(first - 0.5 <= point <= last + 0.5 for point in points)


def aligned(shape: Shape, rank: int) -> tuple[int, ...] | None:
    """Return a static shape with as many axes as a tensor, which it is broadcast to."""
    if shape is None or len(shape) > rank:
        return None
    dims = tuple(dim for dim in shape if isinstance(dim, int))
    return (1,) * (rank - len(dims)) + dims if len(dims) == len(shape) else None


def merged(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the largest extents of shapes that are broadcast to each other."""
    found = []
    for extents in zip(*shapes, strict=True):
        several = {extent for extent in extents if extent != 1}
        if len(several) > 1:
            return None
        found.append(several.pop() if several else 1)
    return tuple(found)


def ranges_fault(data: bool, levels: int) -> UnmetCondition | None:
    """Return the fault of a number of levels."""
    if levels in (LEVELS if data else WEIGHT_LEVELS):
        return None
    condition = Int8Condition.DATA_LEVELS if data else Int8Condition.WEIGHTS_LEVELS
    wanted = "15, 16, 255 or 256" if data else "255 or 256"
    return UnmetCondition(condition, f"has {levels} levels, not {wanted}")
