"""Windows along all axes but the first, columns along that: for kernels that are wide and high.

Windows copy the data once for each tap, columns add one column for each.
Where few channels meet many taps, either is more work than the product
itself.  Here the data are copied for the taps of a row only; the product has
rows for those of each column, whose results are then added with their shifts.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.costs import ADD, SPREAD, Cost, Time, gather_time, product_time, write_time
from deconv_ir.kernels.problem import PhaseSet, Problem
from deconv_ir.kernels.products import multiply_stacks
from deconv_ir.kernels.windows import Windows, fill_panel, view
from deconv_ir.kernels.writer import Writer

__all__ = ["Rows", "cost"]

Array = np.ndarray[Any, np.dtype[Any]]


class Rows(Windows):
    """The filter packed for rows."""

    @staticmethod
    def pack(weights: Array, phases: PhaseSet) -> Array:
        """Return ``[group, distance along the first axis, out and phase, distance and in]``."""
        packed = Windows.pack(weights, phases)
        groups, rows, depth = packed.shape
        taps = phases.axes[0].taps
        by_tap = packed.reshape(groups, rows, taps, depth // taps).transpose(0, 2, 1, 3)
        return np.ascontiguousarray(by_tap)

    def compute(self, box: Box, source: Source, writer: Writer, scratch: Scratch) -> None:
        """Compute one tile."""
        depth = self.problem.channels_in
        for phases, weights in zip(self.sets, self.packed, strict=True):
            seen = view(phases, box, flat=True)
            if seen is None:
                continue
            across = _across(phases)
            panel, used = fill_panel(across, depth, seen, source, scratch)
            matrix = panel.reshape(box.groups, across.shifts * depth, seen.positions)
            taps, plane = phases.axes[0].taps, math.prod(seen.extent[1:])
            length = seen.positions - phases.reach[0] * plane
            for part in seen.box.blocks():
                some = part.rows(phases.phases)
                filters = weights[box.group : box.group + box.groups, :, some]
                high = filters.shape[2]
                filters = filters.reshape(box.groups, taps * high, matrix.shape[1])
                columns = scratch.take(used, (*filters.shape[:2], seen.positions))
                multiply_stacks(filters, matrix, columns)
                sums = scratch.take(used + columns.size, (box.groups, high, seen.positions))
                # From a tap to the next: its rows, and the position that it is added to.
                step = high * seen.positions + phases.axes[0].step * plane
                size = columns.itemsize
                terms: Array = np.ndarray(
                    (box.groups, taps, high, length),
                    columns.dtype,
                    columns,
                    0,
                    (columns.strides[0], step * size, *columns.strides[1:]),
                )
                np.add.reduce(terms, axis=1, out=sums[..., :length])
                planes = sums.reshape(-1, *seen.counts, box.images, *seen.extent)
                writer.write(part, seen.places, seen.box.first, seen.ones, planes[seen.inside])


@functools.lru_cache(maxsize=256)
def _across(phases: PhaseSet) -> PhaseSet:
    """Return the taps of one position of the first axis."""
    first = phases.axes[0]._replace(taps=1)
    return PhaseSet.of_axes((first, *phases.axes[1:]))


def cost(problem: Problem, sets: list[PhaseSet], box: Box) -> Cost | None:
    """Estimate what a tile takes; None if the method does not fit the problem."""
    # With one tap along the first axis, or no other axis, these are windows, or columns.
    if len(problem.kernel) < 2 or all(phases.axes[0].taps == 1 for phases in sets):
        return None
    elements, total = 0, Time()
    depth = problem.channels_in
    for phases in sets:
        seen = box.most(phases)
        if seen is None:
            continue
        positions = box.images
        for size, reach in zip(seen.size, phases.reach, strict=True):
            positions *= size + reach
        across, taps = _across(phases), phases.axes[0].taps
        block = box.groups * depth * positions
        panel = block * across.shifts if across.shifts > 1 else 0
        sums = phases.phases * positions * box.groups
        elements = max(elements, block + panel + (taps + 1) * sums * box.block)
        total += gather_time(block, 1, seen.size[-1]) + Time(passes=SPREAD * panel, calls=2)
        total += product_time(seen, taps * phases.phases, depth * across.shifts, positions)
        total += Time(passes=ADD * taps * sums * box.outs, calls=2)
        total += write_time(seen, phases.phases * seen.positions, phases)
    return Cost(elements, total)
