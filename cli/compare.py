"""Comparison of a computed array with a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deconv_ir.dtypes import Array


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far two arrays are apart.

    Attributes
    ----------
    name : str
        The output.
    within : bool
        ``abs(actual - expected) <= atol + rtol * abs(expected)`` everywhere.
    largest_absolute, largest_relative : float
        Largest errors; relative to the reference, where that is not 0.
    position : tuple of int, or None
        Where the absolute error is largest.
    outside : int
        Number of elements out of tolerance.
    note : str
        What the numbers do not say: shapes that differ, the two values.
    """

    name: str
    within: bool
    largest_absolute: float
    largest_relative: float
    position: tuple[int, ...] | None
    outside: int
    note: str = ""

    def __str__(self) -> str:
        verdict = "agrees" if self.within else "DIFFERS"
        if self.position is None:
            return f"{self.name}: {verdict}" + (f": {self.note}" if self.note else "")
        at = ",".join(map(str, self.position))
        return (
            f"{self.name}: {verdict}: largest absolute error {self.largest_absolute:.3g} at "
            f"[{at}]{self.note}, largest relative error {self.largest_relative:.3g}, "
            f"{self.outside} elements out of tolerance"
        )


def compare(name: str, actual: Array, expected: Array, rtol: float, atol: float) -> Comparison:
    """Compare an output with a reference; NaN agrees with NaN, infinity with itself."""
    import numpy as np

    if actual.shape != expected.shape:
        note = f"shape {list(actual.shape)}, the reference has {list(expected.shape)}"
        return Comparison(name, False, float("inf"), float("inf"), None, actual.size, note)
    if actual.size == 0:
        return Comparison(name, True, 0.0, 0.0, None, 0, "empty")
    if actual.dtype.kind in "iub" and expected.dtype.kind in "iub":
        # Integers of 64 bits do not fit a float.
        a, b = actual.astype(object), expected.astype(object)
        error = np.abs(a - b).astype(np.float64)
        scale = np.abs(b).astype(np.float64)
    else:
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        with np.errstate(all="ignore"):
            error = np.abs(a - b)
        error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        error[np.isnan(error)] = np.inf
        scale = np.abs(b)
    with np.errstate(all="ignore"):
        relative = np.where(error > 0, error / scale, 0.0)
        # An infinite reference makes an infinite tolerance; only itself agrees with it.
        allowed = np.where(np.isfinite(scale), atol + rtol * scale, 0.0)
    outside = int(np.count_nonzero(error > allowed))
    finite = relative[scale > 0]
    where = np.unravel_index(int(np.argmax(error)), error.shape)
    return Comparison(
        name,
        outside == 0,
        float(error.max()),
        float(finite.max()) if finite.size else 0.0,
        tuple(int(i) for i in where),
        outside,
        f" ({actual[where]}, the reference has {expected[where]})" if error.max() > 0 else "",
    )
