"""Figures of constants: range, share of zeros, histogram."""

from __future__ import annotations

import math
from typing import Any

from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Context
from deconv_ir.ops.constants.constant import Const

BINS = 32
LISTED = 12
"""Maximum number of elements of a constant whose values are listed."""
_BLOCK = 1 << 20


def constant_figures(constant: Const, context: Context) -> dict[str, Any] | None:
    """Return the figures of a constant; None if its bytes cannot be read.

    Keys: ``values`` of a small constant; else ``min``, ``max``, ``mean``, ``zeros`` (their share),
    ``odd`` (number of NaN and infinities) and ``bins``, the counts of a histogram over the range.
    """
    try:
        (array,) = constant.execute([], context)
    except (DeconvError, TypeError):
        return None
    return figures(array)


def figures(array: Array) -> dict[str, Any]:
    """Return the figures of an array; see `constant_figures`."""
    import numpy as np

    flat = np.asarray(array).reshape(-1)
    if flat.dtype.kind in "OSU":
        return {}
    if flat.size <= LISTED:
        return {"values": [number(float(v)) for v in flat]}
    low, high, total, zeros, odd = math.inf, -math.inf, 0.0, 0, 0
    for block in _blocks(flat):
        good = block[np.isfinite(block)]
        odd += block.size - good.size
        zeros += int(np.count_nonzero(block == 0))
        if good.size:
            low, high = min(low, float(good.min())), max(high, float(good.max()))
            total += float(good.sum())
    found: dict[str, Any] = {"zeros": zeros / flat.size, "odd": odd}
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
        yield flat[start : start + _BLOCK].astype(np.float64)


def number(value: float) -> float | str:
    """Round a number for people; values that JSON does not support become text."""
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)
