"""Depthwise filters, one tap after the other: passes over planes that lie in one run.

A product with one row, or with one column, is no work for the BLAS.  Where a
group has one input channel, each tap is instead a pass over the data of all
positions, shifted and scaled, which is added to the sums.  The planes have
their halo between the rows, so that a shift is an offset, and one call does a
plane of every group of the tile, each with its own weight.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.costs import ADD, Cost, Time, gather_time, write_time
from deconv_ir.kernels.problem import PhaseSet, Problem
from deconv_ir.kernels.windows import Windows, view
from deconv_ir.kernels.writer import Writer

__all__ = ["Taps", "cost"]

Array = np.ndarray[Any, np.dtype[Any]]


class Taps(Windows):
    """The filter packed as for windows; a group has one input channel."""

    def compute(self, box: Box, source: Source, writer: Writer, scratch: Scratch) -> None:
        """Compute one tile."""
        for phases, weights in zip(self.sets, self.packed, strict=True):
            seen = view(phases, box, flat=True)
            if seen is None:
                continue
            block = scratch.take(0, (box.groups, 1, box.images, *seen.extent))
            source.copy(seen.starts, seen.ones, block)
            offsets = _offsets(phases, block)
            flat = block.reshape(box.groups, seen.positions)
            product = scratch.take(block.size, flat.shape)
            for part in seen.box.blocks():
                rows = part.rows(phases.phases)
                filters = weights[box.group : box.group + box.groups, rows]
                sums = scratch.take(2 * block.size, (*filters.shape[:2], seen.positions))
                for row in range(filters.shape[1]):
                    _add_up(flat, filters[:, row], offsets, product, sums[:, row])
                planes = sums.reshape(-1, *seen.counts, box.images, *seen.size)
                writer.write(part, seen.places, seen.box.first, seen.ones, planes[seen.inside])


def _offsets(phases: PhaseSet, block: Array) -> list[int]:
    """Return how far the data of each tap lie behind a position, farthest tap first."""
    steps = [a.step * n for a, n in zip(phases.axes, block.strides[3:], strict=True)]
    taps = itertools.product(*(range(a.taps) for a in phases.axes))
    return [sum(t * n for t, n in zip(tap, steps, strict=True)) // block.itemsize for tap in taps]


def _add_up(flat: Array, weights: Array, offsets: list[int], product: Array, sums: Array) -> None:
    """Sum the shifted and scaled data; the last positions, which no result needs, stay void."""
    length = flat.shape[1] - offsets[-1]
    sums = sums[:, :length]
    product = product[:, :length]
    for tap, offset in enumerate(offsets):
        here, weight = flat[:, offset : offset + length], weights[:, tap : tap + 1]
        if tap == 0:
            np.multiply(here, weight, out=sums)
        else:
            np.multiply(here, weight, out=product)
            np.add(sums, product, out=sums)


def cost(problem: Problem, sets: list[PhaseSet], box: Box) -> Cost | None:
    """Estimate what a tile takes; None if the method does not fit the problem."""
    if problem.channels_in != 1:
        return None
    elements, total = 0, Time()
    for phases in sets:
        seen = box.most(phases)
        if seen is None:
            continue
        extent = box.images
        for size, reach in zip(seen.size, phases.reach, strict=True):
            extent *= size + reach
        block = box.groups * extent
        rows = phases.phases * box.outs
        elements = max(elements, (2 + phases.phases * box.block) * block)
        passes = rows * (2 * phases.shifts - 1)
        total += gather_time(block, 1, seen.size[-1])
        total += Time(passes=ADD * passes * block, calls=passes)
        total += write_time(seen, phases.phases * seen.positions, phases)
    return Cost(elements, total)
