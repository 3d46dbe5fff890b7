"""How a run is cut into tiles, so that scratch stays under its bound.

A tile is one image of one group, some of its output channels, and a box of
phase positions u; its kernel taps are worked through in chunks.  Tiles write
to parts of the output that are their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["TileCost", "Tiling", "boxes", "choose_tiling", "tile_bytes"]

# What a tile should take when the bound allows more: it is to stay in the
# second-level cache's neighbourhood, yet keep the BLAS busy for long enough
# that the calls do not count.
_COMFORTABLE_BYTES = 4 << 20
# Below these a matrix product is dominated by packing.
_FEWEST_POSITIONS = 512
_FEWEST_CHANNELS = 16


class Tiling(NamedTuple):
    """Extents of a tile.

    Attributes
    ----------
    channels : int
        Output channels.
    box : tuple of int
        Phase positions u, an axis each.
    taps : int
        Kernel taps whose columns are made at once.
    depth : int
        Input channels that are converted at once; all of them when nothing
        needs converting.
    bytes : int
        Scratch that one tile needs.
    """

    channels: int
    box: tuple[int, ...]
    taps: int
    depth: int
    bytes: int


class TileCost(NamedTuple):
    """Bytes that the parts of a tile take, an element each.

    Attributes
    ----------
    column : int
        One element of the column buffer, with its exact product if there is one.
    accumulator : int
        One element of a phase.
    data : int
        One element of the converted or gathered data; 0 when they are read in place.
    """

    column: int
    accumulator: int
    data: int


def tile_bytes(
    cost: TileCost,
    data: Sequence[int],
    reach: Sequence[int],
    channels: int,
    box: Sequence[int],
    taps: int,
    depth: int,
) -> int:
    """Return the scratch that a tile needs."""
    positions = math.prod(min(x, b + r) for x, b, r in zip(data, box, reach, strict=True))
    columns = cost.column * taps * channels * positions
    # The phases are summed one after the other: one accumulator serves all.
    phase = cost.accumulator * channels * math.prod(box)
    return columns + phase + cost.data * depth * positions


def choose_tiling(
    *,
    cost: TileCost,
    data: Sequence[int],
    reach: Sequence[int],
    channels: int,
    box: Sequence[int],
    taps: int,
    depth: int,
    scratch_bytes: int,
) -> Tiling:
    """Choose the largest comfortable tile that stays under the bound.

    Leading spatial axes are cut first, since a slab of rows is contiguous;
    then channels, then taps, then whatever is left, down to one element each.

    Parameters
    ----------
    cost : TileCost
        Bytes an element.
    data : sequence of int
        Extents X.
    reach : sequence of int
        Largest shift of a tap, an axis each: the halo of a box.
    channels, taps, depth : int
        Output channels of a group, kernel taps, input channels of a group.
    box : sequence of int
        Phase positions of the whole run.
    scratch_bytes : int
        The bound.

    Returns
    -------
    Tiling
        Its `bytes` exceed `scratch_bytes` only where nothing can be cut.
    """
    budget = min(scratch_bytes, _COMFORTABLE_BYTES)
    sizes = [max(1, b) for b in box]
    channels, taps, depth = max(1, channels), max(1, taps), max(1, depth)

    def over() -> bool:
        return tile_bytes(cost, data, reach, channels, sizes, taps, depth) > budget

    for fewest_positions, fewest_channels in (
        (_FEWEST_POSITIONS, _FEWEST_CHANNELS),
        (1, 1),
    ):
        for axis in range(len(sizes)):
            while over() and sizes[axis] > 1 and math.prod(sizes) > fewest_positions:
                sizes[axis] = (sizes[axis] + 1) // 2
        while over() and channels > fewest_channels:
            channels = max(fewest_channels, (channels + 1) // 2)
        while over() and taps > 1:
            taps = (taps + 1) // 2
        while over() and cost.data and depth > 1:
            depth = (depth + 1) // 2
    used = tile_bytes(cost, data, reach, channels, sizes, taps, depth)
    return Tiling(channels, tuple(sizes), taps, depth, used)


def boxes(
    first: Sequence[int], last: Sequence[int], size: Sequence[int]
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the boxes of at most `size` that cover ``first <= u < last``, an axis each."""
    return itertools.product(
        *(
            [(low, min(low + step, end)) for low in range(begin, end, step)]
            for begin, end, step in zip(first, last, size, strict=True)
        )
    )
