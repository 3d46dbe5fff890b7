"""The tiles of a run of the NumPy path: those that a model of the costs likes best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from deconv_ir.kernels.box import Box
from deconv_ir.kernels.costs import Cost
from deconv_ir.kernels.problem import AxisSpan, Problem

__all__ = ["choose_tile", "count_tiles", "cut"]

# With less the BLAS packs more than it multiplies: only where scratch is tight.
_FEWEST_POSITIONS, _FEWEST_ROWS = 64, 64
# Nanoseconds that a second thread costs: waking it, and the lock of the interpreter.
_WAKE = 300_000.0


def choose_tile(
    problem: Problem,
    images: int,
    axes: tuple[AxisSpan, ...],
    cost: Callable[[Box], Cost | None],
    bound: int,
    threads: int,
) -> tuple[Box, float] | None:
    """Choose the extents of a tile.

    Parameters
    ----------
    problem : Problem
        What is computed.
    images : int
        Images of the run.
    axes : tuple of AxisSpan
        Of the run.
    cost : callable
        What a tile takes.
    bound : int
        Elements of scratch that it may need.
    threads : int
        Threads among which tiles are shared out.

    Returns
    -------
    Box and float, or None
        The first tile, and the nanoseconds that the run takes with it; None if
        even the smallest needs too much.
    """
    whole = tuple(max(1, a.last - a.first) for a in axes)
    best: tuple[Box, float] | None = None
    for tile in _candidates(problem, images, axes, threads):
        if best is not None and tile.size != whole and math.prod(tile.size) < _FEWEST_POSITIONS:
            break
        found = cost(tile)
        if found is None:
            # The method does not fit the problem, or only whole rows do.
            break
        if found.elements > bound:
            continue
        count = count_tiles(problem, images, tile)
        shared = min(count, threads) > 1
        nanoseconds = found.nanoseconds(shared=shared)
        if count == 1 and nanoseconds < _WAKE:
            return tile, nanoseconds
        total = -(-count // threads) * nanoseconds
        if shared:
            total += _WAKE
        if best is None or total < best[1]:
            best = tile, total
    return best


def _halves(extent: int, least: int = 1) -> Iterator[int]:
    while extent > least:
        yield extent
        extent = -(-extent // 2)
    yield extent


def _candidates(
    problem: Problem, images: int, axes: tuple[AxisSpan, ...], threads: int
) -> Iterator[Box]:
    """Yield tiles: whole planes of several images or groups, or parts of one plane."""
    whole = tuple(max(1, a.last - a.first) for a in axes)
    first = tuple(a.first for a in axes)
    images, outs = max(1, images), max(1, problem.channels_out)

    def tile(many: int, groups: int, some: int, block: int, size: tuple[int, ...]) -> Box:
        return Box(0, many, 0, groups, 0, some, block, first, size, axes)

    # Of tiles that cost the same the first is taken: the groups of an image lie in one run.
    for groups, many in itertools.product(_halves(problem.groups), _halves(images)):
        yield tile(many, groups, outs, outs, whole)
    shares = list(_halves(outs, max(1, outs // (2 * threads)))) if threads > 1 else [outs]
    rows = math.prod(map(min, problem.kernel, problem.strides))
    least = max(1, _FEWEST_ROWS // rows)
    for many, some in itertools.product(_halves(images), shares):
        for block in _halves(some, least):
            yield tile(many, 1, some, block, whole)
    for axis in range(len(whole)):
        for extent in _halves(-(-whole[axis] // 2)):
            size = (*(1,) * axis, extent, *whole[axis + 1 :])
            usual = math.prod(size) >= _FEWEST_POSITIONS
            for some in shares if usual else _halves(outs):
                for block in _halves(some, least if usual else 1):
                    yield tile(1, 1, some, block, size)


def _cuts(problem: Problem, images: int, tile: Box) -> list[range]:
    return [
        range(0, images, tile.images),
        range(0, problem.groups, tile.groups),
        range(0, problem.channels_out, tile.outs),
        *(range(a.first, a.last, size) for a, size in zip(tile.axes, tile.size, strict=True)),
    ]


def count_tiles(problem: Problem, images: int, tile: Box) -> int:
    """Return the number of tiles."""
    return math.prod(map(len, _cuts(problem, images, tile)))


def cut(problem: Problem, images: int, tile: Box) -> tuple[Box, ...]:
    """Return the tiles of a run, cut off at its ends."""
    result = []
    for n, g, o, *first in itertools.product(*_cuts(problem, images, tile)):
        size = (min(s, a.last - f) for s, a, f in zip(tile.size, tile.axes, first, strict=True))
        outs = min(tile.outs, problem.channels_out - o)
        result.append(
            Box(
                n,
                min(tile.images, images - n),
                g,
                min(tile.groups, problem.groups - g),
                o,
                outs,
                min(tile.block, outs),
                tuple(first),
                tuple(size),
                tile.axes,
            )
        )
    return tuple(result)
