"""Matrix products whose data and weights are codes, summed in integers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.ir.quantization import FOUR, CodeLayout, Levels, WeightLevels
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.products import (
    MatrixBlock,
    RightFactor,
    matmul,
    pack_columns,
    padded_columns,
)
from deconv_ir.kernels.quantized.codes import in_numpy
from deconv_ir.kernels.quantized.filter import (
    NO_CODES,
    NOT_EXACT,
    SEVERAL_RANGES,
    NoCodesError,
    element_of_sums,
    find_matrix_codes,
    levels_of_bytes,
    matrix_scalings,
    signed_bytes,
    whole_deltas,
    why_too_long,
)
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import has_dots, isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.lazy_tensor import Constant

_SHIFT = 128  # codes of weights are stored from 0 to 255


def quantize_matrix(
    matrix: Constant, weights: WeightLevels, levels: Levels, transposed: bool
) -> QuantizedMatrix | str:
    """Pack the codes of a matrix; a string says why this is not possible.

    Parameters
    ----------
    matrix : ndarray or LazyTensor
        ``[K, N]``, or ``[N, K]`` if it is `transposed`.
    weights : WeightLevels
        Of its elements, broadcast.
    levels : Levels
        Of the data.
    """
    outputs = 0 if transposed else 1
    reason = why_too_long(matrix.shape[1 - outputs])
    if reason is not None:
        return reason
    if not levels.is_single:
        return SEVERAL_RANGES
    reason = NO_CODES
    for scaling in matrix_scalings(weights, outputs):
        try:
            codes = find_matrix_codes(matrix, scaling, outputs)
        except NoCodesError:
            reason = NO_CODES if weights.rounded else NOT_EXACT
            continue
        scales, deltas = (
            np.array(np.broadcast_to(one, matrix.shape[outputs])) for one in scaling[:2]
        )
        return QuantizedMatrix(codes.T if transposed else codes, scales, levels, deltas)
    return reason


def pack_integer_matrix(
    matrix: Array, data: tuple[float, int], factors: Array, *, signed: bool
) -> QuantizedMatrix | None:
    """Pack a matrix of integers for data of 8 bits, from which a zero point is subtracted.

    Returns None if it is not suited, such as one with weights of a column that are more than 255
    apart.

    Parameters
    ----------
    matrix : ndarray
        ``[K, N]``.
    data : tuple
        Scale and zero point of the data.
    factors : ndarray
        The scales of products: of each column, or one.
    """
    levels = levels_of_bytes(data, factors, signed=signed)
    if not matrix.size or levels is None or why_too_long(len(matrix)) is not None:
        return None
    found = signed_bytes(matrix, (0,))
    if found is None:
        return None
    codes, deltas = found
    scales = np.broadcast_to(factors, matrix.shape[1]) / data[0]
    return QuantizedMatrix(codes, scales, levels, deltas.reshape(-1))


class QuantizedMatrix(RightFactor):
    """The right factor of products with data that are codes, or are quantised when they are read.

    Sums are exact; a result is evaluated in f64 with the bias, and rounded once.

    Parameters
    ----------
    codes : ndarray
        ``[K, N]``, int8; K is at most `MOST_TERMS`.
    scales : ndarray
        ``[N]``, f64: a weight is its code times the scale of its column.
    levels : Levels
        Of the data, one range for all.
    deltas : ndarray or None
        ``[N]``, f64: numbers that are added to the codes of a column.
    """

    precision = "i8"
    layout = CodeLayout.PLAIN
    reads_codes = False
    writes: Levels | None = None
    """The levels of results that are codes."""

    def __init__(
        self, codes: Array, scales: Array, levels: Levels, deltas: Array | None = None
    ) -> None:
        terms, columns = codes.shape
        super().__init__((terms, columns))
        self.levels = levels
        self._scales = scales * levels.steps[0]
        self._deltas = np.zeros(columns) if deltas is None else deltas
        sums = codes.sum(axis=0, dtype=np.float64)
        # Data at level 0 are `output_low`, not 0.
        self._offsets = scales * levels.output_low[0] * (sums + terms * self._deltas)
        self._bases, self._row_scales = np.zeros((2, 0), np.int32), np.zeros(0)
        module = compiled_module()
        if module is None:
            self._codes = codes.astype(element_of_sums(terms))
            return
        self._isa = isa_number()
        elements = np.full((-(-terms // FOUR) * FOUR, columns), _SHIFT, np.uint8)
        elements[:terms] = np.ascontiguousarray(codes).view(np.uint8) ^ _SHIFT
        fours = np.ascontiguousarray(elements.reshape(-1, FOUR, columns).swapaxes(1, 2))
        del elements
        packed = MatrixBlock(0, 0, fours.view(np.float32)[..., 0])
        self._codes = pack_columns([packed], len(fours), columns, self._isa)
        # What `interface.h` says about multiply_quantized().
        wholes = whole_deltas(self._deltas, terms)
        self._bases = np.zeros((2, padded_columns(columns)), np.int32)
        self._bases[:, :columns] = _SHIFT * (sums + terms * wholes), _SHIFT - wholes
        self._row_scales = self._scales * (self._deltas - wholes)

    @property
    def nbytes(self) -> int:
        """Bytes of the codes, and of the numbers of columns."""
        own = self._codes, self._scales, self._deltas, self._offsets, self._bases
        return sum(int(array.nbytes) for array in (*own, self._row_scales))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of results: i8 if they are codes."""
        return np.dtype(np.float32 if self.writes is None else np.int8)

    @property
    def can_read_codes(self) -> bool:
        """Whether the data can be codes."""
        return compiled_module() is not None

    @property
    def can_write_codes(self) -> bool:
        """Whether results can become codes."""
        return compiled_module() is not None

    def coded(self, *, reads: bool, writes: Levels | None) -> QuantizedMatrix:
        """Return the factor of data that are codes, or of results quantised to codes."""
        found = copy.copy(self)
        found.reads_codes, found.writes = reads, writes
        return found

    def multiplier(
        self, bias: Array | None, activation: Activation, count: int
    ) -> Callable[[Array, Array], object]:
        """Return `multiply` of any rows."""
        module, levels, writes = compiled_module(), self.levels, self.writes
        offsets = self._offsets if bias is None else self._offsets + bias
        if module is None:
            return lambda rows, out: self._in_numpy(rows, offsets, activation, out)
        numbers = np.zeros((3, self._bases.shape[1]))
        # Sums of rows are those of data - 128.
        offsets = offsets + _SHIFT * self.shape[0] * self._row_scales
        numbers[:, : self.shape[1]] = self._scales, offsets, self._row_scales
        rows_add = _SHIFT * self.shape[0] * np.abs(self._row_scales)
        greatest = 0.0 if writes is None else float((np.abs(offsets) + rows_add).max())
        run, codes, bases = module.multiply_quantized, self._codes, self._bases
        fields = interface.multiply_quantized_fields(
            isa=self._isa,
            plain=not has_dots(),
            data_low=levels.low[0],
            data_high=levels.high[0],
            highest=levels.number - 1,
            out_low=0 if writes is None else writes.low[0],
            out_high=0 if writes is None else writes.high[0],
            out_highest=0 if writes is None else writes.number - 1,
            greatest=greatest,
            **activation.fields(),
            threads=get_threads(),
        )

        def multiply(rows: Array, out: Array) -> None:
            rows = rows if rows.flags.c_contiguous else np.ascontiguousarray(rows)
            run(rows, codes, numbers, bases, out, fields)

        return multiply

    def _in_numpy(self, rows: Array, offsets: Array, activation: Activation, out: Array) -> None:
        codes = in_numpy(rows, self.levels, 0, self._codes.dtype)
        sums = matmul(codes, self._codes).astype(np.float64)
        if self._deltas.any():
            sums += codes.sum(axis=-1, keepdims=True, dtype=np.float64) * self._deltas
        out[...] = activation.apply((sums * self._scales + offsets).astype(np.float32))
