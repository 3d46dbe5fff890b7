"""Taps as passes over planes that lie in one run: for groups of so few channels as depthwise ones.

A product with one row is no work for the BLAS.  Each tap is instead a pass over
the data of all positions, shifted and scaled, which is added to the sums.  The
planes have their halo between the rows, so that a shift is an offset, and one
call of `numpy.einsum` does all passes of a tile.

That works through the axes in the order of their strides, and is fast while
positions come last.  A shift by one element has the same stride as they have;
so the data are there once for each shift along the last axis.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.costs import ADD, Cost, Time, gather_time, write_time
from deconv_ir.kernels.problem import PhaseSet, Problem
from deconv_ir.kernels.windows import View, Windows, view
from deconv_ir.kernels.writer import Writer

__all__ = ["Taps", "cost"]

Array = np.ndarray[Any, np.dtype[Any]]


class Taps(Windows):
    """The filter packed as for windows."""

    def compute(self, box: Box, source: Source, writer: Writer, scratch: Scratch) -> None:
        """Compute one tile."""
        depth = self.problem.channels_in
        for phases, weights in zip(self.sets, self.packed, strict=True):
            shape = _shape_of(phases, box, depth)
            if shape is None:
                continue
            seen = shape.view
            block = scratch.take(0, shape.block)
            source.copy(seen.starts, seen.ones, block)
            planes, used = block, block.size
            if shape.copies[1] > 1:
                planes = scratch.take(used, shape.copies)
                used += planes.size
                shifted = shape.shifted.of(block)
                np.copyto(planes[..., : shifted.shape[-1]], shifted)
            windows = shape.windows.of(planes)
            for part in seen.box.blocks():
                filters = weights[box.group : box.group + box.groups, part.rows(phases.phases)]
                filters = filters.reshape(*filters.shape[:2], *windows.shape[1:-1])
                sums = scratch.take(used, (*filters.shape[:2], seen.positions))
                np.einsum(shape.subscripts, filters, windows, out=sums[..., : shape.length])
                results = sums.reshape(-1, *seen.counts, box.images, *seen.size)
                writer.write(part, seen.places, seen.box.first, seen.ones, results[seen.inside])


class _Strided(NamedTuple):
    """A way to look at an array: shape, and strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def of(self, array: Array) -> Array:
        """Return the view; nothing in it lies outside the array."""
        strides = [n * array.itemsize for n in self.strides]
        view: Array = np.ndarray(self.shape, array.dtype, array, 0, strides)
        return view


class _Shape(NamedTuple):
    """How one tile is computed for one set of phases.

    Attributes
    ----------
    view : View
        What is seen.
    length : int
        Positions that are summed: not those behind which the farthest datum lies outside.
    block, copies : tuple of int
        Shapes of the data, and of what is made of them, ``[group, shift, in, position]``.
    shifted : _Strided
        The data in the order of the copies.
    windows : _Strided
        The copies as ``[group, tap of every axis, in, position]``.
    subscripts : str
        Of the sum.
    """

    view: View
    length: int
    block: tuple[int, ...]
    copies: tuple[int, ...]
    shifted: _Strided
    windows: _Strided
    subscripts: str


_LABELS = "abcdefhijklmnoqstuvwxyz"


@functools.lru_cache(maxsize=4096)
def _shape_of(phases: PhaseSet, box: Box, depth: int) -> _Shape | None:
    seen = view(phases, box, flat=True)
    if seen is None:
        return None
    positions = seen.positions
    beyond = sum(r * math.prod(seen.extent[i + 1 :]) for i, r in enumerate(phases.reach))
    length = positions - beyond
    shifts = _shifts(phases)
    steps = [a.step * math.prod(seen.extent[i + 1 :]) for i, a in enumerate(phases.axes)]
    if shifts > 1:
        steps[-1] = depth * positions
    taps = tuple(a.taps for a in phases.axes)
    labels = _LABELS[: len(taps) + 1]
    return _Shape(
        seen,
        length,
        (box.groups, depth, box.images, *seen.extent),
        (box.groups, shifts, depth, positions),
        _Strided(
            (box.groups, shifts, depth, positions - shifts + 1),
            (depth * positions, 1, positions, 1),
        ),
        _Strided(
            (box.groups, *taps, depth, length),
            (shifts * depth * positions, *steps, positions, 1),
        ),
        f"gr{labels},g{labels}p->grp",
    )


def _shifts(phases: PhaseSet) -> int:
    """Return how many times the data are there: once, where shifts are not by one element."""
    last = phases.axes[-1]
    return last.taps if last.step == 1 else 1


def cost(problem: Problem, sets: list[PhaseSet], box: Box) -> Cost | None:
    """Estimate what a tile takes; None if the method does not fit the problem."""
    elements, total = 0, Time()
    if len(problem.kernel) >= len(_LABELS):
        return None
    depth = problem.channels_in
    for phases in sets:
        seen = box.most(phases)
        if seen is None:
            continue
        extent = box.images
        for size, reach in zip(seen.size, phases.reach, strict=True):
            extent *= size + reach
        positions = box.groups * extent
        shifts = _shifts(phases)
        panel = shifts * positions * depth if shifts > 1 else 0
        rows = phases.phases * box.outs
        elements = max(elements, positions * depth + panel + phases.phases * box.block * positions)
        total += gather_time(positions * depth, 1, seen.size[-1])
        total += Time(passes=ADD * panel, calls=2)
        # To set the sums to zero is another pass.
        total += Time(passes=ADD * rows * (phases.shifts * depth + 1) * positions, calls=2)
        total += write_time(seen, phases.phases * seen.positions, phases)
    return Cost(elements, total)
