"""Windows of the data as a matrix: one product sums all taps of a set of phases.

For phases that see data from the same distances, the data are copied once for
each distance, ``[distance and input channel][position]``, and one product with
``[output channel and phase][distance and input channel]`` is the result.  The
groups of a tile are a stack of products, which NumPy works off in one call.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.by_set import BySet
from deconv_ir.kernels.costs import ADD, Cost, Time, gather_time, product_time, write_time
from deconv_ir.kernels.problem import PhaseSet, Problem, pick
from deconv_ir.kernels.writer import Writer

__all__ = ["Windows", "cost"]

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
        ones = (1,) * len(box.size)
        for phases, weights in zip(self.sets, self.packed, strict=True):
            seen = box.seen(phases)
            if seen is None:
                continue
            extent = tuple(b + r for b, r in zip(seen.size, phases.reach, strict=True))
            block = scratch.take(0, (box.groups, depth, box.images, *extent))
            far = [a.base + r for a, r in zip(phases.axes, phases.reach, strict=True)]
            source.copy([f - s for f, s in zip(seen.first, far, strict=True)], ones, block)
            # A halo is computed as well if that makes rows of all positions.
            size = extent if is_flat(phases, seen) else seen.size
            panel, used = block, block.size
            if phases.shifts > 1:
                panel = scratch.take(used, (box.groups, phases.shifts, depth, box.images, *size))
                used += panel.size
                _gather(block, phases, panel)
            matrix = panel.reshape(box.groups, phases.shifts * depth, box.images * math.prod(size))
            places = tuple(axis.phases for axis in phases.axes)
            inside = tuple(slice(0, n) for n in seen.size)
            for part in seen.blocks():
                rows = part.outs * phases.phases
                sums = scratch.take(used, (box.groups, rows, matrix.shape[2]))
                filters = weights[box.group : box.group + box.groups, part.rows(phases.phases)]
                np.matmul(filters, matrix, out=sums)
                planes = sums.reshape(-1, *map(len, places), box.images, *size)
                writer.write(part, places, seen.first, ones, pick(planes, ..., *inside))


def _gather(block: Array, phases: PhaseSet, panel: Array) -> None:
    """Copy the data of all distances, farthest first, into ``[group, distance, in, image, *u]``."""
    axes = phases.axes
    taps = tuple(a.taps for a in axes)
    steps = tuple(a.step * n for a, n in zip(axes, block.strides[3:], strict=True))
    lead, size = panel.shape[:1], panel.shape[2:]
    apart = block.strides
    target = panel.reshape(*lead, *taps, *size)
    if size[2:] == block.shape[3:]:
        # The halo comes along, so that positions are one run; those past the end are no results.
        beyond = sum((a.taps - 1) * n for a, n in zip(axes, steps, strict=True)) // block.itemsize
        length = math.prod(size[1:])
        target = target.reshape(*lead, *taps, size[0], length)
        target[..., length - beyond :] = 0
        target, size = target[..., : length - beyond], (size[0], length - beyond)
        apart = (*block.strides[:2], block.itemsize)
    windows = as_strided(block, (*lead, *taps, *size), (apart[0], *steps, *apart[1:]))
    np.copyto(target, windows)


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
        total += gather_time(block, 1, seen.size[-1]) + Time(passes=ADD * panel)
        total += product_time(seen, phases.phases, depth * phases.shifts, positions)
        total += write_time(seen, phases.phases * seen.positions, phases)
    return Cost(elements, total)
