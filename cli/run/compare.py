"""Comparison of a computed array with a reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.compare.tensors import absolute_errors

from ..shared.inputs import read_array

if TYPE_CHECKING:
    from pathlib import Path

    from deconv_ir.ir.dtypes import Array


_BLOCK = 1 << 16
"""Elements that are compared at once."""


class Comparison(NamedTuple):
    """The errors of an output against its reference.

    For a reference of 0, the relative error of an element out of tolerance is infinite, and that of
    an element within tolerance is 0.
    """

    name: str
    within: bool  # abs(actual - expected) <= atol + rtol * abs(expected) everywhere
    largest_absolute: float
    largest_relative: float
    position: tuple[int, ...] | None  # of the largest absolute error
    outside: int  # number of elements out of tolerance
    elements: int
    note: str = ""  # the shapes if they differ, else the two values at `position`

    def __str__(self) -> str:
        verdict = "agrees" if self.within else "DIFFERS"
        if self.position is None:
            return f"{self.name}: {verdict}" + (f": {self.note}" if self.note else "")
        at = f" at [{','.join(map(str, self.position))}]" if self.position else ""
        return (
            f"{self.name}: {verdict}: largest absolute error {self.largest_absolute:.3g}"
            f"{at}{self.note}, largest relative error {self.largest_relative:.3g}, "
            f"{self.outside} of {self.elements} elements out of tolerance"
        )


def compare_files(
    outputs: Mapping[str, Array], references: Mapping[str, str | Path], rtol: float, atol: float
) -> tuple[Comparison, ...]:
    """Compare outputs with their references, files by the names of outputs."""
    found = []
    for name, path in references.items():
        actual, expected = outputs[name], read_array(str(path), name)
        if expected.dtype.kind == "V" and expected.dtype.itemsize == actual.dtype.itemsize:
            expected = expected.view(actual.dtype)  # the stored form of a type that NumPy lacks
        found.append(compare(name, actual, expected, rtol, atol))
    return tuple(found)


def compare(name: str, actual: Array, expected: Array, rtol: float, atol: float) -> Comparison:
    """Compare an output with a reference; NaN equals NaN, and infinity equals itself."""
    import numpy as np

    if actual.shape != expected.shape:
        note = f"shape {list(actual.shape)}, the reference has {list(expected.shape)}"
        return Comparison(
            name, False, float("inf"), float("inf"), None, actual.size, actual.size, note
        )
    if actual.size == 0:
        return Comparison(name, True, 0.0, 0.0, None, 0, 0, "empty")
    if {actual.dtype.kind, expected.dtype.kind} & set("OSTU"):
        return _compare_texts(name, actual, expected)
    largest, relative, position, outside, start = -1.0, 0.0, 0, 0, 0
    # Blocks in the order of the elements, for any layout, without copies of the arrays.
    blocks = np.nditer(
        [actual, expected], ["external_loop", "buffered"], order="C", buffersize=_BLOCK
    )
    for a, b in blocks:
        error, scale = _errors(a, b)
        with np.errstate(all="ignore"):
            # An infinite reference gives an infinite tolerance, but must be equal.
            allowed = np.where(np.isfinite(scale), atol + rtol * scale, 0.0)
            off = error > allowed
            ratio = np.divide(
                error, scale, out=np.where(off, np.inf, 0.0), where=(scale > 0) & np.isfinite(error)
            )
        at = int(np.argmax(error))
        if error[at] > largest:
            largest, position = float(error[at]), start + at
        relative = max(relative, float(ratio.max()))
        outside += int(np.count_nonzero(off))
        start += error.size
    where = np.unravel_index(position, actual.shape)
    return Comparison(
        name,
        not outside,
        largest,
        relative,
        tuple(int(i) for i in where),
        outside,
        actual.size,
        f" ({actual[where]}, the reference has {expected[where]})" if largest > 0 else "",
    )


def _compare_texts(name: str, actual: Array, expected: Array) -> Comparison:
    """Compare arrays of strings, which must be equal."""
    import numpy as np

    pairs = list(zip(actual.ravel().tolist(), expected.ravel().tolist(), strict=True))
    off = [place for place, (a, b) in enumerate(pairs) if a != b]
    if not off:
        return Comparison(name, True, 0.0, 0.0, None, 0, len(pairs))
    where = tuple(int(i) for i in np.unravel_index(off[0], actual.shape))
    note = f"{list(where)}: {pairs[off[0]][0]!r}, the reference has {pairs[off[0]][1]!r}"
    return Comparison(name, False, np.inf, np.inf, None, len(off), len(pairs), note)


def _errors(actual: Array, expected: Array) -> tuple[Array, Array]:
    """Return absolute errors and magnitudes of the reference, as f64."""
    import numpy as np

    if max(actual.dtype.itemsize, expected.dtype.itemsize) == 8 and {
        actual.dtype.kind,
        expected.dtype.kind,
    } <= set("iub"):
        # Integers of 64 bits are not exact as floats.
        a, b = actual.astype(object), expected.astype(object)
        return abs(a - b).astype(np.float64), abs(b).astype(np.float64)
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    return absolute_errors(a, b), np.abs(b)
