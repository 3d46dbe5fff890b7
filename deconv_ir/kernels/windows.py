"""Windows of the data as a matrix: one product sums all taps of a set of phases.

For phases that see data from the same distances, the data are copied once for
each distance, ``[distance and input channel][position]``, and one product with
``[output channel and phase][distance and input channel]`` is the result.  The
groups of a tile are a stack of products, which NumPy works off in one call.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.by_set import BySet
from deconv_ir.kernels.costs import SPREAD, Cost, Time, gather_time, product_time, write_time
from deconv_ir.kernels.problem import PhaseSet, Problem
from deconv_ir.kernels.products import multiply_stacks
from deconv_ir.kernels.writer import Writer

__all__ = ["View", "Windows", "cost", "fill_panel", "view"]

Array = np.ndarray[Any, np.dtype[Any]]


class Windows(BySet):
    """The filter packed for windows."""

    @staticmethod
    def pack(weights: Array, phases: PhaseSet) -> Array:
        """Return ``[group, out and phase, distance and in]``."""
        # Data come in order of position: the farthest tap is the first.
        # [g, i, o, phase of axis 1, tap of axis 1, phase of axis 2, ...]
        for axis, part in enumerate(phases.axes):
            index = [positions[::-1] for positions in part.kernel_positions()]
            weights = weights.take(index, axis=3 + 2 * axis)
        phase_axes = [3 + 2 * a for a in range(len(phases.axes))]
        tap_axes = [4 + 2 * a for a in range(len(phases.axes))]
        ordered = np.ascontiguousarray(weights.transpose(0, 2, *phase_axes, *tap_axes, 1))
        groups, depth, outs = weights.shape[:3]
        return ordered.reshape(groups, outs * phases.phases, phases.shifts * depth)

    def compute(self, box: Box, source: Source, writer: Writer, scratch: Scratch) -> None:
        """Compute one tile."""
        depth = self.problem.channels_in
        for phases, weights in zip(self.sets, self.packed, strict=True):
            seen = view(phases, box)
            if seen is None:
                continue
            panel, used = fill_panel(phases, depth, seen, source, scratch)
            matrix = panel.reshape(box.groups, phases.shifts * depth, seen.positions)
            for part in seen.box.blocks():
                rows = part.outs * phases.phases
                sums = scratch.take(used, (box.groups, rows, seen.positions))
                filters = weights[box.group : box.group + box.groups, part.rows(phases.phases)]
                multiply_stacks(filters, matrix, sums)
                planes = sums.reshape(-1, *seen.counts, box.images, *seen.size)
                writer.write(part, seen.places, seen.box.first, seen.ones, planes[seen.inside])


class View(NamedTuple):
    """What a tile sees of a set of phases.

    Attributes
    ----------
    box : Box
        The part of the tile.
    extent, starts : tuple of int
        Of the data that it needs.
    size : tuple of int
        Extents that are computed: a halo is computed as well if that makes
        rows of all positions.
    positions : int
        All of them, those of all images.
    inside : tuple
        Index of those that are results.
    places : tuple of tuple of int
        The phases of each axis.
    counts : tuple of int
        How many these are.
    ones : tuple of int
        A step of 1 along every axis.
    """

    box: Box
    extent: tuple[int, ...]
    starts: tuple[int, ...]
    size: tuple[int, ...]
    positions: int
    inside: tuple[Any, ...]
    places: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    ones: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def view(phases: PhaseSet, box: Box, *, flat: bool = False) -> View | None:
    """Return what a tile sees of a set of phases; with `flat`, with its halo in any case."""
    seen = box.seen(phases)
    if seen is None:
        return None
    extent = tuple(b + r for b, r in zip(seen.size, phases.reach, strict=True))
    far = [a.base + r for a, r in zip(phases.axes, phases.reach, strict=True)]
    size = extent if flat or is_flat(phases, seen) else seen.size
    places = tuple(axis.phases for axis in phases.axes)
    return View(
        seen,
        extent,
        tuple(f - s for f, s in zip(seen.first, far, strict=True)),
        size,
        box.images * math.prod(size),
        (..., *(slice(0, n) for n in seen.size)),
        places,
        tuple(map(len, places)),
        (1,) * len(size),
    )


def fill_panel(
    phases: PhaseSet, depth: int, seen: View, source: Source, scratch: Scratch
) -> tuple[Array, int]:
    """Copy the data of a tile for all distances; tell how much of the scratch is taken.

    Returns
    -------
    ndarray
        ``[group, distance, in, image, *u]``, or the data themselves where there is one distance.
    int
    """
    box = seen.box
    block = scratch.take(0, (box.groups, depth, box.images, *seen.extent))
    source.copy(seen.starts, seen.ones, block)
    if phases.shifts == 1:
        return block, block.size
    panel = scratch.take(block.size, (box.groups, phases.shifts, depth, box.images, *seen.size))
    _gather(block, phases, panel)
    return panel, block.size + panel.size


def _gather(block: Array, phases: PhaseSet, panel: Array) -> None:
    """Copy the data of all distances, farthest first, into ``[group, distance, in, image, *u]``."""
    axes = phases.axes
    taps = tuple(a.taps for a in axes)
    steps = tuple(a.step * n for a, n in zip(axes, block.strides[3:], strict=True))
    lead, size = panel.shape[:1], panel.shape[2:]
    apart = block.strides
    target = panel.reshape(*lead, *taps, *size)
    if size[2:] == block.shape[3:]:
        # The halo comes along, so that positions are one run; those past the end, which stay
        # void, are no results.
        beyond = sum((a.taps - 1) * n for a, n in zip(axes, steps, strict=True)) // block.itemsize
        length = math.prod(size[1:])
        target = target.reshape(*lead, *taps, size[0], length)
        target, size = target[..., : length - beyond], (size[0], length - beyond)
        apart = (*block.strides[:2], block.itemsize)
    shape, strides = (*lead, *taps, *size), (apart[0], *steps, *apart[1:])
    np.copyto(target, np.ndarray(shape, block.dtype, block, 0, strides))


def is_flat(phases: PhaseSet, box: Box) -> bool:
    """Whether a tile is computed with its halo, which is cheaper unless it is tiny."""
    extents = (b + r for b, r in zip(box.size, phases.reach, strict=True))
    return math.prod(extents) <= 1.15 * math.prod(box.size)


def cost(problem: Problem, sets: list[PhaseSet], box: Box) -> Cost:
    """Estimate what a tile takes."""
    elements, total = 0, Time()
    depth = problem.channels_in
    for phases in sets:
        seen = box.most(phases)
        if seen is None:
            continue
        extent = math.prod(b + r for b, r in zip(seen.size, phases.reach, strict=True))
        block = box.groups * depth * box.images * extent
        positions = box.images * extent if is_flat(phases, seen) else seen.positions
        panel = box.groups * depth * phases.shifts * positions if phases.shifts > 1 else 0
        sums = box.groups * box.block * phases.phases * positions
        elements = max(elements, block + panel + sums)
        total += gather_time(block, 1, seen.size[-1]) + Time(passes=SPREAD * panel)
        total += product_time(seen, phases.phases, depth * phases.shifts, positions)
        total += write_time(seen, phases.phases * seen.positions, phases)
    return Cost(elements, total)
