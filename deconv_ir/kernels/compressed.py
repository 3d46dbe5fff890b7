"""Matrix products with compressed weights, which stay compressed in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.products import (
    IDENTITY,
    MOST_CODED_ROWS,
    RightFactor,
    blocks_of,
    can_pack,
)
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.lazy_tensor import Codes, Constant, LazyTensor

STRIP = 16
"""Columns of a strip, as in simd/compressed.h."""
# Codes of a group that is looked up are a multiple of this, as in simd/codes.h.
_CODE_STEP = 32
# Bytes that are read and reordered at once, about.
_AT_ONCE = 1 << 18

BEYOND_BF16 = 2.0**128 - 2.0**119
"""The smallest number that bf16 rounds to infinity."""

_PLAIN = {
    "u8": interface.COMPRESSED_U8,
    "i8": interface.COMPRESSED_I8,
    "f16": interface.COMPRESSED_F16,
    "bf16": interface.COMPRESSED_BF16,
}


class _Scaling(NamedTuple):
    """Zeros and scales of columns: ``[N, groups]`` each, or None."""

    groups: int
    zeros: Array | None
    scales: Array | None


class _StoredMatrix(RightFactor):
    """The arrays of a right factor that stays as a file stores it."""

    _arrays: tuple[Array | None, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the codes, zeros and scales."""
        return sum(array.nbytes for array in self._arrays if array is not None)


