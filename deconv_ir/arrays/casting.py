"""Conversion of arrays between element types, which rejects values that do not fit.

A value fits if converting it back gives the same value: exactly for integers
and booleans, up to rounding for floats (NaN and infinities are preserved).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from deconv_ir.errors import InputError
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import Array, ElementType, float_resolution

Cast = bool | Literal["wrap"]
"""Conversion of arrays of another element type: never, if every value fits, or always (``wrap``:
integers modulo 2^bits, floats to infinity)."""

_CHUNK = 1 << 18
"""Elements that are compared at once, to bound the temporary arrays."""


def convert(
    array: Array, wanted: ElementType, *, name: str, wrap: bool, what: str = "input"
) -> Array:
    """Convert an array of numbers or booleans, for the input `name`; `what` replaces ``input``.

    With `wrap`, values that do not fit are converted too: integers modulo 2^bits, fractions
    towards zero, too large floats to infinity (or the type's substitute), nonzero values to
    true.  NaN and infinities are still rejected as integers.
    """
    converted = np.empty(array.shape, wanted.numpy())
    source, target = array.reshape(-1), converted.reshape(-1)
    for start in range(0, source.size, _CHUNK):
        part = source[start : start + _CHUNK]
        with np.errstate(all="ignore"):
            result, fits = _convert(part, wanted, wrap)
        if not fits.all():
            at = start + int(np.argmin(fits))
            raise _refused(array, at, wanted, f"{what} {name!r}", wrap)
        target[start : start + _CHUNK] = result
    return converted


def _convert(part: Array, wanted: ElementType, wrap: bool) -> tuple[Array, Array]:
    """Convert some elements; also return a mask of those that fit."""
    dtype = wanted.numpy()
    if wanted.kind == "float":
        result = part.astype(dtype)
        return result, np.full(part.shape, True) if wrap else _close(part, result)
    own: dict[str, Any] = {"b": np.uint8, "i": part.dtype, "u": part.dtype}
    numbers = part.astype(own.get(part.dtype.kind, np.float64), copy=False)
    if wanted.kind == "bool":
        result = numbers != 0
        return result, np.full(part.shape, True) if wrap else result == numbers
    if wrap:
        finite = np.isfinite(numbers)
        return _modulo(np.where(finite, numbers, numbers.dtype.type(0)), wanted), finite
    signed = wanted.kind == "int"
    least = -(1 << (wanted.bits - 1)) if signed else 0
    most = (1 << (wanted.bits - signed)) - 1
    if numbers.dtype.kind == "f":
        # 2^bits is exact as a float; 2^bits - 1 may not be.
        fits = (numbers >= least) & (numbers < float(most + 1)) & (numbers == np.trunc(numbers))
    else:
        fits = (numbers >= least) & (numbers <= most)
    return np.where(fits, numbers, numbers.dtype.type(0)).astype(dtype), fits


def _close(part: Array, result: Array) -> Array:
    """Return a mask of the elements that a conversion to floats kept, up to rounding."""
    before, after = part.astype(np.float64), result.astype(np.float64)
    relative, absolute = float_resolution(result.dtype)
    near: Array = np.abs(after - before) <= relative * np.abs(before) + absolute
    same: Array = near | (before == after) | (np.isnan(before) & np.isnan(after))
    return same


def _modulo(numbers: Array, wanted: ElementType) -> Array:
    if numbers.dtype.kind == "f":
        # Both steps are exact: the addend's exponent is not larger than the remainder's bound.
        numbers = np.fmod(np.trunc(numbers), 2.0**64)
        numbers = numbers - np.where(numbers >= 2.0**63, 2.0**64, 0.0)
        numbers = numbers + np.where(numbers < -(2.0**63), 2.0**64, 0.0)
        numbers = numbers.astype(np.int64)
    bits: Array = numbers.astype(np.uint64) & np.uint64((1 << wanted.bits) - 1)
    if wanted.kind == "int" and wanted.bits < 64:
        half = np.uint64(1 << (wanted.bits - 1))
        return ((bits ^ half).astype(np.int64) - np.int64(half)).astype(wanted.numpy())
    return bits.astype(wanted.numpy())


def _refused(array: Array, at: int, wanted: ElementType, name: str, wrap: bool) -> InputError:
    index = tuple(int(i) for i in np.unravel_index(at, array.shape))
    value: Any = array[index]
    number = bool(value) if array.dtype.kind == "b" else value
    place = f"element [{','.join(map(str, index))}]" if index else "its element"
    return InputError(
        f"{name}: {place} is {number}, which does not fit {wanted}",
        expected=wanted,
        actual=str(number),
        hint=None if wrap else Hint.CAST_WRAPS(),
        rule="input-value",
    )
