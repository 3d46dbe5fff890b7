"""im2col: the data of all taps become one matrix, and one GEMM sums them.

GEMM of a tile, for the sub-convolutions that read the same inputs:

    M = output channels * sub-convolutions
    K = taps * input channels
    N = positions u

Where a tap is beyond the data the matrix has a zero, which must not meet an
infinite weight: such filters are multiplied tap by tap, where data exist.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.numpy.integer import IntegerGemm
from deconv_ir.kernels.numpy.subconvolution import AxisSpan, SubConvolutions, sub_convolutions
from deconv_ir.kernels.numpy.tile import Tile, choose_tiles
from deconv_ir.kernels.numpy.tiled import Scratchpad, TiledKernel, Tiling, leaves_holes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.products import multiply_stacks

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

__all__ = ["Im2col"]

_Index = tuple[slice, ...]


class Im2col(TiledKernel):
    """A filter packed for im2col; the parameters are those of `TiledKernel`."""

    name = "im2col"

    def __init__(
        self, problem: Problem, weights: Array, bias: Array | None, activation: Activation
    ) -> None:
        super().__init__(problem, weights, bias, activation)
        self.parts = sub_convolutions(problem)
        self.integers: IntegerGemm | None = None
        if self.element.kind in "iu":
            depth = problem.channels_in * max((part.taps for part in self.parts), default=0)
            self.integers = IntegerGemm.of(self.element, depth)
            self.finite = True
        else:
            self.finite = bool(np.isfinite(weights).all())
        self.packed = [self._pack(weights, part) for part in self.parts]
        self._tiling = functools.lru_cache(maxsize=64)(self._choose_tiles)

    def _pack(self, weights: Array, part: SubConvolutions) -> Array:
        """Return ``[group, out and phase, tap and in]``; of integers ``[limb, ...]``."""
        for axis, taps in enumerate(part.axes):
            # [g, in, out, phase of axis 0, tap of axis 0, phase of axis 1, ...]
            weights = weights.take(taps.kernel, axis=3 + 2 * axis)
        phases = [3 + 2 * axis for axis in range(len(part.axes))]
        ordered = weights.transpose(0, 2, *phases, *(a + 1 for a in phases), 1)
        groups, depth, outs = weights.shape[:3]
        matrix = np.ascontiguousarray(ordered).reshape(
            groups, outs * part.number, part.taps * depth
        )
        if self.integers is not None:
            return self.integers.operands(matrix)
        return matrix.astype(self.accumulator, copy=False)

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed filter."""
        return sum(matrix.nbytes for matrix in self.packed)

    def tiling(self, axes: tuple[AxisSpan, ...], bound: int) -> Tiling:
        """Choose the tiles of one image."""
        return self._tiling(axes, bound)

    def _choose_tiles(self, axes: tuple[AxisSpan, ...], bound: int) -> Tiling:
        problem, jobs, most, pad = self.problem, [], 0, 0
        per_axis: list[dict[tuple[int, ...], int]] = [{} for _ in axes]
        for number, part in enumerate(self.parts):
            ranges = [a.reached(sub) for a, sub in zip(axes, part.axes, strict=True)]
            for covered, a, sub, ends in zip(per_axis, axes, part.axes, ranges, strict=True):
                covered[sub.phases] = a.covered(sub.phases, *ends)
            scratch = functools.partial(self._scratch, part)
            work = problem.channels_in * part.taps * part.number
            for tile in choose_tiles(
                problem.groups, problem.channels_out, ranges, scratch, work, bound
            ):
                jobs.append((number, tile))
                most = max(most, scratch(*tile.extents))
                pad = max(pad, self._pad(part, *tile.extents))
        return Tiling(jobs, most, pad, leaves_holes(axes, [sum(c.values()) for c in per_axis]))

    def _elements(
        self, part: SubConvolutions, groups: int, outs: int, size: Sequence[int]
    ) -> tuple[int, int]:
        """Return the elements of data that are gathered, and of sums."""
        positions = groups * math.prod(size)
        taps = part.taps if self.finite else 1
        return self.problem.channels_in * taps * positions, outs * part.number * positions

    def _pad(self, part: SubConvolutions, groups: int, outs: int, size: Sequence[int]) -> int:
        """Return the bytes that a tile takes of the scratchpad."""
        data, sums = self._elements(part, groups, outs, size)
        if self.integers is not None:
            return data * self.element.itemsize + sums * self.accumulator.itemsize + 256
        return (data + sums * (1 if self.finite else 2)) * self.accumulator.itemsize + 256

    def _scratch(self, part: SubConvolutions, groups: int, outs: int, size: Sequence[int]) -> int:
        """Return the bytes that a tile takes."""
        data, sums = self._elements(part, groups, outs, size)
        total = self._pad(part, groups, outs, size) + self.epilogue_bytes(sums)
        if self.integers is not None:
            total += data * self.integers.data_bytes + sums * self.integers.product_bytes
        return total

    def compute(
        self,
        part: int,
        tile: Tile,
        data: Array,
        write: Callable[[tuple[tuple[int, ...], ...], Array], None],
        axes: tuple[AxisSpan, ...],
        scratchpad: Scratchpad,
    ) -> None:
        """Compute one tile of one image."""
        sub, (groups, outs, size) = self.parts[part], tile.extents
        positions = math.prod(size)
        rows = slice(tile.outs.start * sub.number, tile.outs.stop * sub.number)
        filters = self.packed[part][..., tile.groups, rows, :]
        sums = scratchpad.take((groups, outs * sub.number, positions), self.accumulator)
        if self.finite:
            panel = self._gather(sub, tile, data[tile.groups], axes, scratchpad)
            if self.integers is not None:
                self.integers.multiply(filters, self.integers.operands(panel), sums)
            else:
                multiply_stacks(filters, panel, sums)
        else:
            self._sum_tap_by_tap(sub, tile, data[tile.groups], axes, scratchpad, filters, sums)
        phases = tuple(axis.phases for axis in sub.axes)
        write(phases, sums.reshape(groups, outs, *map(len, phases), *size))

    def _gather(
        self,
        sub: SubConvolutions,
        tile: Tile,
        data: Array,
        axes: tuple[AxisSpan, ...],
        scratchpad: Scratchpad,
    ) -> Array:
        """Copy the data of all taps, ``[group, tap and in, u]``; zero where there are none."""
        dtype = self.accumulator if self.integers is None else self.element
        groups, depth, taps = len(data), self.problem.channels_in, sub.taps
        panel = scratchpad.take((groups, taps, depth, *tile.size), dtype)
        for tap, (here, there) in enumerate(_windows(sub, tile, axes)):
            target = panel[:, tap]
            for axis, (inside, size) in enumerate(zip(here, tile.size, strict=True)):
                before = (slice(None),) * (2 + axis)
                if inside.start > 0:
                    target[(*before, slice(0, inside.start))] = 0
                if inside.stop < size:
                    target[(*before, slice(inside.stop, size))] = 0
            target[(slice(None), slice(None), *here)] = data[(slice(None), slice(None), *there)]
        return panel.reshape(groups, taps * depth, math.prod(tile.size))

    def _sum_tap_by_tap(
        self,
        sub: SubConvolutions,
        tile: Tile,
        data: Array,
        axes: tuple[AxisSpan, ...],
        scratchpad: Scratchpad,
        filters: Array,
        sums: Array,
    ) -> None:
        """Multiply each tap with the data that exist, and with nothing else."""
        groups, depth = len(data), self.problem.channels_in
        planes = sums.reshape(groups, -1, *tile.size)
        planes[...] = 0
        data_memory = scratchpad.take((groups * depth * sums.shape[-1],), self.accumulator)
        sums_memory = scratchpad.take((sums.size,), self.accumulator)
        for tap, (here, there) in enumerate(_windows(sub, tile, axes)):
            size = [s.stop - s.start for s in here]
            positions = math.prod(size)
            if not positions:
                continue
            window = data_memory[: groups * depth * positions].reshape(groups, depth, *size)
            window[...] = data[(slice(None), slice(None), *there)]
            product = sums_memory[: groups * sums.shape[1] * positions]
            product = product.reshape(groups, -1, positions)
            weights = filters[..., tap * depth : (tap + 1) * depth]
            multiply_stacks(weights, window.reshape(groups, depth, positions), product)
            planes[(slice(None), slice(None), *here)] += product.reshape(groups, -1, *size)


def _windows(
    sub: SubConvolutions, tile: Tile, axes: tuple[AxisSpan, ...]
) -> Iterator[tuple[_Index, _Index]]:
    """Yield, tap by tap, the positions of a tile that have data, and where these are."""
    per_axis = []
    for span, axis, begin, end in zip(axes, sub.axes, tile.begin, tile.end, strict=True):
        windows = []
        for tap in range(axis.taps):
            first = axis.stride * begin + axis.start + span.offset + axis.step * tap
            # The index i of the tile with 0 <= first + stride * i < X.
            low = min(end - begin, max(0, -(first // axis.stride)))
            high = max(low, min(end - begin, (span.data - 1 - first) // axis.stride + 1))
            at = first + axis.stride * low if high > low else 0
            stop = at + axis.stride * (high - low - 1) + 1 if high > low else 0
            windows.append((slice(low, high), slice(at, stop, axis.stride)))
        per_axis.append(windows)
    for tap_windows in itertools.product(*per_axis):
        yield tuple(here for here, _ in tap_windows), tuple(there for _, there in tap_windows)