class CompressedMatrix(_StoredMatrix):
    """The right factor of products, in the numbers that a file stores.

    A block of a few columns is unpacked at a time, and multiplied by all rows of a job: sums have
    the bits of those with the unpacked matrix.

    Parameters
    ----------
    shape : tuple of int
        K and N.
    form : int
        The number of an `enum compressed_form`.
    codes : ndarray
        ``[strips, K, 16]`` of bytes, of columns beyond N too; of four bits ``[strips, K / 2, 16]``.
    table : ndarray or None
        The numbers of codes, ``[16]`` or ``[256]``.
    scaling : _Scaling
        In strips.
    halves : bool
        Whether an element is rounded to f16.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        form: int,
        codes: Array,
        table: Array | None,
        scaling: _Scaling,
        *,
        halves: bool,
    ) -> None:
        super().__init__(shape)
        self._arrays = codes, table, scaling.scales, scaling.zeros
        self._form, self._halves = form, halves
        self._group = shape[0] // scaling.groups
        self._isa = isa_number()

    def multiplier(
        self, bias: Array | None, activation: Activation, count: int
    ) -> Callable[[Array, Array], object]:
        """Return `multiply` of any rows."""
        module = compiled_module()
        assert module is not None, "the matrix is packed for it"
        run, arrays = module.multiply_compressed, self._arrays
        fields = interface.multiply_compressed_fields(
            isa=self._isa,
            form=self._form,
            group=self._group,
            halves=self._halves,
            **activation.fields(),
            threads=get_threads(),
        )
        return lambda rows, out: run(rows, *arrays, bias, out, fields)


class CodedMatrix(_StoredMatrix):
    """The right factor of products, in codes of four bits as a file stores them.

    Products of few rows look the codes up, and take about the time to read them from memory; the
    bits of a sum depend on neither the number of rows nor that of threads.  For more rows, a block
    of a few columns is unpacked at a time: sums have the bits of those with the unpacked matrix.

    Parameters
    ----------
    codes : ndarray
        ``[N, K / 2]`` of uint8: the first of two codes is in the lower bits.
    base : ndarray
        ``[16]``: the numbers of the codes, in f32.
    scaling : _Scaling
        Groups of a multiple of 32 terms.
    halves : bool
        Whether an element is rounded to f16.
    """

    def __init__(self, codes: Array, base: Array, scaling: _Scaling, *, halves: bool) -> None:
        super().__init__((2 * codes.shape[1], len(codes)))
        self._arrays = codes, base, scaling.scales, scaling.zeros
        self._halves = halves
        self._isa = isa_number()

    def multiplier(
        self, bias: Array | None, activation: Activation, count: int
    ) -> Callable[[Array, Array], object]:
        """Return `multiply` by the codes, or by blocks of unpacked columns."""
        module, few = compiled_module(), count <= MOST_CODED_ROWS
        assert module is not None, "the matrix is coded for it"
        run, arrays = module.multiply_codes, self._arrays
        fields = interface.multiply_codes_fields(
            isa=self._isa,
            halves=self._halves,
            looks_up=few,
            **(IDENTITY if few else activation).fields(),
            threads=get_threads(),
        )

        def multiply(rows: Array, out: Array) -> None:
            run(np.ascontiguousarray(rows), *arrays, bias, out, fields)
            if few and activation != IDENTITY:
                out[...] = activation.apply(out)

        return multiply


def compressed_matrix(tensor: LazyTensor, *, transposed: bool) -> RightFactor | None:
    """Return a lazy tensor ``[K, N]``, or ``[N, K]`` if `transposed`, as it is stored.

    Returns None if the compiled kernel is missing, if the matrix is small, or if its elements are
    not numbers of a file with a zero point and a scale for groups of terms.
    """
    codes = tensor.codes
    if codes is None or tensor.dtype != np.float32 or compiled_module() is None:
        return None
    columns, terms = tensor.shape if transposed else tensor.shape[::-1]
    if not tensor.size or not can_pack(terms, columns):
        return None
    scaling, form = _scaling_of(codes, columns, terms, transposed=transposed), form_of(codes)
    if scaling is None or form is None:
        return None
    number, table = form
    four, group = number == interface.COMPRESSED_4, terms // scaling.groups
    if four and scaling.groups > 1 and group % 2:
        return None
    rounds = codes.scale is not None and codes.scale.dtype == np.float16
    # Vectors of the baseline cannot look codes up.
    if codes.element_type.bits == 4 and transposed and group % _CODE_STEP == 0 and isa_number():
        assert table is not None, "four bits have one"
        read = codes.read(0, columns * terms).reshape(columns, terms // 2)
        scales = np.ones((columns, scaling.groups)) if scaling.scales is None else scaling.scales
        scaling = scaling._replace(scales=_narrow(scales), zeros=_narrow(scaling.zeros))
        factor: RightFactor = CodedMatrix(read, table, scaling, halves=rounds)
        factor.precision = f"f32 ({codes.element_type} weights)"
        return factor
    packed = _packed(codes, columns, terms, four=four, transposed=transposed)
    scaling = _Scaling(scaling.groups, _strips(scaling.zeros), _strips(scaling.scales))
    factor = CompressedMatrix((terms, columns), number, packed, table, scaling, halves=rounds)
    factor.precision = f"f32 ({codes.element_type} weights)"
    return factor


def is_within_bf16(matrix: Array) -> bool:
    """Whether bf16 rounds no number of a matrix to infinity, and all are numbers."""
    return bool(np.maximum(matrix.max(), -matrix.min()) < BEYOND_BF16)


def rounded_matrix(matrix: Constant, *, transposed: bool = False) -> CompressedMatrix | None:
    """Round ``[K, N]``, or ``[N, K]`` if `transposed`, of f32 to bf16.

    Returns None if the matrix is small, not of f32, or beyond bf16. Data and sums of products
    remain f32.
    """
    columns, terms = matrix.shape if transposed else matrix.shape[::-1]
    if matrix.dtype != np.float32 or not matrix.size or not can_pack(terms, columns):
        return None
    out = np.zeros((-(-columns // STRIP), terms, STRIP), np.uint16)
    for row, column, block in blocks_of(matrix, transposed=transposed):
        rows, width = block.shape
        step = max(1, _AT_ONCE // (4 * rows * STRIP)) * STRIP
        for first in range(0, width, step):
            part = np.ascontiguousarray(block[:, first : first + step])
            if not is_within_bf16(part):
                return None
            bits = part.view(np.uint32)
            rounded = (bits + (0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
            whole = rounded.shape[1] // STRIP * STRIP
            at = (column + first) // STRIP
            to = out[at : at + whole // STRIP, row : row + rows]
            to[...] = rounded[:, :whole].reshape(rows, -1, STRIP).swapaxes(0, 1)
            if whole < rounded.shape[1]:
                out[-1, row : row + rows, : columns % STRIP] = rounded[:, whole:]
    scaling = _Scaling(1, None, None)
    factor = CompressedMatrix(
        (terms, columns), interface.COMPRESSED_BF16, out, None, scaling, halves=False
    )
    factor.precision = "f32 (bf16 weights)"
    return factor


class CompressedRows:
    """A constant in the numbers that a file stores, whose rows are computed when they are taken.

    Parameters
    ----------
    codes : Codes
        The numbers, with the first axis of the constant.
    shape : tuple of int
        Extents of the constant.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, codes: Codes, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)
        self.precision = f"f32 ({codes.element_type} weights)"
        self._codes = codes
        self._stored = codes.read(0, math.prod(shape)).reshape(shape[0], -1)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers, zeros and scales."""
        return self._codes.nbytes

    def take(self, places: Array) -> Array:
        """Return the rows at `places`, in f32: the shape of `places`, then that of a row."""
        codes, bits = self._codes, self._codes.element_type.bits
        rows = places.reshape(-1)
        stored = self._stored[rows]
        row = math.prod(codes.axes[1:])
        if bits < 16:
            numbers = codes.numbers()
            with np.errstate(over="ignore"):
                numbers = numbers.astype(np.float16).astype(np.float32) if codes.halves else numbers
            values = numbers[split_codes(stored.reshape(-1), bits, (len(rows), row))]
        elif codes.element_type.name == "f16":
            values = stored.view(np.float16).astype(np.float32)
        else:
            values = (stored.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        values = values.reshape(-1, *codes.axes[1:])
        if codes.zero is not None:
            values -= self._of_rows(codes.zero, rows)
        if codes.scale is not None:
            values *= self._of_rows(codes.scale, rows)
            if codes.scale.dtype == np.float16:
                values = values.astype(np.float16).astype(np.float32)
        return values.reshape(*places.shape, *self.shape[1:])

    def _of_rows(self, factors: Array, rows: Array) -> Array:
        """Return the zeros or scales of rows, in f32."""
        if factors.ndim == len(self._codes.axes) and len(factors) > 1:
            factors = factors[rows]
        return factors.astype(np.float32)


def compressed_rows(tensor: LazyTensor) -> CompressedRows | None:
    """Return a lazy tensor as it is stored, if its rows are whole bytes; else None."""
    codes = tensor.codes
    if codes is None or tensor.dtype != np.float32 or not tensor.size:
        return None
    row = math.prod(tensor.shape[1:]) * codes.element_type.bits
    whole = codes.axes[:1] == tensor.shape[:1] and row % 8 == 0
    return CompressedRows(codes, tensor.shape) if whole else None


def form_of(codes: Codes) -> tuple[int, Array | None] | None:
    """Return the form of numbers in a file, and those of its codes; None if there is none."""
    name, bits = codes.element_type.name, codes.element_type.bits
    if name in _PLAIN:
        return _PLAIN[name], None
    numbers = codes.numbers()
    if codes.halves:
        with np.errstate(over="ignore"):
            numbers = numbers.astype(np.float16).astype(np.float32)
    if bits == 8:
        return interface.COMPRESSED_TABLE, numbers
    return interface.COMPRESSED_4, np.resize(numbers, 16)


def _scaling_of(codes: Codes, columns: int, terms: int, *, transposed: bool) -> _Scaling | None:
    """Return zeros and scales for groups of terms of each column, if they have that form."""
    axes, along = codes.axes, -1 if transposed else -2
    given = [array for array in (codes.zero, codes.scale) if array is not None]
    if not given:
        return _Scaling(1, None, None)
    if len(axes) < 2 or (not transposed and axes[-1] != columns):
        return None
    group = axes[along]
    if terms % group or any(a.ndim >= -along and a.shape[along] != 1 for a in given):
        return None
    groups, outer = terms // group, list(axes)
    outer[along] = 1

    def spread(array: Array | None) -> Array | None:
        if array is None:
            return None
        every = np.broadcast_to(array, outer)
        return every.reshape(columns, groups) if transposed else every.reshape(groups, columns).T

    return _Scaling(groups, spread(codes.zero), spread(codes.scale))


def _narrow(factors: Array | None) -> Array | None:
    """Return zeros or scales in f16 if that holds all exactly, else in f32."""
    if factors is None:
        return None
    with np.errstate(over="ignore"):
        halves = factors.astype(np.float16)
    found = halves if np.array_equal(halves, factors) else factors.astype(np.float32)
    return np.ascontiguousarray(found)


def _strips(factors: Array | None) -> Array | None:
    """Return ``[N, groups]`` as ``[strips, groups, 16]``."""
    found = _narrow(factors)
    if found is None:
        return None
    columns, groups = found.shape
    padded = np.zeros((columns + -columns % STRIP, groups), found.dtype)
    padded[:columns] = found
    return np.ascontiguousarray(padded.reshape(-1, STRIP, groups).swapaxes(1, 2))


def _packed(codes: Codes, columns: int, terms: int, *, four: bool, transposed: bool) -> Array:
    """Read the codes, block by block, into strips of columns."""
    bits, strips = codes.element_type.bits, -(-columns // STRIP)
    dtype, per = np.dtype(np.uint16 if bits == 16 else np.uint8), 2 if four else 1
    out = np.zeros((strips, -(-terms // per), STRIP), dtype)
    if transposed:
        step = max(1, _AT_ONCE // (terms * STRIP)) * STRIP
        for first in range(0, columns, step):
            last = min(first + step, columns)
            rows = codes.read(first * terms, last * terms)
            if not (
                four and bits == 4 and terms % 2 == 0
            ):  # else two terms of a column share bytes
                rows = split_codes(rows, bits, (last - first, terms))
                rows = _joined(rows) if four else rows
            rows = rows.view(dtype).reshape(last - first, -1)
            whole = len(rows) // STRIP * STRIP
            at = first // STRIP
            to = out[at : at + whole // STRIP]
            to[...] = rows[:whole].reshape(-1, STRIP, rows.shape[1]).swapaxes(1, 2)
            if whole < len(rows):
                out[-1, :, : len(rows) - whole] = rows[whole:].T
        return out
    step = max(1, _AT_ONCE // (columns * 8)) * 8
    for first in range(0, terms, step):
        last = min(first + step, terms)
        rows = split_codes(
            codes.read(first * columns, last * columns), bits, (last - first, columns)
        )
        rows = _joined(rows.T).T if four else rows
        padded = np.zeros((len(rows), strips * STRIP), dtype)
        padded[:, :columns] = rows
        to = out[:, first // per : first // per + len(rows)]
        to[...] = padded.reshape(len(rows), strips, STRIP).swapaxes(0, 1)
    return out


def split_codes(stored: Array, bits: int, shape: tuple[int, int]) -> Array:
    """Return bytes as an array of codes."""
    if bits >= 8:
        return stored.view(np.uint16 if bits == 16 else np.uint8).reshape(shape)
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    codes: Array = (stored[:, None] >> shifts) & ((1 << bits) - 1)
    return codes.reshape(-1)[: math.prod(shape)].reshape(shape)


def _joined(codes: Array) -> Array:
    """Join each two neighbours of a row in a byte, the first in the lower bits."""
    even, odd = codes[:, ::2], codes[:, 1::2]
    joined = even.copy()
    joined[:, : odd.shape[1]] |= odd << 4
    return joined
