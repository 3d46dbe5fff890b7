"""Columns of all taps in one product, added up with their shifts.

The product is as high as taps and output channels together, so that few
output channels still make one that the BLAS is good at.  Columns of one
distance are added to all phases they reach in one go.

`Columns` copies the data with zeros around them, so that columns are runs;
they are added over those of distance zero, which reach every phase.
`ColumnsInPlace` multiplies the data where they lie, whole rows of them, and
adds rows: less to copy and to multiply where input channels are many.
"""

from __future__ import annotations

import functools
import itertools
import math
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.costs import (
    ADD,
    LOOP,
    LOOP_INTO_PARTS,
    Cost,
    Time,
    gather_time,
    product_time,
    write_time,
)
from deconv_ir.kernels.problem import AxisPhases, PhaseSet, Problem, pick
from deconv_ir.kernels.products import multiply_stacks
from deconv_ir.kernels.writer import Writer

__all__ = ["Columns", "ColumnsInPlace", "cost", "cost_in_place"]

Array = np.ndarray[Any, np.dtype[Any]]


class _Distance(NamedTuple):
    """The taps of one distance: their rows, and how many phases they reach, an axis each."""

    shift: tuple[int, ...]
    first: int
    phases: tuple[int, ...]


class Columns:
    """The filter packed for columns; undilated ones only.

    Parameters
    ----------
    problem : Problem
        What is computed; all dilations are 1, or there is one phase an axis.
    weights : ndarray
        ``[groups, in, out, *K]``.
    """

    def __init__(self, problem: Problem, weights: Array) -> None:
        self.problem = problem
        self.distances: list[_Distance] = []
        parts: list[Array] = []
        per_axis = [
            [range(k, min(k + s, extent)) for k in range(0, extent, s)]
            for extent, s in zip(problem.kernel, problem.strides, strict=True)
        ]
        rows = 0
        for kernels in itertools.product(*(enumerate(axis) for axis in per_axis)):
            part = pick(weights, ..., *(slice(k.start, k.stop) for _, k in kernels))
            shift = tuple(j * d for (j, _), d in zip(kernels, problem.dilations, strict=True))
            self.distances.append(_Distance(shift, rows, part.shape[3:]))
            parts.append(part.reshape(*part.shape[:3], math.prod(part.shape[3:])))
            rows += parts[-1].shape[3]
        # [group, out and tap, in]
        by_tap = np.concatenate(parts, axis=3).transpose(0, 2, 3, 1)
        self.packed = np.ascontiguousarray(by_tap).reshape(
            problem.groups, problem.channels_out * rows, problem.channels_in
        )
        self.taps = rows
        self.phases = tuple(tuple(range(n)) for n in self.distances[0].phases)
        self.reach = self.distances[-1].shift
        # Whether every distance reaches every phase: so it is where strides divide the kernel.
        self.even = len({distance.phases for distance in self.distances}) == 1
        self.counts = tuple(len(axis) for axis in per_axis)
        # From one distance to the next along each axis.
        self.ones = [
            tuple(d if i == axis else 0 for i, d in enumerate(problem.dilations))
            for axis in range(problem.axes)
        ]

    def compute(self, box: Box, source: Source, writer: Writer, scratch: Scratch) -> None:
        """Compute one tile."""
        extent = tuple(b + r for b, r in zip(box.size, self.reach, strict=True))
        positions = box.images * math.prod(extent)
        block = scratch.take(0, (box.groups, self.problem.channels_in, box.images, *extent))
        starts = [f - r for f, r in zip(box.first, self.reach, strict=True)]
        ones = (1,) * len(starts)
        source.copy(starts, ones, block)
        matrix = block.reshape(box.groups, self.problem.channels_in, positions)
        for part in box.blocks():
            columns = scratch.take(block.size, (box.groups, part.outs * self.taps, positions))
            filters = self.packed[box.group : box.group + box.groups, part.rows(self.taps)]
            multiply_stacks(filters, matrix, columns)
            by_channel = columns.reshape(-1, self.taps, positions)
            if self.even and len(self.distances) > 1:
                phases = self.distances[0].phases
                whole = scratch.take(
                    block.size + columns.size, (len(by_channel), *phases, positions)
                )
                self._add_at_once(by_channel, extent, whole)
            else:
                whole = self._add(by_channel, extent)
            planes = whole.reshape(*whole.shape[:-1], box.images, *extent)
            inside = (slice(reach, None) for reach in self.reach)
            writer.write(part, self.phases, box.first, ones, pick(planes, ..., *inside))

    def _add(self, columns: Array, extent: tuple[int, ...]) -> Array:
        """Return the sums, ``[channel, *phase, position]``, in place of the first columns."""
        whole = self._of(self.distances[0], columns)
        positions = columns.shape[-1]
        for distance in self.distances[1:]:
            flat = _flat(distance.shift, extent)
            reached = whole[(slice(None), *map(slice, distance.phases))][..., flat:]
            np.add(reached, self._of(distance, columns)[..., : positions - flat], out=reached)
        return whole

    def _add_at_once(self, columns: Array, extent: tuple[int, ...], whole: Array) -> None:
        """Write the sums, but where some columns lie outside, and nothing is seen of them."""
        counts, phases, size = self.counts, whole[0, ..., 0].size, columns.itemsize
        positions = columns.shape[-1]
        # From one distance to the next, an axis each; the columns of the farthest lie behind.
        steps = [
            math.prod(counts[axis + 1 :]) * phases * positions - _flat(one, extent)
            for axis, one in enumerate(self.ones)
        ]
        far = _flat(self.reach, extent)
        length = positions - far
        terms: Array = np.ndarray(
            (len(columns), *counts, phases, length),
            columns.dtype,
            columns,
            far * size,
            (columns.strides[0], *(step * size for step in steps), positions * size, size),
        )
        sums = whole.reshape(len(columns), phases, positions)[..., far:]
        np.add.reduce(terms, axis=tuple(range(1, 1 + len(counts))), out=sums)

    @staticmethod
    def _of(distance: _Distance, columns: Array) -> Array:
        """Return the columns of one distance, ``[channel, *phase, position]``."""
        count = math.prod(distance.phases)
        part = columns[:, distance.first : distance.first + count]
        return part.reshape(len(columns), *distance.phases, columns.shape[-1])


