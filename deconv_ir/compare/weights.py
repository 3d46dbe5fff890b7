"""The contents of two constants, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.compare.network import Network, StoredConstant

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


def compare_weights(
    network_a: Network, a: StoredConstant, network_b: Network, b: StoredConstant, tolerance: float
) -> str | None:
    """Return how the elements of two constants of one shape differ; None: they do not.

    Parameters
    ----------
    tolerance : float
        What does not count, relative to the largest magnitude in the first.
    """
    if network_a.digest(a.const) == network_b.digest(b.const):
        return None
    left, right = network_a.value(a), network_b.value(b)
    types = f"{a.stored} in A, {b.stored} in B"
    if a.stored is not b.stored and a.stored.is_float and b.stored.is_float:
        narrow = min(a.stored, b.stored, key=lambda t: t.bits)
        if _equal(left.astype(narrow.numpy()), right.astype(narrow.numpy())):
            return (
                None
                if tolerance > 0 and narrow.bits >= 32
                else (f"stored as {types}, equal after conversion to {narrow}")
            )
    largest, scale, other = largest_difference(left, right)
    if largest <= tolerance * scale and a.stored is b.stored:
        return None
    stored = "" if a.stored is b.stored else f"stored as {types}; "
    if largest == 0 and not other:
        return f"stored as {types}, equal values"
    arranged = _rearranged(left, right)
    return (
        f"{stored}{other} of {left.size} elements differ, the largest difference is "
        f"{largest:.3g} where the largest magnitude is {scale:.3g}{arranged}"
    )


def largest_difference(a: Array, b: Array) -> tuple[float, float, int]:
    """Return the largest absolute difference, the largest magnitude of `a`, and how many differ.

    NaN equals NaN, and differs from all else by infinity.
    """
    import numpy as np

    x, y = (np.atleast_1d(side.astype(np.float64)) for side in (a, b))
    with np.errstate(all="ignore"):
        error = np.abs(x - y)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    error[same] = 0.0
    error[np.isnan(error)] = np.inf
    finite = np.abs(x[np.isfinite(x)])
    return float(error.max(initial=0.0)), float(finite.max(initial=0.0)), int((~same).sum())


def _equal(a: Array, b: Array) -> bool:
    return largest_difference(a, b)[2] == 0


def _rearranged(a: Array, b: Array) -> str:
    """Say so where one is the other with two equal axes exchanged, or an axis reversed."""
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
