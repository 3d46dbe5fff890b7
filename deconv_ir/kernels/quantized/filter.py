"""Filters of 8-bit codes, as kernels pack them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deconv_ir.ir.lazy_tensor import Constant, LazyTensor, rows_of
from deconv_ir.ir.quantization import FOUR, Levels, WeightLevels
from deconv_ir.kernels.problem import Problem, one_by_channel

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

MOST_SUM, MOST_PRODUCT = (1 << 31) - 1, 255 * 128
MOST_TERMS = MOST_SUM // MOST_PRODUCT
"""Products of codes whose sum has 32 bits."""
_TERMS_IN_F32 = (1 << 24) // MOST_PRODUCT

SEVERAL_RANGES = "the data have several ranges, and numbers of different ones are added"
NO_CODES = "the weights have no 8-bit codes with one scale for each output channel"
NOT_EXACT = (
    "the weights are scaled in a type of 16 bits, which rounds them to other numbers than codes"
)
"""Reasons for f32."""

# Distance of a weight from a code, in codes: up to 256 of them, rounded to f32 twice; or exact.
_ROUNDING, _EXACT = 1e-4, 1e-9
# Distance of a zero point from an integer that is a rounding error of f64.
_SAME = 1e-12
# Bytes of codes that are found at once: their quotients in f64 stay in the second-level cache.
_PART_BYTES = 16 << 10
_MOST_ZERO_POINT = 255
"""Of bytes: multiplied by sums of weights, it stays exact."""


class NoCodesError(Exception):
    """A weight is not a code times the scale of its channel."""


class CodeScaling(NamedTuple):
    """How the weights of each output follow from their codes in 8 bits: (code + delta) * scale."""

    scales: Array
    deltas: Array
    rounding: float
    """Distance of a weight from a code, in codes."""


def scalings(weights: WeightLevels, scales: Array, zero_points: Array) -> Iterator[CodeScaling]:
    """Iterate over the scalings that weights may have, of each output; the best is the first.

    Without deltas, no sum of the data is needed, but some codes may need more than 8 bits.
    """
    if not (np.isfinite(scales).all() and np.isfinite(zero_points).all()):
        return
    rounding = _ROUNDING if weights.rounded else _EXACT
    # Weights of scale 0 are 0, the code 0 of any scale.
    divisors = np.where(scales == 0, 1.0, np.abs(scales))
    zero_points = np.where(scales < 0, -zero_points, zero_points)
    zero_points = np.where(scales == 0, 0.0, zero_points)
    nearest = np.rint(zero_points)
    is_whole = np.abs(zero_points - nearest) <= _SAME
    if is_whole.all():
        yield CodeScaling(divisors, np.zeros_like(divisors), rounding)
    middles = np.where(scales < 0, -127 - weights.lowest, 128 + weights.lowest)
    yield CodeScaling(divisors, middles - np.where(is_whole, nearest, zero_points), rounding)


def filter_scalings(problem: Problem, weights: WeightLevels) -> Iterator[CodeScaling]:
    """Iterate over the scalings that a filter may have; there are none if a channel has several."""
    scales = one_by_channel(problem, weights.scales)
    zero_points = one_by_channel(problem, weights.zero_points)
    if scales is not None and zero_points is not None:
        yield from scalings(weights, scales, zero_points)


def matrix_scalings(weights: WeightLevels, axis: int) -> Iterator[CodeScaling]:
    """Iterate over the scalings that a matrix with outputs along an axis may have."""
    scales, zero_points = np.broadcast_arrays(weights.scales, weights.zero_points)
    one, other = scales.take([0], 1 - axis), zero_points.take([0], 1 - axis)
    if (scales == one).all() and (zero_points == other).all():
        yield from scalings(weights, one.reshape(-1), other.reshape(-1))


def find_codes(problem: Problem, weights: Constant, scaling: CodeScaling) -> Constant:
    """Return the codes of a filter, int8.

    Raises
    ------
    NoCodesError
        If a weight has no code; those of a lazy tensor are found when they are read.
    """
    of_channels = np.stack(scaling[:2], 1)
    by_group = of_channels.reshape(problem.groups, problem.channels_out, 2)
    row = weights.size // weights.shape[0]

    def codes_of(rows: Array, first: int) -> Array:
        if problem.forward:
            own = of_channels[first : first + len(rows), None]
        else:
            own = by_group[np.arange(first, first + len(rows)) // problem.channels_in]
        scales, deltas = np.moveaxis(own, -1, 0)[(..., *(None,) * problem.axes)]
        return _rounded(rows / scales, deltas, scaling.rounding)

    if not isinstance(weights, LazyTensor):
        codes = np.empty(weights.shape, np.int8)
        for first, rows in _parts(weights):
            codes[first : first + len(rows)] = codes_of(rows, first)
        return codes
    source = weights

    def read(start: int, stop: int) -> Array:
        rows = source.read(start, stop).reshape(-1, *source.shape[1:])
        return codes_of(rows, start // row).reshape(-1)

    return LazyTensor(source.shape, np.dtype(np.int8), read)


def find_matrix_codes(matrix: Constant, scaling: CodeScaling, axis: int) -> Array:
    """Return the codes of a matrix, int8, whose outputs are along an axis.

    As `find_codes`, but a lazy tensor is read, in parts.
    """
    codes, of_rows = np.empty(matrix.shape, np.int8), axis == 0 and len(scaling.scales) > 1
    scales, deltas = (one[:, None] if of_rows else one for one in scaling[:2])
    for begin, rows in _parts(matrix):
        own = slice(begin, begin + len(rows)) if of_rows else slice(None)
        codes[begin : begin + len(rows)] = _rounded(
            rows / scales[own], deltas[own], scaling.rounding
        )
    return codes


def signed_bytes(weights: Array, axes: tuple[int, ...]) -> tuple[Array, Array] | None:
    """Return integers as int8, and integers to add along some axes, f64, which are kept.

    Returns None if no such codes exist.
    """
    low, high = (
        one.astype(np.int64)
        for one in (weights.min(axes, keepdims=True), weights.max(axes, keepdims=True))
    )
    if (high - low > 255).any():
        return None
    deltas = np.where((low < -128) | (high > 127), low + 128, 0)
    return (weights - deltas).astype(np.int8), deltas.astype(np.float64)


def levels_of_bytes(data: tuple[float, int], factors: Array, *, signed: bool) -> Levels | None:
    """Return the levels of bytes with a scale and a zero point, which are given as numbers.

    Returns None if products with weights of these scales, `factors` in all, may not be exact.
    """
    scale, zero_point = data
    if not (scale > 0 and abs(zero_point) <= _MOST_ZERO_POINT and np.isfinite(factors).all()):
        return None
    first = -128.0 if signed else 0.0
    levels = Levels.of_bytes(scale, zero_point, signed=signed)
    return levels._replace(low=(first,), high=(first + 255,))


def _parts(weights: Constant) -> Iterator[tuple[int, Array]]:
    """Iterate over blocks of rows: the index of the first, and the rows."""
    row = math.prod(weights.shape[1:])
    step = max(1, _PART_BYTES // max(1, row))
    for first in range(0, weights.shape[0], step):
        yield first, rows_of(weights, first, min(first + step, weights.shape[0]))


def _rounded(quotients: Array, deltas: Array, rounding: float) -> Array:
    """Return the codes of weights divided by their scales."""
    if deltas.any():
        quotients = quotients - deltas
    rounded = np.rint(quotients)
    near = (np.abs(quotients - rounded) <= rounding).all()
    if not near or np.abs(rounded + 0.5).max(initial=0) > 128:
        raise NoCodesError
    return rounded.astype(np.int8)


def why_too_long(terms: int) -> str | None:
    """Return why sums of a number of products need more than 32 bits; None if they do not."""
    if terms <= MOST_TERMS:
        return None
    return f"sums of {terms} products of codes, more than {MOST_TERMS}, need more than 32 bits"


def whole_deltas(deltas: Array, terms: int) -> Array:
    """Return the nearest integers, or zeros where sums of weights with them need over 32 bits."""
    nearest = np.rint(deltas)
    return np.where(greatest_sum(nearest, terms) <= MOST_SUM, nearest, 0.0)


def greatest_sum(deltas: Array, terms: int) -> Array:
    """Return the greatest magnitude of sums with weights to whose codes integers are added."""
    return 255.0 * terms * (128 + np.abs(deltas))


def element_of_sums(terms: int) -> np.dtype[Any]:
    """Return the floating-point type in which BLAS sums products of codes exactly."""
    return np.dtype(np.float32 if terms <= _TERMS_IN_F32 else np.float64)


def groups_to_join(problem: Problem) -> int:
    """Return the number of groups whose inputs fill an element; 1: they do, or do not."""
    joins = FOUR // problem.channels_in if problem.channels_in in (1, 2) else 1
    return joins if problem.groups > 1 and problem.groups % joins == 0 else 1


def join_groups(problem: Problem, codes: Constant, joins: int) -> Constant:
    """Return the filter of groups that consist of several: zero between their channels."""
    if joins == 1:
        return codes
    rows, columns, *kernel = codes.shape
    of_group = problem.channels_out if problem.forward else problem.channels_in
    shape = (rows, joins * columns, *kernel)

    def join(apart: Array, first: int) -> Array:
        places = np.arange(first, first + len(apart)) // of_group % joins
        found = np.zeros((len(apart), joins, columns, *kernel), codes.dtype)
        found[np.arange(len(apart)), places] = apart
        return found.reshape(len(apart), *shape[1:])

    if not isinstance(codes, LazyTensor):
        return join(codes, 0)
    row = math.prod(shape[1:])

    def read(start: int, stop: int) -> Array:
        first, last = start // row, stop // row
        return join(rows_of(codes, first, last), first).reshape(-1)

    return LazyTensor(shape, codes.dtype, read)


class FilterElements:
    """A filter with codes of four input channels in one element or two, read part by part.

    Two have codes of 16 bits: those of the channels 0 and 1, then 2 and 3.  Missing ones are 0; a
    second element without any is left out.

    Parameters
    ----------
    problem : Problem
        The convolution.
    codes : ndarray or LazyTensor
        The filter's codes, int8.
    sums : ndarray or None
        ``[groups * out, *K]``, f64: the codes of each tap are added when they are read first; None:
        they are not.
    extends : bool
        Whether they are extended to 16 bits.
    """

    def __init__(
        self, problem: Problem, codes: Constant, sums: Array | None, *, extends: bool
    ) -> None:
        self._problem, self._codes = problem, codes
        self._of_four = 2 if extends else 1
        self._fours_of_group = -(-problem.channels_in // FOUR)
        self.of_group = self._fours_of_group * self._of_four
        if extends and 0 < problem.channels_in % FOUR < 3:
            self.of_group -= 1
        rows, columns, *kernel = codes.shape
        if problem.forward:
            shape = (rows, self.of_group, *kernel)
        else:
            shape = (problem.groups * self.of_group, columns, *kernel)
        self.elements = LazyTensor(shape, np.dtype(np.uint32), self._read, _PART_BYTES)
        self.sums = sums
        self._summed = 0  # fours of input channels

    def _read(self, start: int, stop: int) -> Array:
        """Return elements of whole rows."""
        row = self.elements.size // self.elements.shape[0]
        first, last = start // row, stop // row
        if self._problem.forward:
            codes = rows_of(self._codes, first, last)
            if self.sums is not None:
                self.sums[first:last] = codes.sum(axis=1, dtype=np.float64)
            return self._joined(codes).reshape(-1)
        # Fours are joined whole; `first` may be the second element of its four.
        (one, before), (end, _) = self._place(first), self._place(last - 1)
        return self._fours(one, end + 1)[before : before + last - first].reshape(-1)

    def _place(self, row: int) -> tuple[int, int]:
        """Return the index of an element's four of channels, and its own within it."""
        group, within = divmod(row, self.of_group)
        four, rest = divmod(within, self._of_four)
        return group * self._fours_of_group + four, rest

    def _fours(self, first: int, last: int) -> Array:
        """Return the elements of fours of input channels, those of groups after each other."""
        inputs, outputs = self._problem.channels_in, self._problem.channels_out
        of_group, found = self._fours_of_group, []
        for group in range(first // of_group, (last - 1) // of_group + 1):
            begin = max(first - group * of_group, 0)
            end = min(last - group * of_group, of_group)
            codes = rows_of(
                self._codes, group * inputs + begin * FOUR, group * inputs + min(end * FOUR, inputs)
            )
            if self.sums is not None:
                summed = max(self._summed - group * of_group - begin, 0) * FOUR
                sums = self.sums[group * outputs : (group + 1) * outputs]
                sums += codes[summed:].sum(axis=0, dtype=np.float64)
            found.append(self._joined(codes[None])[0])
        self._summed = max(self._summed, last)
        return np.concatenate(found)

    def _joined(self, codes: Array) -> Array:
        """Join each four neighbours of the second axis, in one element or in two."""
        pads = [(0, 0)] * codes.ndim
        pads[1] = (0, -codes.shape[1] % FOUR)
        padded = np.pad(codes, pads)
        rows, channels, *taps = padded.shape
        if self._of_four == 1:
            parts = np.moveaxis(padded.reshape(rows, -1, FOUR, *taps), 2, -1)
        else:
            parts = np.moveaxis(padded.reshape(rows, -1, 2, *taps), 2, -1).astype(np.int16)
        elements = np.ascontiguousarray(parts).view(np.uint32)[..., 0]
        elements = elements.reshape(rows, channels // FOUR * self._of_four, *taps)
        is_alone = self._of_four == 2 and 0 < codes.shape[1] % FOUR < 3
        return elements[:, :-1] if is_alone else elements


def add_taps(problem: Problem, codes: Constant, sums: Array) -> None:
    """Add the codes of each tap to ``[groups * out, *K]``, contiguous."""
    from deconv_ir.kernels.numpy.filter_parts import filter_parts

    grouped = sums.reshape(problem.groups, problem.channels_out, *problem.kernel)
    for part in filter_parts(problem, codes):
        grouped[part.groups, part.outs] += part.weights.sum(axis=1, dtype=np.float64)
