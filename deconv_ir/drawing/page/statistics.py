"""Figures of constants: range, share of zeros, histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from deconv_ir.drawing.text import number
from deconv_ir.errors import DeconvError, WeightsError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Context
from deconv_ir.ops.constants.constant import Const, unpack

BINS = 32
LISTED = 12
"""Maximum number of elements of a constant whose values stand for its other figures."""
MOST_LISTED = 256
LISTED_IN_ALL = 1 << 16
"""Maximum number of values that are listed: of a constant, and of all of a model."""
MAX_TEXT = 60
"""Maximum number of characters of a string in a constant."""
MOST_READ = 1 << 24
"""Number of elements of all constants of a model that are read, unless they are very many."""
LEAST_READ = 1 << 12
"""Minimum number of elements that are read of a large constant."""
_BLOCK = 1 << 20
_PARTS = 16
_ALIGNED = 8
"""Elements of any packed type begin at a byte every eight elements."""
_GRAIN = _PARTS * _ALIGNED


def share_of(counts: Sequence[int]) -> int:
    """Return the number of elements to read of each of several constants.

    Constants with fewer are read whole; those with more have equal shares of what is left of
    `MOST_READ`.
    """
    left, share = MOST_READ, MOST_READ
    for place, count in enumerate(sorted(counts)):
        share = left // (len(counts) - place)
        if count > share:
            break
        left -= count
    return max(share, LEAST_READ)


def constant_figures(
    constant: Const, context: Context, most: int, listed: int = LISTED
) -> dict[str, Any] | None:
    """Return the figures of a constant; None if its bytes cannot be read.

    Keys: ``values``, the first `listed` elements; with more than `LISTED` elements also ``min``,
    ``max``, ``mean``, ``zeros`` (their share), ``odd`` (number of NaN and infinities) and ``bins``,
    the counts of a histogram over the range.
    Of a constant with more than `most` elements, these are figures of a sample, and ``sample`` has
    the numbers of its elements and of all elements.
    """
    try:
        count = constant.check()
        if count <= most:
            return figures(constant.execute([], context)[0], listed)
        found = figures(_sample(constant, context, count, most), listed)
    except (DeconvError, TypeError):
        return None
    return found | {"sample": [most // _GRAIN * _GRAIN, count]}


def _sample(constant: Const, context: Context, count: int, most: int) -> Array:
    """Read evenly spaced parts of a constant, from its begin to its end."""
    import numpy as np

    element_type, weights = constant.element_type, context.weights
    if element_type is None or weights is None:
        raise WeightsError("the model has constants, but no weights file was found")
    part = most // _GRAIN * _ALIGNED
    parts = []
    for index in range(_PARTS):
        start = index * (count - part) // (_PARTS - 1) // _ALIGNED * _ALIGNED
        data = weights.read(
            constant.offset + element_type.size_of(start), element_type.size_of(part)
        )
        parts.append(unpack(data, element_type, part))
    return np.concatenate(parts)


def figures(array: Array, listed: int = LISTED) -> dict[str, Any]:
    """Return the figures of an array; see `constant_figures`."""
    import numpy as np

    flat = np.asarray(array).reshape(-1)
    values = [_value(v) for v in flat[:listed].tolist()]
    if flat.dtype.kind in "OSTU" or flat.size <= LISTED:
        return {"values": values}
    low, high, total, zeros, odd = math.inf, -math.inf, 0.0, 0, 0
    for block in _blocks(flat):
        good = block[np.isfinite(block)]
        odd += block.size - good.size
        zeros += int(np.count_nonzero(block == 0))
        if good.size:
            low, high = min(low, float(good.min())), max(high, float(good.max()))
            total += float(good.sum())
    found: dict[str, Any] = {"values": values, "zeros": zeros / flat.size, "odd": odd}
    if low > high:
        return found
    bins = np.zeros(BINS, np.int64)
    if high > low:
        for block in _blocks(flat):
            good = block[np.isfinite(block)]
            # Computed with halves, since the range may exceed that of a double.
            place = (good / 2 - low / 2) / (high / 2 - low / 2) * BINS
            bins += np.bincount(np.minimum(place.astype(np.int64), BINS - 1), minlength=BINS)
    mean = total / (flat.size - odd)
    found |= {"min": number(low), "max": number(high), "mean": number(mean), "bins": bins.tolist()}
    return found


def _blocks(flat: Array) -> Any:
    """Iterate over an array in double precision, block by block."""
    import numpy as np

    for start in range(0, flat.size, _BLOCK):
        with np.errstate(all="ignore"):  # of signalling NaNs
            block = flat[start : start + _BLOCK].astype(np.float64)
        yield block


def _value(value: Any) -> int | float | str:
    """Return an element as JSON has it: integers exactly, strings shortened."""
    if isinstance(value, bool | int):
        # JavaScript's numbers are doubles.
        return int(value) if abs(value) <= 1 << 53 else str(value)
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}\N{HORIZONTAL ELLIPSIS}"
    return number(float(value))
