"""Comparison of the contents of two constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deconv_ir.compare.network import Network, StoredConstant
from deconv_ir.compare.tensors import absolute_errors
from deconv_ir.ir.dtypes import Array

if TYPE_CHECKING:
    import numpy as np


_BLOCK = 1 << 18


def compare_weights(
    network_a: Network, a: StoredConstant, network_b: Network, b: StoredConstant, tolerance: float
) -> str | None:
    """Describe the difference of two constants of one shape; None if they are equal.

    A difference up to `tolerance`, relative to the largest magnitude in the first, is ignored.
    """
    if network_a.digest(a.const) == network_b.digest(b.const):
        return None
    left, right = network_a.value(a), network_b.value(b)
    largest, scale, other = largest_difference(left, right)
    if tolerance and largest <= tolerance * scale:
        return None
    stored = "" if a.stored is b.stored else f"stored as {a.stored} in A, {b.stored} in B"
    if stored and a.stored.is_float and b.stored.is_float:
        narrow = min(a.stored, b.stored, key=lambda element_type: element_type.bits)
        if not largest_difference(left, right, narrow.numpy())[2]:
            return f"{stored}, equal after conversion to {narrow}"
    if not other:
        return f"{stored}, equal values" if stored else None
    return (
        f"{stored}{'; ' if stored else ''}{other} of {left.size} elements differ, the largest "
        f"difference is {largest:.3g} where the largest magnitude is {scale:.3g}"
        f"{_rearranged(left, right)}"
    )


def largest_difference(
    a: Array, b: Array, dtype: np.dtype[Any] | None = None
) -> tuple[float, float, int]:
    """Return the largest difference, the largest magnitude of `a`, and the number of differences.

    NaN equals NaN, and differs from other values by infinity.  With a dtype, both are converted
    first.  Copies are at most as large as a block.
    """
    import numpy as np

    x, y = a.reshape(-1), b.reshape(-1)
    largest = scale = 0.0
    other = 0
    for start in range(0, x.size, _BLOCK):
        left, right = x[start : start + _BLOCK], y[start : start + _BLOCK]
        with np.errstate(all="ignore"):
            if dtype is not None:
                left, right = left.astype(dtype), right.astype(dtype)
            left, right = left.astype(np.float64), right.astype(np.float64)
        error = absolute_errors(left, right)
        largest = max(largest, float(error.max()))
        scale = max(scale, float(np.abs(left[np.isfinite(left)]).max(initial=0.0)))
        other += int(np.count_nonzero(error))
    return largest, scale, other


def _rearranged(a: Array, b: Array) -> str:
    """Describe a permutation: two equal axes swapped, or an axis reversed."""
    import numpy as np

    for first in range(a.ndim):
        for second in range(first + 1, a.ndim):
            if a.shape[first] == a.shape[second] and np.array_equal(
                np.swapaxes(a, first, second), b
            ):
                return f"; B is A with axes {first} and {second} exchanged"
    for axis in range(a.ndim):
        if np.array_equal(np.flip(a, axis), b):
            return f"; B is A with axis {axis} reversed"
    return ""
