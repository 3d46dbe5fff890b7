"""Tiles of the NumPy path: which part of a result, and the data it needs."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.problem import AxisSpan, PhaseSet

__all__ = ["Box", "Scratch", "Source"]

Array = np.ndarray[Any, np.dtype[Any]]

_KEPT_BYTES = 8 << 20


class Box(NamedTuple):
    """A tile: images, groups, output channels of a group, and a box of phase positions u.

    Attributes
    ----------
    image, group, out : int
        The first ones; `out` is counted in a group.
    images, groups, outs : int
        How many.  Several groups come with all of their output channels only.
    block : int
        Output channels that are computed at a time.
    first, size : tuple of int
        The first u and the extents, an axis each.
    axes : tuple of AxisSpan
        Of the run.
    """

    image: int
    images: int
    group: int
    groups: int
    out: int
    outs: int
    block: int
    first: tuple[int, ...]
    size: tuple[int, ...]
    axes: tuple[AxisSpan, ...]

    @property
    def positions(self) -> int:
        """Positions, all images together."""
        return self.images * math.prod(self.size)

    def seen(self, phases: PhaseSet) -> Box | None:
        """Return the part that the output sees of these phases; None if there is none."""
        first, size = [], []
        for axis, part, begin, extent in zip(
            self.axes, phases.axes, self.first, self.size, strict=True
        ):
            low, high = axis.seen(part.phases)
            low, high = max(low, begin), min(high, begin + extent)
            if high <= low:
                return None
            first.append(low)
            size.append(high - low)
        return self._replace(first=tuple(first), size=tuple(size))

    def most(self, phases: PhaseSet) -> Box | None:
        """Return the most that is seen of a tile of this size, wherever it is; None if nothing."""
        seen = [axis.seen(part.phases) for axis, part in zip(self.axes, phases.axes, strict=True)]
        size = [min(n, high - low) for n, (low, high) in zip(self.size, seen, strict=True)]
        return self._replace(size=tuple(size)) if min(size) > 0 else None

    def blocks(self) -> Iterator[Box]:
        """Yield the parts that are computed at a time."""
        for out in range(self.out, self.out + self.outs, self.block):
            outs = min(self.block, self.out + self.outs - out)
            yield self._replace(out=out, outs=outs)

    def rows(self, each: int) -> slice:
        """Return the rows of a packed filter that has `each` of them an output channel."""
        return slice(self.out * each, (self.out + self.outs) * each)


class Scratch:
    """The memory of one thread, handed out anew for every tile.

    It is kept for the next run unless it is large: fresh pages cost as much as
    the work of a small layer.
    """

    _kept = threading.local()

    def __init__(self, elements: int, dtype: np.dtype[Any]) -> None:
        size = elements * dtype.itemsize
        memory: Array | None = getattr(self._kept, "memory", None)
        if memory is None or len(memory) < size:
            memory = np.empty(size, np.uint8)
            self._kept.memory = memory if size <= _KEPT_BYTES else None
        self.memory = memory[:size].view(dtype)

    def take(self, begin: int, shape: Sequence[int]) -> Array:
        """Return the elements from `begin` on as an array, uninitialised."""
        return self.memory[begin : begin + math.prod(shape)].reshape(shape)


class Source:
    """The data of one tile, ``[group, in, image, *x]``, zero wherever there are none.

    Parameters
    ----------
    data : ndarray
        ``[N, groups * in, *X]``.
    box : Box
        The tile.
    depth : int
        Input channels of a group.
    dtype : dtype
        In which the tile computes; data of another type are converted here, once.
    """

    def __init__(self, data: Array, box: Box, depth: int, dtype: np.dtype[Any]) -> None:
        channels = slice(box.group * depth, (box.group + box.groups) * depth)
        self.origin = (0,) * len(box.axes)
        self.extent = data.shape[-1]
        part = data[box.image : box.image + box.images, channels]
        if data.dtype != dtype:
            low = [max(0, f - a.reach) for f, a in zip(box.first, box.axes, strict=True)]
            high = [f + s for f, s in zip(box.first, box.size, strict=True)]
            near = tuple(slice(b, max(b, e)) for b, e in zip(low, high, strict=True))
            part = part[(slice(None), slice(None), *near)].astype(dtype)
            self.origin = tuple(low)
        split = part.reshape(len(part), box.groups, depth, *part.shape[2:])
        self.values = split.transpose(1, 2, 0, *range(3, split.ndim))

    @property
    def whole_rows(self) -> bool:
        """Whether all of the last axis is there."""
        return self.origin[-1] == 0 and self.values.shape[-1] == self.extent

    def copy(self, starts: Sequence[int], steps: Sequence[int], target: Array) -> None:
        """Copy the data at ``start + step * index``, an axis each, to all of `target`."""
        edges, here, there = _overlap(
            self.values.shape[3:], target.shape[3:], tuple(starts), tuple(steps), self.origin
        )
        for edge in edges:
            target[edge] = 0
        target[here] = self.values[there]

    def copy_shifted(self, starts: Sequence[int], offsets: Sequence[int], target: Array) -> None:
        """Copy whole rows of the data, several times, each time shifted.

        Parameters
        ----------
        starts : sequence of int
            Where the copies begin, on each axis but the last.
        offsets : sequence of int
            How far the elements of each copy lie behind their places in a row.
        target : ndarray
            ``[group, offset, in, image, *x]``, rows as long as those of the data; all of it
            is written.
        """
        groups, count, depth = target.shape[:3]
        extents = target.shape[4:]
        edges, here, there = _overlap(
            self.values.shape[3:], extents, (*starts, 0), (1,) * len(extents), self.origin
        )
        for edge in edges:
            target.reshape(groups, count * depth, *target.shape[3:])[edge] = 0
        values = _rows(self.values[there])
        for i, offset in enumerate(offsets):
            copy = target[:, i][here]
            rows = _rows(copy)
            if offset > 0:
                rows[..., :-offset] = values[..., offset:]
                copy[..., -offset:] = 0
            elif offset < 0:
                rows[..., -offset:] = values[..., :offset]
                copy[..., :-offset] = 0
            else:
                rows[...] = values


def _rows(array: Array) -> Array:
    """Return an array with the rows of its last two axes as one: a view if they are contiguous."""
    return array if array.ndim < 5 else array.reshape(*array.shape[:-2], -1)


_Index = tuple[slice | EllipsisType, ...]


@functools.lru_cache(maxsize=4096)
def _overlap(
    extents: tuple[int, ...],
    counts: tuple[int, ...],
    starts: tuple[int, ...],
    steps: tuple[int, ...],
    origins: tuple[int, ...],
) -> tuple[list[_Index], _Index, _Index]:
    """Return where a copy has no data, where it has, and where these are."""
    edges: list[_Index] = []
    here: list[slice] = []
    there: list[slice] = []
    axes = zip(extents, counts, starts, steps, origins, strict=True)
    for axis, (extent, count, begin, step, origin) in enumerate(axes):
        start = begin - origin
        low = min(count, max(0, -(start // step)))
        high = max(low, min(count, -((start - extent) // step)))
        here.append(slice(low, high))
        first = start + step * low if high > low else 0
        there.append(slice(first, first + step * (high - low), step))
        before = (slice(None),) * (3 + axis)
        if low:
            edges.append((*before, slice(0, low)))
        if high < count:
            edges.append((*before, slice(high, count)))
    return edges, (..., *here), (..., *there)
