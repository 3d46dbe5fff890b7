"""Windows along all axes but the first, columns along that: for kernels that are wide and high.

Windows copy the data once for each tap, columns add one column for each.
Where few channels meet many taps, either is more work than the product
itself.  Here the data are copied for the taps of a row only; the product has
rows for those of each column, whose results are then added with their shifts.

Where a tile has whole rows there is a halo along the first axis alone
(`shifted`), and the sums may be added up where the results go.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels import shifted
from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.costs import ADD, SPREAD, Cost, Time, gather_time, product_time, write_time
from deconv_ir.kernels.problem import PhaseSet, Problem
from deconv_ir.kernels.products import multiply_stacks
from deconv_ir.kernels.windows import View, Windows, fill_panel, view
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
            shape = _shape_of(phases, box, source.whole_rows)
            if shape is None:
                continue
            seen, across, positions = shape.view, shape.across, shape.positions
            if shape.offsets:
                size = (box.groups, across.shifts, depth, box.images, *shape.extent)
                panel, used = scratch.take(0, size), math.prod(size)
                shifted.fill(across, seen, shape.offsets, source, panel)
            else:
                panel, used = fill_panel(across, depth, seen, source, scratch)
            matrix = panel.reshape(box.groups, across.shifts * depth, positions)
            taps = phases.axes[0].taps
            in_place = shape.is_run and writer.is_plain(panel.dtype)
            for part in seen.box.blocks():
                some = part.rows(phases.phases)
                filters = weights[box.group : box.group + box.groups, :, some]
                high = filters.shape[2]
                filters = filters.reshape(box.groups, taps * high, matrix.shape[1])
                columns = scratch.take(used, (*filters.shape[:2], positions))
                multiply_stacks(filters, matrix, columns)
                if in_place:
                    _add(columns, taps, shape.step, writer.runs(part, shape.results))
                    continue
                # The images are one run here; the halo of the last one lies outside.
                sums = scratch.take(used + columns.size, (box.groups, high, 1, positions))
                length = positions - (taps - 1) * shape.step
                _add(columns, taps, shape.step, sums[..., :length])
                planes = sums.reshape(-1, *seen.counts, box.images, *shape.extent)
                writer.write(part, seen.places, seen.box.first, seen.ones, planes[seen.inside])


def _add(columns: Array, taps: int, step: int, sums: Array) -> None:
    """Add up the columns of all taps; those of the next one lie `step` positions farther on.

    Parameters
    ----------
    columns : ndarray
        ``[group, tap and row, position]``.
    sums : ndarray
        ``[group, row, image, position]``.
    """
    groups, rows, positions = columns.shape
    _, high, images, length = sums.shape
    group, row, size = columns.strides
    terms: Array = np.ndarray(
        (groups, taps, high, images, length),
        columns.dtype,
        columns,
        0,
        (group, rows // taps * row + step * size, row, positions // images * size, size),
    )
    np.add.reduce(terms, axis=1, out=sums)


class _Shape(NamedTuple):
    """How one tile is computed for one set of phases.

    Attributes
    ----------
    view : View
        What is seen.
    across : PhaseSet
        The taps of one position of the first axis.
    extent : tuple of int
        Of a plane as it is multiplied.
    positions, step : int
        Positions of all images, and those from a tap of the first axis to the next.
    offsets : tuple of int
        Of the copies for the taps of a row; empty where these have a halo between the rows.
    is_run : bool
        Whether the first `results` positions of an image are a run of results.
    results : int
    """

    view: View
    across: PhaseSet
    extent: tuple[int, ...]
    positions: int
    step: int
    offsets: tuple[int, ...]
    is_run: bool
    results: int


@functools.lru_cache(maxsize=4096)
def _shape_of(phases: PhaseSet, box: Box, whole_rows: bool) -> _Shape | None:
    seen = view(phases, box, flat=True)
    if seen is None:
        return None
    extent = seen.extent
    offsets = shifted.offsets_of(phases, seen) if whole_rows else ()
    if offsets:
        extent = (extent[0], *seen.box.size[1:])
    return _Shape(
        seen,
        _across(phases),
        extent,
        box.images * math.prod(extent),
        phases.axes[0].step * math.prod(extent[1:]),
        offsets,
        bool(offsets) and shifted.is_run(seen.box),
        math.prod(seen.box.size),
    )


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
        across, taps = _across(phases), phases.axes[0].taps
        positions = box.images
        for size, reach in zip(seen.size, phases.reach, strict=True):
            positions *= size + reach
        block = box.groups * depth * positions
        panel = block * across.shifts if across.shifts > 1 else 0
        sums = phases.phases * positions * box.groups
        # With a halo between the rows in any case: whether there is none depends on the data, too.
        elements = max(elements, block + panel + (taps + 1) * sums * box.block)
        in_place = seen.size[-1] == seen.axes[-1].data and shifted.is_run(seen)
        if in_place:
            positions = box.images * (seen.size[0] + phases.reach[0]) * math.prod(seen.size[1:])
            panel = box.groups * depth * across.shifts * positions
            sums = phases.phases * positions * box.groups
            total += Time(passes=SPREAD * panel, calls=2 * across.shifts)
        else:
            total += gather_time(block, 1, seen.size[-1]) + Time(passes=SPREAD * panel, calls=2)
        total += product_time(seen, taps * phases.phases, depth * across.shifts, positions)
        total += Time(passes=ADD * taps * sums * box.outs, calls=2)
        if not in_place:
            total += write_time(seen, phases.phases * seen.positions, phases)
    return Cost(elements, total)
