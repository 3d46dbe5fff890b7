"""Data copied once for each tap of a row: shifted as a whole, where a tile has whole rows.

A halo between the rows would be multiplied and added as well.  Copies that are
as long as the data need none: what a shift brings over from the next row is
set to zero.  One call copies all rows of a tile for one tap.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from deconv_ir.kernels.box import Box, Source
from deconv_ir.kernels.problem import PhaseSet
from deconv_ir.kernels.windows import View

__all__ = ["fill", "is_run", "offsets_of"]

Array = np.ndarray[Any, np.dtype[Any]]


def offsets_of(phases: PhaseSet, seen: View) -> tuple[int, ...]:
    """Return how far the copies for the taps of a row lie behind the data.

    Returns
    -------
    tuple of int
        Farthest tap first.  Empty where rows are not as long as those of the data.
    """
    if seen.box.size[-1] != seen.box.axes[-1].data:
        return ()
    first, last = seen.starts[-1], phases.axes[-1]
    return tuple(first + last.step * tap for tap in range(last.taps))


def fill(
    phases: PhaseSet, seen: View, offsets: tuple[int, ...], source: Source, panel: Array
) -> None:
    """Copy the data of a tile for all distances; `offsets` are those along the last axis.

    Parameters
    ----------
    panel : ndarray
        ``[group, distance, in, image, *u]``, distances in the order of `windows.fill_panel`.
    """
    groups, _, *size = panel.shape
    by_tap = panel.reshape(groups, -1, len(offsets), *size)
    others = (range(0, axis.step * axis.taps, axis.step) for axis in phases.axes[:-1])
    for tap, steps in enumerate(itertools.product(*others)):
        starts = [start + step for start, step in zip(seen.starts[:-1], steps, strict=True)]
        source.copy_shifted(starts, offsets, by_tap[:, tap])


def is_run(box: Box) -> bool:
    """Whether the results of an image and channel lie one after the other in the output."""
    if any(axis.stride > 1 for axis in box.axes):
        return False
    # `seen` begins where the output does, or behind.
    return all(size == axis.output for size, axis in zip(box.size[1:], box.axes[1:], strict=True))
