"""Offsets, sizes and contents of constants in the .bin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.constants.constant import Const, unpack

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.linter.weights import RecordedWeights

CHUNK_BYTES = 1 << 24
MAX_RANGE_BYTES = 1 << 18
"""Maximum bytes of the ranges of a FakeQuantize that are read."""

Span = tuple[int, int, list[int]]
"""Start and end of a range of the .bin, and the indices of the layers that use it."""


def needed_bytes(const: Const) -> int | None:
    """Return the bytes that shape and type need; None if they are not known."""
    if const.element_type is None:
        return None
    if not const.element_type.bits:
        return const.size  # strings have no fixed length
    try:
        return const.element_type.size_of(element_count(static(const.shape)))
    except ValueError:
        return None


def are_untidy(constants: Iterable[Const], length: int | None) -> bool:
    """Whether any rule about sizes and offsets may have something to report.

    Tidy constants have the size that shape and type need, do not overlap unless they are equal, and
    fill the .bin of `length` bytes.
    """
    spans: set[tuple[int, int]] = set()
    for const in constants:
        if needed_bytes(const) != const.size:
            return True
        if const.size:
            spans.add((const.offset, const.offset + const.size))
    at = 0
    for start, end in sorted(spans):
        if start != at:
            return True
        at = end
    return length is not None and at != length


def spans(constants: Iterable[tuple[int, Const]]) -> list[Span]:
    """Return the distinct ranges of the constants of some layers, in order."""
    found: dict[tuple[int, int], list[int]] = {}
    for index, const in constants:
        if const.size:
            found.setdefault((const.offset, const.offset + const.size), []).append(index)
    return [(*span, indices) for span, indices in sorted(found.items())]


def overlaps(ranges: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Iterate over the layers whose constants overlap with another one, and that other layer.

    Each layer is listed once, even if it overlaps with several.
    """
    partner: dict[int, int] = {}
    furthest = None
    for current in ranges:
        start, end, indices = current
        if furthest is not None and start < furthest[1]:
            for index in indices:
                partner.setdefault(index, furthest[2][0])
            for index in furthest[2]:
                partner.setdefault(index, indices[0])
        if furthest is None or end > furthest[1]:
            furthest = current
    yield from sorted(partner.items())


def gaps(ranges: Iterable[Span], length: int) -> Iterator[tuple[int, int, int | None]]:
    """Iterate over the parts of a .bin of `length` bytes that no constant uses: start, end, layer.

    The layer is the constant that begins at the end of the gap; at the end of the file, the last
    one before it; None without constants.
    """
    covered = 0
    last = None
    for start, end, indices in ranges:
        if start > covered and start <= length:
            yield covered, start, indices[0]
        if end > covered:
            covered, last = end, indices[0]
    if covered < length:
        yield covered, length, last


def chunks(const: Const, weights: RecordedWeights, group: int = 24) -> Iterator[tuple[int, Array]]:
    """Iterate over blocks of the elements of a constant, with the index of the first.

    The numbers of elements are multiples of `group` and of 24, which fill whole bytes; types
    without arrays have no elements.
    """
    assert const.element_type is not None
    element_type = const.element_type
    count = element_count(static(const.shape))
    unit = math.lcm(24, group)
    step = max(1, CHUNK_BYTES * 8 // element_type.bits // unit) * unit
    for start in range(0, count, step):
        size = min(step, count - start)
        offset = const.offset + element_type.size_of(start)
        try:
            yield (
                start,
                unpack(weights.read(offset, element_type.size_of(size)), element_type, size),
            )
        except DeconvError:
            return


def count_not_finite(
    const: Const, weights: RecordedWeights, *, mask_allowed: bool
) -> tuple[int, int, int]:
    """Count the NaN and infinite elements of a constant; `mask_allowed`: except -inf.

    The third number is the index of the first such element; -1 if there are none.
    """
    import numpy as np

    nans = infinities = 0
    first = -1
    for start, data in chunks(const, weights):
        # Types of up to eight bits have no isfinite.
        wide = data if data.dtype.kind == "f" else data.astype(np.float32)
        bad = ~np.isfinite(wide)
        if mask_allowed:
            bad &= ~np.isneginf(wide)
        if bad.any():
            if first < 0:
                first = start + int(np.argmax(bad))
            is_nan = int(np.isnan(wide).sum())
            nans += is_nan
            infinities += int(bad.sum()) - is_nan
    return nans, infinities, first


def count_saturated(const: Const, weights: RecordedWeights) -> tuple[int, int]:
    """Count the elements of an f16 constant that are the largest finite number, or its negative.

    The second number is the index of the first such element; -1 if there are none.
    """
    import numpy as np

    count, first = 0, -1
    for start, data in chunks(const, weights):
        at_bound = np.abs(data) == np.finfo(np.float16).max
        found = int(np.count_nonzero(at_bound))
        if found and first < 0:
            first = start + int(np.argmax(at_bound))
        count += found
    return count, first


def zero_channels(const: Const, weights: RecordedWeights, axes: Sequence[int]) -> list[int]:
    """Return the output channels of a filter whose elements are all zero.

    Output channels are along `axes`: the axis of groups, if any, and that of the channels of a
    group.
    """
    import numpy as np

    shape = static(const.shape)
    if not math.prod(shape):
        return []
    *outer, last = axes
    groups = shape[outer[0]] if outer else 1
    channels, size = shape[last], math.prod(shape[last + 1 :])
    alive = np.zeros((groups, channels), bool)
    rows_of_group = math.prod(shape) // (groups * channels * size)
    for start, data in chunks(const, weights, size):
        row, channel = np.divmod(start // size + np.flatnonzero(_filled(data, size)), channels)
        alive[row // rows_of_group, channel] = True
        if alive.all():
            return []
    return [int(channel) for channel in np.flatnonzero(~alive.ravel())]


def _filled(data: Array, size: int) -> Array:
    """Return, for each `size` elements, whether any element is not 0."""
    filled: Array = (data != 0).reshape(-1, size).any(axis=1)
    return filled
