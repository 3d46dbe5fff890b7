"""GEMM and col2im: the data are multiplied where they lie, and results added up with their shifts.

GEMM of a tile:

    M = output channels * taps
    K = input channels
    N = input positions x

Tap k of an axis takes the input x to ``t = s*x + d*k``: to the sub-convolution
``r = d*k mod s``, at ``u = x + d*k // s``.  The taps of one distance ``d*k // s``
are added to all sub-convolutions that they reach in one pass.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.numpy.subconvolution import AxisSpan
from deconv_ir.kernels.numpy.tile import Tile, choose_tiles
from deconv_ir.kernels.numpy.tiled import Scratchpad, TiledKernel, Tiling, leaves_holes
from deconv_ir.kernels.problem import Problem, pick
from deconv_ir.kernels.products import multiply_stacks

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

__all__ = ["GemmCol2im"]


class _Distance(NamedTuple):
    """The taps of one distance: their first row, how many phases they reach, an axis each."""

    shift: tuple[int, ...]
    first: int
    phases: tuple[int, ...]


class GemmCol2im(TiledKernel):
    """A filter of floats packed for GEMM and col2im; see `fits`.

    The parameters are those of `TiledKernel`; transposed convolutions only.
    """

    name = "gemm_col2im"

    def __init__(
        self, problem: Problem, weights: Array, bias: Array | None, activation: Activation
    ) -> None:
        super().__init__(problem, weights, bias, activation)
        per_axis = [
            [range(k, min(k + s, extent)) for k in range(0, extent, s)]
            for extent, s in zip(problem.kernel, problem.strides, strict=True)
        ]
        self.distances: list[_Distance] = []
        columns: list[Array] = []
        rows = 0
        for taps in itertools.product(*(enumerate(axis) for axis in per_axis)):
            part = pick(weights, ..., *(slice(k.start, k.stop) for _, k in taps))
            shift = tuple(j * d for (j, _), d in zip(taps, problem.dilations, strict=True))
            self.distances.append(_Distance(shift, rows, part.shape[3:]))
            columns.append(part.reshape(*part.shape[:3], math.prod(part.shape[3:])))
            rows += columns[-1].shape[3]
        self.taps, self.reach = rows, self.distances[-1].shift
        self.phases = tuple(tuple(range(n)) for n in self.distances[0].phases)
        by_tap = np.concatenate(columns, axis=3).transpose(0, 2, 3, 1)
        shape = (problem.groups, problem.channels_out * rows, problem.channels_in)
        self.packed = np.ascontiguousarray(by_tap, self.accumulator).reshape(shape)
        self._tiling = functools.lru_cache(maxsize=64)(self._choose_tiles)

    @staticmethod
    def fits(problem: Problem) -> bool:
        """Whether the taps of one distance feed neighbouring sub-convolutions."""
        axes = zip(problem.kernel, problem.strides, problem.dilations, strict=True)
        return all(s == 1 or d == 1 or k == 1 for k, s, d in axes)

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed filter."""
        return self.packed.nbytes

    def tiling(self, axes: tuple[AxisSpan, ...], bound: int) -> Tiling:
        """Choose the tiles of one image."""
        return self._tiling(axes, bound)

    def _choose_tiles(self, axes: tuple[AxisSpan, ...], bound: int) -> Tiling:
        problem = self.problem
        ranges, covered = [], []
        for axis, phases, reach in zip(axes, self.phases, self.reach, strict=True):
            ends = axis.seen(phases, 0, axis.data + reach if axis.data else 0)
            ranges.append(ends)
            covered.append(axis.covered(phases, *ends))
        scratch = functools.partial(self._scratch, axes)
        work = problem.channels_in * problem.taps
        tiles = choose_tiles(problem.groups, problem.channels_out, ranges, scratch, work, bound)
        jobs = [(0, tile) for tile in tiles]
        most, pad = (
            max((count(axes, *tile.extents) for tile in tiles), default=0)
            for count in (self._scratch, self._pad)
        )
        return Tiling(jobs, most, pad, leaves_holes(axes, covered))

    def _sums(self, groups: int, outs: int, size: Sequence[int]) -> int:
        return groups * outs * math.prod(map(len, self.phases)) * math.prod(size)

    def _pad(self, axes: tuple[AxisSpan, ...], groups: int, outs: int, size: Sequence[int]) -> int:
        """Return the bytes that a tile takes of the scratchpad, if it copies its data."""
        extents = (
            min(axis.data, n + reach) for axis, n, reach in zip(axes, size, self.reach, strict=True)
        )
        columns = groups * math.prod(extents) * (self.problem.channels_in + outs * self.taps)
        return (columns + self._sums(groups, outs, size)) * self.accumulator.itemsize + 256

    def _scratch(
        self, axes: tuple[AxisSpan, ...], groups: int, outs: int, size: Sequence[int]
    ) -> int:
        """Return the bytes that a tile takes."""
        epilogue = self.epilogue_bytes(self._sums(groups, outs, size))
        return self._pad(axes, groups, outs, size) + epilogue

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
        groups, outs, size = tile.extents
        low = [max(0, b - reach) for b, reach in zip(tile.begin, self.reach, strict=True)]
        high = [max(b, min(a.data, e)) for b, a, e in zip(low, axes, tile.end, strict=True)]
        extents = tuple(e - b for b, e in zip(low, high, strict=True))
        near = (slice(b, e) for b, e in zip(low, high, strict=True))
        matrix = self._matrix(data[(tile.groups, slice(None), *near)], scratchpad)
        rows = slice(tile.outs.start * self.taps, tile.outs.stop * self.taps)
        columns = scratchpad.take((groups, outs * self.taps, matrix.shape[-1]), self.accumulator)
        multiply_stacks(self.packed[tile.groups, rows], matrix, columns)
        by_tap = columns.reshape(groups, outs, self.taps, *extents)
        counts = tuple(map(len, self.phases))
        if len(self.distances) == 1 and extents == size:
            write(self.phases, by_tap.reshape(groups, outs, *counts, *extents))
            return
        sums = scratchpad.take((groups, outs, *counts, *size), self.accumulator)
        for distance in self.distances:
            here, there = [], []
            for shift, begin, end, b, e in zip(
                distance.shift, tile.begin, tile.end, low, high, strict=True
            ):
                first = max(begin, b + shift)
                last = max(first, min(end, e + shift))
                here.append(slice(first - begin, last - begin))
                there.append(slice(first - shift - b, last - shift - b))
            rows = slice(distance.first, distance.first + math.prod(distance.phases))
            column = by_tap[:, :, rows].reshape(groups, outs, *distance.phases, *extents)
            source = pick(column, ..., *there)
            target = pick(sums, ..., *map(slice, distance.phases), *here)
            if distance.first:
                target += source
            else:
                # The first distance reaches all phases.
                if source.size < sums.size:
                    sums[...] = 0
                target[...] = source
        write(self.phases, sums)

    def _matrix(self, data: Array, scratchpad: Scratchpad) -> Array:
        """Return ``[group, in, *x]`` as ``[group, in, x]``, in place where the BLAS can read it."""
        shape = (*data.shape[:2], math.prod(data.shape[2:]))
        expected = data.itemsize
        plain = data.dtype == self.accumulator
        for extent, stride in zip(data.shape[:1:-1], data.strides[:1:-1], strict=True):
            plain &= extent == 1 or stride == expected
            expected *= extent
        # The BLAS wants rows that do not overlap.
        if plain and data.strides[1] >= expected:
            return data.reshape(shape)
        copy = scratchpad.take(data.shape, self.accumulator)
        copy[...] = data
        return copy.reshape(shape)
