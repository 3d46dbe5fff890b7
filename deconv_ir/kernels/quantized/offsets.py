"""What is added to integer sums: the bias, and where level 0 of the data is not 0."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deconv_ir.kernels.plan import RunShapes
from deconv_ir.kernels.problem import Problem

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

_CHANNELS = 128  # whose offsets are found at once
_CHUNK = 256  # columns in which the pattern of the strides repeats
_FEW = 256  # equal columns that are stored one by one: several calls for a row take longer


class SumOffsets(NamedTuple):
    """What is added to the sums of an image: `interface.h`, Dequantizer()."""

    numbers: Array
    """``[channels, classes, width]``, f64."""
    classes: Array | None
    """``[rows]``, i32."""
    begin: int
    chunk: int
    end: int

    def bases(self, scales: Array, most: float) -> tuple[Array, Array]:
        """Return the offsets as multiples of scales, and the greatest magnitude of the rest.

        Both are by channel.  Multiples are whole numbers up to `most`, 0 if offsets are several.
        """
        if self.numbers.shape[1:] != (1, 1):
            ends = self.numbers.min(axis=(1, 2)), self.numbers.max(axis=(1, 2))
            return np.zeros(len(scales)), np.maximum(-ends[0], ends[1])
        offsets = self.numbers[:, 0, 0]
        multiples = np.rint(offsets / scales)
        multiples[~(np.abs(multiples) <= most)] = 0
        return multiples, np.abs(offsets - multiples * scales)


def find_offsets(
    problem: Problem, bias: Array, parts: Array | None, shapes: RunShapes
) -> SumOffsets:
    """Return the bias, and the parts of the taps that each row and column reads.

    Parameters
    ----------
    problem : Problem
        The convolution.
    bias : ndarray
        ``[groups * out]``.
    parts : ndarray or None
        ``[groups * out, *K]``: what each tap within the data adds; None: nothing.
    shapes : RunShapes
        Of data and output, or of some rows of it.
    """
    if parts is None:
        return SumOffsets(bias[:, None, None], None, 0, 0, 0)
    of_axes, classes, last, (begin, chunk, end) = _layout(problem, shapes)
    numbers = np.empty((len(parts), math.prod(map(len, of_axes)), len(last)))
    for first in range(0, len(parts), _CHANNELS):
        # [channels, classes, *K of axes to come, columns]
        some = (parts[first : first + _CHANNELS] @ last.T)[:, None]
        for patterns in of_axes:
            summed = np.tensordot(some, patterns, ([2], [1]))
            some = np.moveaxis(summed, -1, 2).reshape(len(some), -1, *some.shape[3:])
        numbers[first : first + _CHANNELS] = some
    if (numbers == numbers[:, :1, :1]).all():  # all taps are within the data
        same = np.ascontiguousarray(numbers[:, :1, :1])
        return SumOffsets(same + bias[:, None, None], None, 0, 0, 0)
    numbers += bias[:, None, None]
    return SumOffsets(numbers, classes, begin, chunk, end)


def offsets_of_channel(problem: Problem, shapes: RunShapes) -> int:
    """Return the number of offsets that `find_offsets` finds for each channel."""
    of_axes, _, last, _ = _layout(problem, shapes)
    rows = math.prod(map(len, of_axes))
    return 1 if rows == 1 and (last == last[:1]).all() else rows * len(last)


class _Layout(NamedTuple):
    of_axes: tuple[Array, ...]
    """For each axis but the last: which taps are within the data, in each class."""
    classes: Array
    """The class of each row."""
    last: Array
    """The same of columns that differ."""
    ends: tuple[int, int, int]
    """Begin, chunk and end, as in `SumOffsets`."""


@functools.lru_cache(maxsize=256)
def _layout(problem: Problem, shapes: RunShapes) -> _Layout:
    """Return which taps are within the data, in each class and column that differ."""
    *leading, last = (
        _taps_within(problem, axis, x, pad, y)
        for axis, (x, pad, y) in enumerate(
            zip(shapes.data[2:], shapes.pads, shapes.output[2:], strict=True)
        )
    )
    columns, *ends = _repeating(last, problem)
    of_axes = []
    classes = np.zeros(1, np.int32)
    for taps in leading:
        patterns, found = np.unique(taps, axis=0, return_inverse=True)
        of_axes.append(patterns.astype(np.float64))
        classes = (classes[:, None] * len(patterns) + found.ravel()).ravel().astype(np.int32)
    begin, chunk, end = ends
    return _Layout(tuple(of_axes), classes, last[columns].astype(np.float64), (begin, chunk, end))


def _taps_within(problem: Problem, axis: int, x: int, pad: int, y: int) -> Array:
    """Return ``[Y, K]``: whether an output reads data with a tap."""
    stride, dilation = problem.strides[axis], problem.dilations[axis]
    outputs, taps = np.arange(y)[:, None], np.arange(problem.kernel[axis])[None] * dilation
    if problem.forward:
        position = stride * outputs + taps - pad
        within: Array = (position >= 0) & (position < x)
        return within
    position = outputs + pad - taps
    found: Array = (position >= 0) & (position < stride * x) & (position % stride == 0)
    return found


def _repeating(taps: Array, problem: Problem) -> tuple[Array, int, int, int]:
    """Find the columns whose taps repeat: all columns that differ, begin, chunk and end."""
    period = 1 if problem.forward else problem.strides[-1]
    chunk = 1 if period == 1 else -(-_CHUNK // period) * period
    count = len(taps)
    same = (taps[period:] == taps[:-period]).all(axis=1)
    # The longest stretch in which each column equals the one a period before.
    breaks = np.flatnonzero(~same)
    edges = np.concatenate([[-1], breaks, [len(same)]])
    longest = int(np.argmax(np.diff(edges)))
    begin, end = int(edges[longest]) + 1, int(edges[longest + 1]) + period
    if count <= period or end - begin <= (2 * _CHUNK if chunk > 1 else _FEW):
        return np.arange(count), count, 0, count
    columns = np.concatenate([np.arange(begin + chunk), np.arange(end, count)])
    return columns, begin, chunk, end