def _flat(shift: tuple[int, ...], extent: tuple[int, ...]) -> int:
    """Return how many positions a shift is."""
    flat = 0
    for step, e in zip(shift, extent, strict=True):
        flat = flat * e + step
    return flat


class ColumnsInPlace(Columns):
    """The filter packed for columns of C-contiguous data that need no conversion."""

    def compute(self, box: Box, source: Source, writer: Writer, scratch: Scratch) -> None:
        """Compute one tile, which has whole rows."""
        axes = range(len(box.size))
        part_of_data, extent, edges, moves = _moves(box, tuple(self.distances))
        # [image, group, in, position], a view: nothing but the first axis is cut.
        order = (2, 0, 1, *(3 + axis for axis in axes))
        shape = (box.images, box.groups, self.problem.channels_in, math.prod(extent))
        matrix = source.values[part_of_data].transpose(order).reshape(shape)
        for part in box.blocks():
            high = part.outs * self.taps
            columns = scratch.take(0, (box.images, box.groups, high, math.prod(extent)))
            filters = self.packed[box.group : box.group + box.groups, part.rows(self.taps)]
            multiply_stacks(filters, matrix, columns)
            channels = box.groups * part.outs
            by_tap = columns.reshape(box.images, channels, self.taps, *extent)
            counts = self.distances[0].phases  # the first distance reaches all of them
            terms = [
                by_tap[:, :, move.first : move.first + math.prod(move.phases)].reshape(
                    box.images, channels, *move.phases, *extent
                )[move.seen]
                for move in moves
            ]
            if edges or len(moves) > 1:
                sums = scratch.take(columns.size, (box.images, channels, *counts, *box.size))
                for edge in edges:
                    sums[edge] = 0
                sums[moves[0].reached] = terms[0]
                for move, term in zip(moves[1:], terms[1:], strict=True):
                    target = sums[move.reached]
                    np.add(target, term, out=target)
            else:
                (sums,) = terms
            places = (1, *(2 + a for a in axes), 0, *(2 + len(axes) + a for a in axes))
            ones = (1,) * len(axes)
            writer.write(part, self.phases, box.first, ones, sums.transpose(places))


_Index = tuple[slice | EllipsisType, ...]


class _Move(NamedTuple):
    """The terms of one distance.

    Attributes
    ----------
    first, phases
        As of `_Distance`.
    reached, seen : tuple
        Index of the sums, and of the terms that go there.
    """

    first: int
    phases: tuple[int, ...]
    reached: _Index
    seen: _Index


