"""GEMM and col2im: data are multiplied in place, and the shifted products are summed.

GEMM of a tile:

    M = output channels * taps
    K = input channels
    N = input positions x

Tap k of an axis maps the input x to ``t = s*x + d*k``: to the sub-convolution ``r = d*k mod s``, at
``u = x + d*k // s``.  The taps of one distance ``d*k // s`` are added to all sub-convolutions that
they reach in one pass.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.numpy.filter_parts import FilterPart, packed_array
from deconv_ir.kernels.numpy.subconvolution import Axes, Extents
from deconv_ir.kernels.numpy.tiled import Scratchpad, SubConvolutionGroup, TiledKernel, TileTask
from deconv_ir.kernels.problem import Problem, pick
from deconv_ir.kernels.products import multiply_stacks


class _Distance(NamedTuple):
    """The taps of one distance: their first row, and the sub-convolutions reached per axis."""

    first: int
    reached: tuple[int, ...]


class GemmCol2im(TiledKernel):
    """A filter of floats packed for GEMM and col2im; see `fits`.

    The parameters are those of `TiledKernel`; transposed convolutions only.
    """

    name = "gemm_col2im"

    def _pack(self, parts: Iterable[FilterPart]) -> None:
        problem = self.problem
        per_axis = [
            [slice(k, min(k + s, extent)) for k in range(0, extent, s)]
            for extent, s in zip(problem.kernel, problem.strides, strict=True)
        ]
        of_distances = list(itertools.product(*per_axis))
        self.distances: list[_Distance] = []
        rows = 0
        for taps in of_distances:
            self.distances.append(_Distance(rows, tuple(tap.stop - tap.start for tap in taps)))
            rows += math.prod(self.distances[-1].reached)
        self.shifts = [
            tuple(j * d for j in range(len(axis)))
            for axis, d in zip(per_axis, problem.dilations, strict=True)
        ]
        self.taps, self.reach = rows, [shifts[-1] for shifts in self.shifts]
        self.remainders = tuple(tuple(range(n)) for n in self.distances[0].reached)
        shape = (problem.groups, problem.channels_out, rows, problem.channels_in)
        packed = packed_array(parts, shape, self.accumulator)
        for part in parts:
            into = packed[part.groups, part.outs, :, part.ins]
            for (first, reached), taps in zip(self.distances, of_distances, strict=True):
                weights = pick(part.weights, ..., *taps)
                rows = math.prod(reached)
                by_tap = weights.reshape(*weights.shape[:3], rows).transpose(0, 2, 3, 1)
                into[:, :, first : first + rows] = by_tap
        self.packed = packed.reshape(shape[0], shape[1] * shape[2], shape[3])

    @staticmethod
    def fits(problem: Problem) -> bool:
        """Whether the taps of one distance feed neighbouring sub-convolutions."""
        axes = zip(problem.kernel, problem.strides, problem.dilations, strict=True)
        return all(s == 1 or d == 1 or k == 1 for k, s, d in axes)

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed filter."""
        return self.packed.nbytes

    def parts(self, axes: Axes) -> list[SubConvolutionGroup]:
        """Return all sub-convolutions as one part."""
        ranges = tuple(
            axis.seen(remainders, 0, axis.data + reach if axis.data else 0)
            for axis, remainders, reach in zip(axes, self.remainders, self.reach, strict=True)
        )
        return [
            SubConvolutionGroup(
                self.remainders, ranges, self.problem.channels_in * self.problem.taps
            )
        ]

    def tile_bytes(self, part: int, axes: Axes, extents: Extents, sums: int) -> tuple[int, int]:
        """Return the bytes of data, which may be copied, products and sums."""
        groups, outs, size = extents
        inputs = groups * math.prod(
            min(axis.data, n + reach) for axis, n, reach in zip(axes, size, self.reach, strict=True)
        )
        elements = inputs * (self.problem.channels_in + outs * self.taps) + sums
        return elements * self.accumulator.itemsize, 0

    def compute(self, job: TileTask, data: Array, axes: Axes, scratchpad: Scratchpad) -> Array:
        """Return the sums of one tile."""
        tile = job.tile
        groups, outs, size = tile.extents
        low = [max(0, b - reach) for b, reach in zip(tile.begin, self.reach, strict=True)]
        high = [max(b, min(a.data, e)) for b, a, e in zip(low, axes, tile.end, strict=True)]
        extents = tuple(e - b for b, e in zip(low, high, strict=True))
        near = (slice(b, e) for b, e in zip(low, high, strict=True))
        matrix = self._matrix(pick(data[:, tile.groups], ..., *near), scratchpad)
        rows = slice(tile.outs.start * self.taps, tile.outs.stop * self.taps)
        stack = (len(data), groups, outs)
        shape = (*stack[:2], outs * self.taps, matrix.shape[-1])
        products = scratchpad.take(shape, self.accumulator)
        multiply_stacks(self.packed[tile.groups, rows], matrix, products)
        by_tap = products.reshape(*stack, self.taps, *extents)
        counts = tuple(map(len, self.remainders))
        if len(self.distances) == 1 and extents == size:
            return by_tap.reshape(*stack, *counts, *extents)
        sums = scratchpad.take((*stack, *counts, *size), self.accumulator)
        overlaps = [
            _overlaps(*axis)
            for axis in zip(self.shifts, tile.begin, tile.end, low, high, strict=True)
        ]
        for distance, overlap in zip(self.distances, itertools.product(*overlaps), strict=True):
            rows = slice(distance.first, distance.first + math.prod(distance.reached))
            column = by_tap[:, :, :, rows].reshape(*stack, *distance.reached, *extents)
            source = pick(column, ..., *(there for _, there in overlap))
            here = (here for here, _ in overlap)
            target = pick(sums, ..., *map(slice, distance.reached), *here)
            if distance.first:
                target += source
            else:
                # The first distance reaches all sub-convolutions.
                if source.size < sums.size:
                    sums[...] = 0
                target[...] = source
        return sums

    def _matrix(self, data: Array, scratchpad: Scratchpad) -> Array:
        """Return ``[N, group, in, *x]`` as ``[N, group, in, x]``, a view if the BLAS accepts it."""
        shape = (*data.shape[:3], math.prod(data.shape[3:]))
        expected = data.itemsize
        plain = data.dtype == self.accumulator
        for extent, stride in zip(data.shape[:2:-1], data.strides[:2:-1], strict=True):
            plain &= extent == 1 or stride == expected
            expected *= extent
        # The BLAS requires rows that do not overlap.
        if plain and data.strides[2] >= expected:
            return data.reshape(shape)
        copy = scratchpad.take(data.shape, self.accumulator)
        copy[...] = data
        return copy.reshape(shape)


@functools.lru_cache(maxsize=4096)
def _overlaps(
    shifts: tuple[int, ...], begin: int, end: int, low: int, high: int
) -> list[tuple[slice, slice]]:
    """Return, for each shift, the positions of a tile that an input reaches, and these inputs."""
    overlaps = []
    for shift in shifts:
        first = max(begin, low + shift)
        last = max(first, min(end, high + shift))
        overlaps.append(
            (slice(first - begin, last - begin), slice(first - shift - low, last - shift - low))
        )
    return overlaps
