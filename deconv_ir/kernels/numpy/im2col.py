"""im2col: the data of all taps become one matrix, and one GEMM sums them.

GEMM of a tile, for the sub-convolutions that read the same inputs:

    M = output channels * sub-convolutions
    K = taps * input channels
    N = positions u

If a tap is outside of the data, the matrix has a zero; times an infinite weight, that would be NaN.
Filters with such weights are multiplied tap by tap instead, only where data exist.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.numpy.filter_parts import FilterPart, packed_array
from deconv_ir.kernels.numpy.integer import IntegerGemm
from deconv_ir.kernels.numpy.subconvolution import (
    Axes,
    AxisSpan,
    Extents,
    SubAxis,
    SubConvolutions,
    sub_convolutions,
)
from deconv_ir.kernels.numpy.tiled import Scratchpad, SubConvolutionGroup, TiledKernel, TileTask
from deconv_ir.kernels.problem import pick
from deconv_ir.kernels.products import multiply_stacks

_Index = tuple[slice, ...]
_Windows = list[tuple[slice, slice]]


class Im2col(TiledKernel):
    """A filter packed for im2col; the parameters are those of `TiledKernel`."""

    name = "im2col"

    def _pack(self, parts: Iterable[FilterPart]) -> None:
        problem = self.problem
        self.sub_convolutions = sub_convolutions(problem)
        self.integers: IntegerGemm | None = None
        if self.element.kind in "iu":
            taps = max((part.taps for part in self.sub_convolutions), default=0)
            self.integers = IntegerGemm.of(self.element, problem.channels_in * taps)
        limbs, element = 1, self.accumulator
        if self.integers is not None:
            limbs, element = self.integers.limbs, self.integers.operand
        ins, outs = problem.channels_in, problem.channels_out
        # [limb, group, out, sub-convolution, tap, in]
        packed = [
            packed_array(parts, (limbs, problem.groups, outs, sub.number, sub.taps, ins), element)
            for sub in self.sub_convolutions
        ]
        self.finite = True
        for part in parts:
            self.finite &= self.integers is not None or bool(np.isfinite(part.weights).all())
            for sub, into in zip(self.sub_convolutions, packed, strict=True):
                into[:, part.groups, part.outs, :, :, part.ins] = self._ordered(part.weights, sub)
        # [group, out and sub-convolution, tap and in]; integers [limb, ...]
        self.packed = []
        for sub, into in zip(self.sub_convolutions, packed, strict=True):
            matrices = into.reshape(limbs, problem.groups, outs * sub.number, sub.taps * ins)
            self.packed.append(matrices[0] if self.integers is None else matrices)

    def _ordered(self, weights: Array, part: SubConvolutions) -> Array:
        """Return ``[group, out, sub-convolution, tap, in]``; integers ``[limb, ...]``."""
        for axis, taps in enumerate(part.axes):
            # [g, in, out, remainder of axis 0, tap of axis 0, remainder of axis 1, ...]
            weights = weights.take(taps.kernel, axis=3 + 2 * axis)
        of_remainders = [3 + 2 * axis for axis in range(len(part.axes))]
        ordered = weights.transpose(0, 2, *of_remainders, *(a + 1 for a in of_remainders), 1)
        groups, depth, outs = weights.shape[:3]
        ordered = ordered.reshape(groups, outs, part.number, part.taps, depth)
        return ordered if self.integers is None else self.integers.operands(ordered)

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed filter."""
        return sum(matrix.nbytes for matrix in self.packed)

    def parts(self, axes: Axes) -> list[SubConvolutionGroup]:
        """Return the sub-convolutions; those that read the same inputs share a panel."""
        return [
            SubConvolutionGroup(
                tuple(axis.remainders for axis in sub.axes),
                tuple(span.reached(axis) for span, axis in zip(axes, sub.axes, strict=True)),
                self.problem.channels_in * sub.taps * sub.number,
            )
            for sub in self.sub_convolutions
        ]

    def tile_bytes(self, part: int, axes: Axes, extents: Extents, sums: int) -> tuple[int, int]:
        """Return the bytes of panel and sums; for integers, the operands are additional."""
        groups, _, size = extents
        taps = self.sub_convolutions[part].taps if self.finite else 1
        data = groups * self.problem.channels_in * taps * math.prod(size)
        if self.integers is not None:
            beside = data * self.integers.data_bytes + sums * self.integers.product_bytes
            return data * self.element.itemsize + sums * self.accumulator.itemsize, beside
        return (data + sums * (1 if self.finite else 2)) * self.accumulator.itemsize, 0

    def compute(self, job: TileTask, data: Array, axes: Axes, scratchpad: Scratchpad) -> Array:
        """Return the sums of one tile."""
        tile = job.tile
        sub, (groups, outs, size) = self.sub_convolutions[job.part], tile.extents
        data = data[:, tile.groups]
        windows = [
            _windows(*axis) for axis in zip(axes, sub.axes, tile.begin, tile.end, strict=True)
        ]
        panel = None
        if self.finite:
            panel = self._gather(windows, size, data, scratchpad)
        rows = slice(tile.outs.start * sub.number, tile.outs.stop * sub.number)
        filters = self.packed[job.part][..., tile.groups, rows, :]
        shape = (len(data), groups, outs * sub.number, math.prod(size))
        sums = scratchpad.take(shape, self.accumulator)
        if panel is None:
            self._sum_tap_by_tap(windows, size, data, scratchpad, filters, sums)
        elif self.integers is not None:
            self.integers.multiply(filters, self.integers.operands(panel), sums)
        else:
            multiply_stacks(filters, panel, sums)
        counts = (len(axis.remainders) for axis in sub.axes)
        return sums.reshape(len(data), groups, outs, *counts, *size)

    def _gather(
        self, windows: list[_Windows], size: tuple[int, ...], data: Array, scratchpad: Scratchpad
    ) -> Array:
        """Copy the data of all taps, ``[N, group, tap and in, u]``; zero outside of the data."""
        dtype = self.accumulator if self.integers is None else self.element
        stack, depth, taps = data.shape[:2], data.shape[2], [len(axis) for axis in windows]
        panel = scratchpad.take((*stack, *taps, depth, *size), dtype)
        matrix = panel.reshape(*stack, math.prod(taps) * depth, math.prod(size))
        if scratchpad.unchanged:
            return matrix
        every: tuple[Any, ...] = (slice(None),)
        for axis, (of_axis, extent) in enumerate(zip(windows, size, strict=True)):
            for tap, (inside, _) in enumerate(of_axis):
                of_tap = (*every * (2 + axis), tap, *every * len(size))
                if inside.start > 0:
                    panel[(*of_tap, slice(0, inside.start))] = 0
                if inside.stop < extent:
                    panel[(*of_tap, slice(inside.stop, extent))] = 0
        numbers = itertools.product(*map(range, taps))
        for tap_numbers, (here, there) in zip(numbers, _by_tap(windows), strict=True):
            panel[(*every * 2, *tap_numbers, *every, *here)] = pick(data, ..., *there)
        return matrix

    def _sum_tap_by_tap(
        self,
        windows: list[_Windows],
        size: tuple[int, ...],
        data: Array,
        scratchpad: Scratchpad,
        filters: Array,
        sums: Array,
    ) -> None:
        """Multiply each tap with existing data only."""
        stack, depth = data.shape[:2], data.shape[2]
        planes = sums.reshape(*sums.shape[:3], *size)
        planes[...] = 0
        data_memory = scratchpad.take((math.prod(stack) * depth * sums.shape[3],), sums.dtype)
        sums_memory = scratchpad.take((sums.size,), sums.dtype)
        for tap, (here, there) in enumerate(_by_tap(windows)):
            extents = [s.stop - s.start for s in here]
            positions = math.prod(extents)
            if not positions:
                continue
            window = data_memory[: math.prod(stack) * depth * positions]
            window = window.reshape(*stack, depth, *extents)
            window[...] = pick(data, ..., *there)
            product = sums_memory[: math.prod(sums.shape[:3]) * positions]
            product = product.reshape(*sums.shape[:3], positions)
            weights = filters[..., tap * depth : (tap + 1) * depth]
            multiply_stacks(weights, window.reshape(*stack, depth, positions), product)
            target = pick(planes, ..., *here)
            target += product.reshape(*sums.shape[:3], *extents)


@functools.lru_cache(maxsize=4096)
def _windows(span: AxisSpan, axis: SubAxis, begin: int, end: int) -> _Windows:
    """Return, tap by tap, the positions of a tile that have data, and the indices of the data."""
    windows = []
    for tap in range(axis.taps):
        first = axis.stride * begin + axis.start + span.offset + axis.step * tap
        # The index i of the tile with 0 <= first + stride * i < X.
        low = min(end - begin, max(0, -(first // axis.stride)))
        high = max(low, min(end - begin, (span.data - 1 - first) // axis.stride + 1))
        at = first + axis.stride * low if high > low else 0
        stop = at + axis.stride * (high - low - 1) + 1 if high > low else 0
        windows.append((slice(low, high), slice(at, stop, axis.stride)))
    return windows


def _by_tap(windows: list[_Windows]) -> Iterator[tuple[_Index, _Index]]:
    for of_tap in itertools.product(*windows):
        yield tuple(here for here, _ in of_tap), tuple(there for _, there in of_tap)