class _Moves(NamedTuple):
    """What a tile needs of the data, and which terms go where.

    Attributes
    ----------
    part_of_data : tuple
        Index of the data.
    extent : tuple of int
        Of these data.
    edges : list of tuple
        Indices of the sums that the first distance does not reach.
    moves : list of _Move
    """

    part_of_data: _Index
    extent: tuple[int, ...]
    edges: list[_Index]
    moves: list[_Move]


@functools.lru_cache(maxsize=4096)
def _moves(box: Box, distances: tuple[_Distance, ...]) -> _Moves:
    reach = distances[-1].shift
    ends = [f + n for f, n in zip(box.first, box.size, strict=True)]
    low = [max(0, f - r) for f, r in zip(box.first, reach, strict=True)]
    extent = tuple(min(a.data, e) - b for a, e, b in zip(box.axes, ends, low, strict=True))
    moves: list[_Move] = []
    edges: list[_Index] = []
    for distance in distances:
        reached, seen = [], []
        for f, e, b, n, shift in zip(box.first, ends, low, extent, distance.shift, strict=True):
            begin, end = max(f, b + shift), min(e, b + n + shift)
            reached.append(slice(begin - f, max(begin, end) - f))
            seen.append(slice(begin - shift - b, max(begin, end) - shift - b))
        if not moves:
            for axis, (inside, n) in enumerate(zip(reached, box.size, strict=True)):
                behind = (slice(None),) * (len(reached) - 1 - axis)
                outside = slice(0, inside.start), slice(inside.stop, n)
                edges += [(..., some, *behind) for some in outside if some.start < some.stop]
        both = (slice(None), slice(None))
        of_sums = (*both, *map(slice, distance.phases), *reached)
        moves.append(_Move(distance.first, distance.phases, of_sums, (..., *seen)))
    here = tuple(slice(b, b + n) for b, n in zip(low, extent, strict=True))
    return _Moves((..., *here), extent, edges, moves)


def cost_in_place(problem: Problem, box: Box) -> Cost | None:
    """Estimate what a tile takes in place; None if the method does not fit problem or tile."""
    undilated = cost(problem, box)
    whole = all(n >= a.last - a.first for n, a in zip(box.size[1:], box.axes[1:], strict=True))
    # Rows that only pads would leave out are not left out of a view.
    whole &= all(a.first <= a.reach and a.last >= a.data for a in box.axes[1:])
    if undilated is None or not whole:
        return None
    extent = [min(a.data, n + a.reach) for a, n in zip(box.axes, box.size, strict=True)]
    phases = _phases(problem)
    columns = box.images * math.prod(extent) * problem.taps
    total = product_time(box, problem.taps, problem.channels_in, math.prod(extent)) * box.images
    total += write_time(box, phases.phases * box.positions, phases)
    if problem.taps > phases.phases:
        calls = -(-box.outs // box.block) * (problem.taps // phases.phases + 1)
        total += Time(calls=calls) + gather_time(box.groups * box.outs * columns, 0, extent[-1])
    return Cost(box.groups * box.block * (columns + phases.phases * box.positions), total)


def cost(problem: Problem, box: Box) -> Cost | None:
    """Estimate what a tile takes; None if the method does not fit the problem."""
    axes = list(zip(problem.kernel, problem.strides, problem.dilations, strict=True))
    if any(s > 1 and d > 1 for _, s, d in axes):
        return None
    reach = [(k - 1) // s * d for k, s, d in axes]
    positions = box.images * math.prod(b + r for b, r in zip(box.size, reach, strict=True))
    data = box.groups * problem.channels_in * positions
    columns = box.groups * box.outs * problem.taps * positions
    phases = _phases(problem)
    even = all(k % s == 0 or k < s for k, s, _ in axes)
    calls = -(-box.outs // box.block) * (1 if even else math.prod(-(-k // s) for k, s, _ in axes))
    sums = phases.phases * positions if even else 0
    loops = box.groups * box.outs * problem.taps * (LOOP if even else LOOP_INTO_PARTS)
    return Cost(
        data + box.groups * box.block * (problem.taps * positions + sums),
        gather_time(data, 1, box.size[-1])
        + product_time(box, problem.taps, problem.channels_in, positions)
        + Time(passes=ADD * columns + loops, calls=calls)
        + write_time(box, phases.phases * box.positions, phases),
    )


def _phases(problem: Problem) -> PhaseSet:
    """Return all phases that have taps."""
    counts = map(min, problem.kernel, problem.strides)
    return PhaseSet.of_axes(tuple(AxisPhases(tuple(range(n)), (), 0, 0, 0, 0) for n in counts))
