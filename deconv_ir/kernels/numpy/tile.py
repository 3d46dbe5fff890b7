"""Tiles: the parts of one image's result that are computed at a time.

Tiles depend on the layer, on the extents of one image and on the bound of the
scratchpad alone, never on threads or batch, because the BLAS may sum matrices
of other sizes in another order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from deconv_ir.ir.record import NamedTuple

Extents = tuple[int, int, Sequence[int]]
"""How many groups, output channels, and positions u, an axis each."""

# Larger tiles leave the caches.
COMFORTABLE_BYTES = 4 << 20
# Smaller matrices take the BLAS longer to pack than to multiply.
_FEWEST_POSITIONS, _FEWEST_CHANNELS = 512, 32
# Tiles of an image, so that threads can share it, and multiply-adds that are worth a tile.
_SHARES, _WORTH_A_TILE = 8, 1 << 22


class Tile(NamedTuple):
    """A part of one image."""

    groups: slice
    outs: slice
    """Groups, and output channels of each."""
    begin: tuple[int, ...]
    end: tuple[int, ...]
    """Positions u of the sub-convolutions, an axis each."""

    @property
    def size(self) -> tuple[int, ...]:
        """Extents, an axis each."""
        return tuple(e - b for b, e in zip(self.begin, self.end, strict=True))

    @property
    def extents(self) -> tuple[int, int, tuple[int, ...]]:
        """How many groups, output channels and positions."""
        groups, outs = (part.stop - part.start for part in (self.groups, self.outs))
        return groups, outs, self.size


def choose_tiles(
    groups: int,
    outs: int,
    ranges: Sequence[tuple[int, int]],
    scratch: Callable[[int, int, Sequence[int]], int],
    work: int,
    bound: int,
) -> list[Tile]:
    """Cut one image into tiles that do not overlap; none where there is no position.

    Those of other output channels, which read the same data, follow each other.

    Parameters
    ----------
    groups, outs : int
        Groups, and output channels of each.
    ranges : sequence of (int, int)
        Positions u, an axis each.
    scratch : callable
        Bytes of a tile, from its groups, output channels and positions.
    work : int
        Multiply-adds of one output channel of one position.
    bound : int
        Bytes that a tile may take; exceeded only where nothing can be cut.
    """
    if not outs or any(end <= begin for begin, end in ranges):
        return []
    # Groups, output channels, positions.
    sizes = [groups, outs, *(end - begin for begin, end in ranges)]
    whole = tuple(sizes)
    bound = min(bound, COMFORTABLE_BYTES)

    def over() -> bool:
        return scratch(sizes[0], sizes[1], sizes[2:]) > bound

    def count() -> int:
        return math.prod(-(-all_ // one) for all_, one in zip(whole, sizes, strict=True))

    for positions, channels in ((_FEWEST_POSITIONS, _FEWEST_CHANNELS), (1, 1)):
        while over() and sizes[0] > 1:
            sizes[0] = -(-sizes[0] // 2)
        for axis in range(2, len(sizes)):
            while over() and sizes[axis] > 1 and math.prod(sizes[2:]) > positions:
                sizes[axis] = -(-sizes[axis] // 2)
        while over() and sizes[1] > channels:
            sizes[1] = max(channels, -(-sizes[1] // 2))
    while count() < _SHARES and math.prod(sizes) * work >= 2 * _WORTH_A_TILE:
        if sizes[0] > 1:
            axis = 0
        elif sizes[2] > 1 and math.prod(sizes[2:]) >= 2 * _FEWEST_POSITIONS:
            axis = 2
        elif sizes[1] >= 2 * _FEWEST_CHANNELS:
            axis = 1
        else:
            break
        sizes[axis] = -(-sizes[axis] // 2)
    first = (0, 0, *(begin for begin, _ in ranges))
    cuts = [
        [(low, min(low + size, begin + extent)) for low in range(begin, begin + extent, size)]
        for begin, extent, size in zip(first, whole, sizes, strict=True)
    ]
    return [
        Tile(slice(*g), slice(*o), tuple(b for b, _ in box), tuple(e for _, e in box))
        for g, *box, o in itertools.product(cuts[0], *cuts[2:], cuts[1])
    ]
