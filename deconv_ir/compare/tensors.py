"""Comparison of two tensors by common error measures."""

from __future__ import annotations

import math
from typing import NamedTuple

from deconv_ir.errors import SettingError
from deconv_ir.ir.dtypes import Array

_BLOCK = 1 << 16
_SQUARABLE = (1e-100, 1e100)
"""Scales of tensors whose elements can be squared in f64."""


class TensorDifference(NamedTuple):
    """The difference of a tensor of the second model from that of the first.

    Attributes
    ----------
    name : str
        The tensor, in the first model.
    layer : str
        The layer that computes it: ``'name' (Type, id 5)``.
    line : int or None
        Line of that layer in the file.
    within : bool
        Every element is within the tolerance: ``|a - b| <= atol + rtol * scale``.
    scale : float
        Largest finite magnitude in the first model.
    largest : float
        Largest absolute error.
    relative : float
        Largest absolute error relative to `scale`.
    rms : float
        Root of the mean squared error, over elements that are finite in both.
    cosine : float
        Cosine of the angle between the two, over the same elements.
    nans, infinities : tuple of int
        Their numbers in the first and in the second model.
    outside, elements : int
        Number of elements out of tolerance, and of all elements.
    first : tuple of int or None
        Index of the first element out of tolerance.
    note : str
        Additional information, such as different shapes.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> path, x = "samples/block/block.xml", np.ones((1, 8, 16, 16), np.float32)
    >>> found = deconv_ir.diff(path, path, x)
    >>> last = found.tensors[-1]
    >>> isinstance(last, deconv_ir.TensorDifference), last.name, last.within, last.largest
    (True, 'y', True, 0.0)
    """

    name: str
    layer: str
    line: int | None
    within: bool
    scale: float = 0.0
    largest: float = 0.0
    relative: float = 0.0
    rms: float = 0.0
    cosine: float = 1.0
    nans: tuple[int, int] = (0, 0)
    infinities: tuple[int, int] = (0, 0)
    outside: int = 0
    elements: int = 0
    first: tuple[int, ...] | None = None
    note: str = ""


def require_tolerances(**tolerances: float) -> None:
    """Require each tolerance to be 0 or greater.

    Raises
    ------
    SettingError
        A tolerance is negative or NaN, with which no difference would count.
    """
    for name, tolerance in tolerances.items():
        if not tolerance >= 0:
            raise SettingError(f"{name} must be a number from 0, found {tolerance!r}")


def compare_tensors(
    name: str, layer: str, line: int | None, a: Array, b: Array, rtol: float, atol: float
) -> TensorDifference:
    """Compare two arrays, block by block: no copy is larger than a block.

    NaN agrees with NaN, an infinity with itself.  `rtol` is relative to the largest finite
    magnitude in `a`, `atol` is absolute.  A scalar and a tensor of shape [1] may agree, since tools
    write one as the other.
    """
    import numpy as np

    shapes = "" if a.shape == b.shape else f"shape {list(a.shape)} in A, {list(b.shape)} in B"
    if {a.shape, b.shape} == {(), (1,)}:
        b = b.reshape(a.shape)
    if a.shape != b.shape:
        note = shapes
        return TensorDifference(
            name, layer, line, False, outside=a.size, elements=a.size, note=note
        )
    if {a.dtype.kind, b.dtype.kind} & set("OSTU"):
        a, b = equality(a, b)
    x, y = a.reshape(-1), b.reshape(-1)
    blocks = [slice(start, start + _BLOCK) for start in range(0, x.size, _BLOCK)]
    scale = max((_magnitude(x[block]) for block in blocks), default=0.0)
    allowed = atol + rtol * scale
    # In units of the scale where squares might overflow or vanish.
    unit = 1.0 if _SQUARABLE[0] < scale < _SQUARABLE[1] else scale or 1.0
    largest = squares = dot = norm_a = norm_b = 0.0
    outside = finite = 0
    nans, infinities = [0, 0], [0, 0]
    first: int | None = None
    for block in blocks:
        left, right = _plain(x[block]), _plain(y[block])
        with np.errstate(all="ignore"):
            error = np.subtract(left, right)
        np.abs(error, out=error)
        worst = float(error.max())
        if math.isfinite(worst):  # and so is every element
            finite += left.size
        else:
            for side, values in enumerate((left, right)):
                nans[side] += int(np.isnan(values).sum())
                infinities[side] += int(np.isinf(values).sum())
            error = absolute_errors(left, right)
            worst = float(error.max())
            both = np.isfinite(left) & np.isfinite(right)
            finite += int(both.sum())
            left, right = left[both], right[both]
        if worst > allowed:
            bad = error > allowed
            if first is None:
                first = block.start + int(bad.argmax())
            outside += int(bad.sum())
        largest = max(largest, worst)
        if unit != 1.0:
            left, right = left / unit, right / unit
        # Without the BLAS, whose threads would wait for those of a runtime.
        dot += float(np.einsum("i,i", left, right))
        norm_a += float(np.einsum("i,i", left, left))
        norm_b += float(np.einsum("i,i", right, right))
        left -= right
        squares += float(np.einsum("i,i", left, left))
    length = math.sqrt(norm_a) * math.sqrt(norm_b)
    at = None if first is None else tuple(int(i) for i in np.unravel_index(first, a.shape))
    return TensorDifference(
        name,
        layer,
        line,
        outside == 0,
        scale,
        largest,
        largest / scale if scale else (0.0 if largest == 0 else math.inf),
        unit * math.sqrt(squares / finite) if finite else 0.0,
        min(1.0, dot / length) if length else float(norm_a == norm_b),
        (nans[0], nans[1]),
        (infinities[0], infinities[1]),
        outside,
        x.size,
        at,
        shapes if at is None else f"{a[at]} in A, {b[at]} in B",
    )


def equality(a: Array, b: Array) -> tuple[Array, Array]:
    """Return numbers that are equal where strings are."""
    import numpy as np

    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    same = np.fromiter((x == y for x, y in pairs), bool, a.size).reshape(a.shape)
    return np.zeros(a.shape), np.where(same, 0.0, np.inf)


def absolute_errors(a: Array, b: Array) -> Array:
    """Return ``|a - b|`` of f64 arrays; equal infinities differ by 0, and so do NaN and NaN.

    Otherwise a NaN gives an infinite error.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        error: Array = np.abs(a - b)
    if not math.isfinite(float(error.max(initial=0))):
        error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        error[np.isnan(error)] = np.inf
    return error


def _plain(values: Array) -> Array:
    """Return the elements as f64; a boolean is 0 or 1."""
    import numpy as np

    return values.astype(np.float64)


def _magnitude(values: Array) -> float:
    """Return the largest finite magnitude."""
    import numpy as np

    if values.dtype.kind == "f" and values.dtype.itemsize >= 4:
        found = max(float(values.max()), -float(values.min()))
        if math.isfinite(found):
            return found
    magnitudes = np.abs(_plain(values))
    return float(magnitudes[np.isfinite(magnitudes)].max(initial=0.0))
