"""How far a tensor is from its exact values, in units of what each element is allowed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from deconv_ir.ir.dtypes import Array, from_numpy
from deconv_ir.ops.allowance import Precision

_BLOCK = 1 << 16


class SideVerdict(NamedTuple):
    """The verdict on one side's result of a layer, given this side's tensors at the inputs.

    Attributes
    ----------
    right : bool or None
        None: not judged; `note` says why.
    times : float
        The largest deviation from the exact result, in units of the allowance of its element.
    local : float
        The largest deviation from the exact result, relative to the largest magnitude.
    at : tuple of int or None
        Index of the element with the largest `times`; None: every element is exact.
    value, exact : float or int or None
        That element, and its exact value.
    allowance : float
        The deviation that is allowed there.
    wrong : int
        Number of elements beyond their allowance.
    semantics : str
        The semantics by which the result is right, if it is not right by the specification.
    executed : str
        The element type in which the runtime says that it computed, if it is not the declared one.
    note : str
        Why the layer is not judged, or another remark.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> path, x = "samples/block/block.xml", np.ones((1, 8, 16, 16), np.float32)
    >>> layer = deconv_ir.diff(path, path, x, verdict=True).verdict.layers[0]
    >>> isinstance(layer.a, deconv_ir.SideVerdict), layer.a.right, layer.a.times <= 1
    (True, True, True)
    """

    right: bool | None
    times: float = 0.0
    local: float = 0.0
    at: tuple[int, ...] | None = None
    value: float | int | None = None
    exact: float | int | None = None
    allowance: float = 0.0
    wrong: int = 0
    semantics: str = ""
    executed: str = ""
    note: str = ""


def wide(array: Any) -> Array:
    """Return an array, in f64 if it has floats of at least 16 bits or other real numbers."""
    import numpy as np

    array = np.asarray(array)
    element_type = from_numpy(array.dtype)
    if element_type is not None and element_type.is_float and array.dtype != np.float64:
        array = array.astype(np.float64)
    found: Array = array
    return found


class Screened(NamedTuple):
    """A tensor after a first look, block by block: the elements that are not exact."""

    largest: float
    """The largest deviation."""
    scale: float
    """The largest finite magnitude of the exact result."""
    times: float
    """The largest deviation of the other elements, in units of the smallest allowance."""
    places: Array | None
    """The elements, in the flattened tensor, beyond a share of themselves; None: there are none."""


def screen(array: Array, exact: Array, share: float) -> Screened:
    """Find the elements that deviate by more than a share of themselves.

    This share is less than every allowance, and is computed at once.
    """
    import numpy as np

    x, y = array.reshape(-1), exact.reshape(-1)
    times = largest = scale = 0.0
    found = []
    integers = exact.dtype.kind != "f" and array.dtype.kind != "f"
    with np.errstate(all="ignore"):
        for start in range(0, x.size, _BLOCK):
            left, right = x[start : start + _BLOCK], y[start : start + _BLOCK]
            different = left != right if integers else None
            if different is not None and not different.any():
                scale = max(scale, float(np.abs(right.astype(np.float64)).max(initial=0)))
                continue
            left = left.astype(np.float64, copy=False)
            right = right.astype(np.float64, copy=False)
            error = np.subtract(left, right)
            np.abs(error, out=error)
            if different is not None:
                error[different & (error == 0)] = 1.0  # integers that f64 does not tell apart
            size = np.abs(right)
            worst = float(error.max())
            if math.isfinite(worst):  # and so is every element
                scale = max(scale, float(size.max()))
                largest = max(largest, worst)
                np.divide(error, size, out=size)  # 0 / 0 is NaN
                ratio = float(np.fmax.reduce(size))
                if ratio > share:
                    found.append(start + np.flatnonzero(size > share))
                elif share:
                    times = max(times, ratio / share)
                continue
            bad = ~((error <= share * size) & np.isfinite(error))
            same = (left == right) | ((left != left) & (right != right))
            bad &= ~same
            error[same] = 0
            scale = max(scale, float(size[np.isfinite(size)].max(initial=0)))
            if bad.any():
                found.append(start + np.flatnonzero(bad))
                error[np.isnan(error)] = np.inf
            largest = max(largest, float(error.max(initial=0)))
    return Screened(largest, scale, times, np.concatenate(found) if found else None)


def measure(
    array: Array,
    exact: Array,
    bound: Array | float,
    precision: Precision,
    screened: Screened,
    *,
    strict: bool = False,
    valid: Array | None = None,
) -> SideVerdict:
    """Divide the deviation of each element that is not exact by its allowance."""
    import numpy as np

    places = screened.places
    local = screened.largest / screened.scale if screened.scale else math.inf
    if not screened.largest:
        local = 0.0
    if places is None:
        return SideVerdict(True, screened.times, local)
    left, right = wide(array).reshape(-1)[places], wide(exact).reshape(-1)[places]
    with np.errstate(all="ignore"):
        x, y = left.astype(np.float64), right.astype(np.float64)
        error = np.abs(x - y)
        error[error == 0] = 1.0
        allowed = np.asarray(bound, np.float64)
        allowed = (
            np.full(x.shape, float(allowed))
            if allowed.ndim == 0
            else (np.broadcast_to(allowed, exact.shape).reshape(-1)[places])
        )
        allowed[np.isnan(allowed) | ~np.isfinite(y)] = 0
        if exact.dtype.kind == "f" and not strict:
            allowed += precision.smallest
            beyond = np.isinf(x) & np.isfinite(y) & (np.abs(y) + allowed >= precision.largest)
            error[beyond & ((x > 0) == (y > 0))] = 0
        error[np.isnan(error)] = np.inf
        error[np.isinf(allowed)] = 0
        if valid is not None:
            error[valid.reshape(-1)[places]] = 0
        ratio = np.where(error == 0, 0.0, error / allowed)
    worst = int(ratio.argmax())
    times = float(ratio[worst])
    at = tuple(int(i) for i in np.unravel_index(places[worst], exact.shape))
    return SideVerdict(
        times <= 1,
        times,
        local,
        at,
        left[worst].item(),
        right[worst].item(),
        float(allowed[worst]),
        int((ratio > 1).sum()),
    )
