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

from deconv_ir.kernels import shifted
from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.costs import MULTIPLY_ADD, SPREAD, Cost, Time, gather_time, write_time
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
            shape = _shape_of(phases, box, depth, source.whole_rows)
            if shape is None:
                continue
            seen = shape.view
            planes, used = _planes(shape, source, scratch)
            in_place = shape.is_run and writer.is_plain(planes.dtype)
            windows = (shape.images if in_place else shape.windows).of(planes)
            for part in seen.box.blocks():
                filters = weights[box.group : box.group + box.groups, part.rows(phases.phases)]
                filters = filters.reshape(*filters.shape[:2], *windows.shape[1:-2])
                if in_place:
                    results = writer.runs(part, windows.shape[-1])
                    np.einsum(shape.subscripts, filters, windows, out=results)
                    continue
                sums = scratch.take(used, (*filters.shape[:2], 1, shape.positions))
                np.einsum(shape.subscripts, filters, windows, out=sums[..., : windows.shape[-1]])
                results = sums.reshape(-1, *seen.counts, box.images, *shape.extent)
                writer.write(part, seen.places, seen.box.first, seen.ones, results[seen.inside])


def _planes(shape: _Shape, source: Source, scratch: Scratch) -> tuple[Array, int]:
    """Return the data, once for each shift, and how much of the scratch they take."""
    seen = shape.view
    if shape.offsets:
        planes = scratch.take(0, shape.copies)
        source.copy_shifted(seen.starts[:-1], shape.offsets, planes)
        return planes, planes.size
    block = scratch.take(0, shape.block)
    source.copy(seen.starts, seen.ones, block)
    if shape.copies[1] == 1:
        return block, block.size
    planes = scratch.take(block.size, shape.copies)
    copies = shape.shifted.of(block)
    flat = planes.reshape(*shape.copies[:3], shape.positions)
    np.copyto(flat[..., : copies.shape[-1]], copies)
    return planes, block.size + planes.size


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
    extent : tuple of int
        Of a plane as it is computed.
    positions : int
        Of all images.
    block, copies : tuple of int
        Shapes of the data, and of what is made of them, ``[group, shift, in, image, *u]``.
    offsets : tuple of int
        Of the copies, where rows are whole; else empty.
    shifted : _Strided
        The data in the order of the copies.
    windows : _Strided
        The copies as ``[group, tap of every axis, in, 1, position]``, all images in one run:
        up to the positions behind which the farthest datum lies outside.
    images : _Strided
        The copies as ``[group, tap of every axis, in, image, position]``, results alone.
    subscripts : str
        Of the sum.
    is_run : bool
        Whether the results of an image are one run in the output as well.
    """

    view: View
    extent: tuple[int, ...]
    positions: int
    block: tuple[int, ...]
    copies: tuple[int, ...]
    offsets: tuple[int, ...]
    shifted: _Strided
    windows: _Strided
    images: _Strided
    subscripts: str
    is_run: bool


_MOST_DEPTH = 16
_LABELS = "abcdefhijklmoqstuvwxyz"


@functools.lru_cache(maxsize=4096)
def _shape_of(phases: PhaseSet, box: Box, depth: int, whole_rows: bool) -> _Shape | None:
    seen = view(phases, box, flat=True)
    if seen is None:
        return None
    shifts = _shifts(phases)
    extent, reach = seen.extent, phases.reach
    offsets = shifted.offsets_of(phases, seen) if shifts > 1 and whole_rows else ()
    if offsets:
        extent, reach = (*extent[:-1], seen.box.size[-1]), (*reach[:-1], 0)
    plane = math.prod(extent)
    positions = box.images * plane
    length = positions - sum(r * math.prod(extent[i + 1 :]) for i, r in enumerate(reach))
    steps = [a.step * math.prod(extent[i + 1 :]) for i, a in enumerate(phases.axes)]
    if shifts > 1:
        steps[-1] = depth * positions
    taps = tuple(a.taps for a in phases.axes)
    labels = _LABELS[: len(taps) + 1]
    near, apart = (box.groups, *taps, depth), (shifts * depth * positions, *steps, positions)
    return _Shape(
        seen,
        extent,
        positions,
        (box.groups, depth, box.images, *seen.extent),
        (box.groups, shifts, depth, box.images, *extent),
        offsets,
        _Strided(
            (box.groups, shifts, depth, positions - shifts + 1),
            (depth * positions, 1, positions, 1),
        ),
        _Strided((*near, 1, length), (*apart, positions, 1)),
        _Strided((*near, box.images, math.prod(seen.box.size)), (*apart, plane, 1)),
        f"gr{labels},g{labels}np->grnp",
        bool(offsets) and not any(reach[1:]) and shifted.is_run(seen.box),
    )


def _shifts(phases: PhaseSet) -> int:
    """Return how many times the data are there: once, where shifts are not by one element."""
    last = phases.axes[-1]
    return last.taps if last.step == 1 else 1


def cost(problem: Problem, sets: list[PhaseSet], box: Box) -> Cost | None:
    """Estimate what a tile takes; None if the method does not fit the problem."""
    elements, total = 0, Time()
    depth = problem.channels_in
    # Of more channels, products are work for the BLAS: not worth an estimate.
    if depth > _MOST_DEPTH or len(problem.kernel) >= len(_LABELS):
        return None
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
        # Where rows are as long as those of the data, whole planes are shifted; and what is
        # summed may be the results already.
        whole = shifts > 1 and seen.size[-1] == seen.axes[-1].data
        if not whole:
            total += gather_time(positions * depth, 1, seen.size[-1])
        total += Time(passes=SPREAD * panel, calls=2 * shifts)
        # To set the sums to zero is another pass; to read the subscripts takes as some calls.
        total += Time(passes=MULTIPLY_ADD * rows * (phases.shifts * depth + 1) * positions, calls=6)
        if not (whole and not any(phases.reach[1:-1]) and shifted.is_run(seen)):
            total += write_time(seen, phases.phases * seen.positions, phases)
    return Cost(elements, total)
