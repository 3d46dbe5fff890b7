"""The grid of tiles over an output."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deconv_ir.ir.boxes import Box


class Grid(NamedTuple):
    """Tiles of one size over an output; the last on each axis may be smaller.

    Attributes
    ----------
    shape : tuple of int
        Extents of the output.
    tile : tuple of int
        Extents of a tile, at least 1.

    Examples
    --------
    >>> from deconv_ir.tiling.grid import Grid
    >>> list(Grid((3, 4), (2, 4)).boxes())
    [((0, 2), (0, 4)), ((2, 3), (0, 4))]
    """

    shape: tuple[int, ...]
    tile: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of tiles on each axis."""
        return tuple(-(-extent // n) for extent, n in zip(self.shape, self.tile, strict=True))

    def __len__(self) -> int:
        return math.prod(self.counts)

    def boxes(self) -> Iterator[Box]:
        """Return the boxes of the tiles, the last axis varying fastest."""
        axes = [
            [(start, min(start + n, extent)) for start in range(0, extent, n)]
            for extent, n in zip(self.shape, self.tile, strict=True)
        ]
        return itertools.product(*axes)


def fit_tile(shape: Sequence[int], asked: Sequence[int]) -> tuple[int, ...]:
    """Return the requested tile, with whole axes prepended to the rank of the output.

    Extents larger than those of the output are reduced.

    Raises
    ------
    ValueError
        The tile has more extents than axes, or an extent is less than 1.

    Examples
    --------
    >>> from deconv_ir.tiling.grid import fit_tile
    >>> fit_tile((1, 3, 100, 200), (64, 256))
    (1, 3, 64, 200)
    """
    if len(asked) > len(shape):
        raise ValueError(f"a tile of {len(asked)} axes for an output of {len(shape)}")
    if any(n < 1 for n in asked):
        raise ValueError(f"extents of a tile must be positive, found {','.join(map(str, asked))}")
    rest = len(shape) - len(asked)
    wanted = (*shape[:rest], *asked)
    return tuple(max(1, min(n, extent)) for n, extent in zip(wanted, shape, strict=True))
