"""The base of both methods: threads compute tiles, each with its own scratchpad.

Tiles depend only on the layer, on the extents of one image and on the bound of the scratchpad,
never on threads or batch, because the BLAS may sum matrices of other sizes in another order.
"""

from __future__ import annotations

import abc
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.numpy.filter_parts import FilterPart
from deconv_ir.kernels.numpy.interleave import Interleaver, Remainders
from deconv_ir.kernels.numpy.subconvolution import Axes, Extents, ImageTile, spans
from deconv_ir.kernels.problem import Problem, accumulator_of
from deconv_ir.kernels.runtime.parallel import run_jobs, single_threaded_blas
from deconv_ir.kernels.runtime.threads import get_threads

# Larger tiles do not fit the caches.
COMFORTABLE_BYTES = 4 << 20
# For smaller matrices, the BLAS takes longer to pack than to multiply.
_FEWEST_POSITIONS, _FEWEST_CHANNELS = 512, 32
# Tiles of an image, so that threads can share it, and minimum multiply-adds of a tile.
_SHARES, _WORTH_A_TILE = 8, 1 << 22
# Tilings that a filter keeps.
_MOST_TILINGS = 64
# Images share calls of NumPy as long as each thread has at least this number of calls.
_JOBS_OF_A_THREAD = 2


class Scratchpad:
    """The memory of one thread, allocated again for every tile.

    `unchanged`: whether the first array still holds the data that this tile reads.
    """

    def __init__(self, size: int) -> None:
        self._memory = np.empty(size, np.uint8)
        self._used = 0
        self._read: object = None
        self.unchanged = False

    def begin(self, read: object) -> None:
        """Free all arrays, for a tile that reads these data."""
        self._used = 0
        self.unchanged = read == self._read
        self._read = read

    def take(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return an uninitialised array."""
        size = math.prod(shape) * dtype.itemsize
        begin = self._used
        self._used += -(-size // 64) * 64
        return self._memory[begin : begin + size].view(dtype).reshape(shape)


class SubConvolutionGroup(NamedTuple):
    """Sub-convolutions that are computed together."""

    remainders: Remainders
    """Remainders for each axis; the part has all their combinations."""
    ranges: tuple[tuple[int, int], ...]
    """Positions u that are written, for each axis."""
    work: int
    """Multiply-adds of one output channel of one position."""


class TileTask(NamedTuple):
    """A tile of a part: the part's number and remainders, and the tile."""

    part: int
    remainders: Remainders
    tile: ImageTile


class Tiling(NamedTuple):
    """The tiling of one image: the tiles of all parts, and their memory."""

    jobs: list[TileTask]
    scratch_bytes: int
    """Scratch memory of one job."""
    pad_bytes: int
    """The part of it in the `Scratchpad`; the rest are temporary arrays."""
    holes: bool
    """Whether some outputs are not written by any job."""


def choose_tiles(
    groups: int,
    outs: int,
    ranges: Sequence[tuple[int, int]],
    scratch: Callable[[int, int, Sequence[int]], int],
    work: int,
    bound: int,
) -> list[ImageTile]:
    """Divide one image into tiles that do not overlap; empty if it has no positions.

    Tiles of other output channels, which read the same data, are consecutive.

    Parameters
    ----------
    groups, outs : int
        Groups, and output channels of each.
    ranges : sequence of (int, int)
        Positions u, for each axis.
    scratch : callable
        Bytes of a tile, from its groups, output channels and positions.
    work : int
        Multiply-adds of one output channel of one position.
    bound : int
        Maximum bytes of a tile; exceeded only if a tile cannot be divided.
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
        ImageTile(slice(*g), slice(*o), tuple(b for b, _ in box), tuple(e for _, e in box))
        for g, *box, o in itertools.product(cuts[0], *cuts[2:], cuts[1])
    ]


class TiledKernel(abc.ABC):
    """A filter, given in parts, and a bias ``[groups * out]``, packed for one method."""

    name: str

    def __init__(
        self,
        problem: Problem,
        parts: Iterable[FilterPart],
        element: np.dtype[Any],
        bias: Array | None,
        activation: Activation,
    ) -> None:
        self.problem, self.activation = problem, activation
        self.element = element
        self.accumulator = accumulator_of(element)
        self.bias = None
        if bias is not None:
            self.bias = bias.astype(self.accumulator).reshape(problem.groups, problem.channels_out)
        self._tilings: dict[tuple[Axes, int], Tiling] = {}
        self._pack(parts)

    @abc.abstractmethod
    def _pack(self, parts: Iterable[FilterPart]) -> None:
        """Pack the filter."""

    @property
    @abc.abstractmethod
    def packed_bytes(self) -> int:
        """Bytes of the packed filter."""

    @abc.abstractmethod
    def parts(self, axes: Axes) -> list[SubConvolutionGroup]:
        """Return the sub-convolutions; each part is computed together."""

    @abc.abstractmethod
    def tile_bytes(self, part: int, axes: Axes, extents: Extents, sums: int) -> tuple[int, int]:
        """Return the bytes of a tile in the scratchpad, and in temporary arrays.

        The epilogue's memory is not included; `sums` is the number of the tile's sums.
        """

    @abc.abstractmethod
    def compute(self, job: TileTask, data: Array, axes: Axes, scratchpad: Scratchpad) -> Array:
        """Return the sums of a tile of some images, ``[N, group, out, *r, *u]``.

        The data are ``[N, groups, in, *X]``.
        """

    def _tiling(self, axes: Axes, bound: int) -> Tiling:
        """Return the jobs of one image; a cache of the method would keep packed filters."""
        found = self._tilings.get((axes, bound))
        if found is None:
            if len(self._tilings) >= _MOST_TILINGS:
                self._tilings.clear()
            found = self._tilings[axes, bound] = self._choose_tiles(axes, bound)
        return found

    def _choose_tiles(self, axes: Axes, bound: int) -> Tiling:
        """Divide one image into jobs."""
        problem, jobs, most, pad = self.problem, [], 0, 0
        covered: list[dict[tuple[int, ...], int]] = [{} for _ in axes]
        for number, part in enumerate(self.parts(axes)):
            for outputs, axis, of_axis, ends in zip(
                covered, axes, part.remainders, part.ranges, strict=True
            ):
                outputs[of_axis] = axis.covered(of_axis, *ends)
            size_of = functools.partial(self._bytes, number, part, axes)
            for tile in choose_tiles(
                problem.groups,
                problem.channels_out,
                part.ranges,
                lambda *extents, size_of=size_of: size_of(extents)[1],
                part.work,
                bound,
            ):
                jobs.append(TileTask(number, part.remainders, tile))
                of_pad, of_all = size_of(tile.extents)
                pad, most = max(pad, of_pad), max(most, of_all)
        holes = any(
            sum(outputs.values()) < axis.output for outputs, axis in zip(covered, axes, strict=True)
        )
        return Tiling(jobs, most, pad, holes)

    def _bytes(
        self, number: int, part: SubConvolutionGroup, axes: Axes, extents: Extents
    ) -> tuple[int, int]:
        """Return the bytes of a tile in the scratchpad, and in total."""
        groups, outs, size = extents
        sums = groups * outs * math.prod(map(len, part.remainders)) * math.prod(size)
        pad, beside = self.tile_bytes(number, axes, extents, sums)
        if self.activation.type is not ActivationType.NONE:
            beside += 3 * sums * self.accumulator.itemsize
        # Each array begins at a multiple of 64 bytes.
        return pad + 256, pad + 256 + beside

    def scratch_bytes(
        self, data: tuple[int, ...], pads: tuple[int, ...], output: tuple[int, ...], bound: int
    ) -> int:
        """Return the scratchpad bytes of `run` for data of this shape, on all threads."""
        tiling = self._tiling(spans(self.problem, data[2:], pads, output), bound)
        return tiling.scratch_bytes * math.prod(_share(tiling, data[0], bound))

    def run(self, data: Array, pads: tuple[int, ...], bound: int, out: Array) -> None:
        """Compute ``[N, groups, out, *Y]`` of ``[N, groups, in, *X]``.

        All threads together use at most `bound` bytes of scratch.
        """
        axes = spans(self.problem, data.shape[3:], pads, out.shape[3:])
        tiling = self._tiling(axes, bound)
        interleaver = Interleaver(out, axes, self.bias, self.activation)
        if tiling.holes:
            interleaver.fill()
        tiles = len(tiling.jobs)
        if not tiles or not len(data):
            return
        together, threads = _share(tiling, len(data), bound)

        def make() -> Callable[[int], None]:
            scratchpad = Scratchpad(tiling.pad_bytes * together)

            def do(number: int) -> None:
                first, number = divmod(number, tiles)
                images = slice(first * together, (first + 1) * together)
                job = tiling.jobs[number]
                tile = job.tile
                scratchpad.begin((first, job.part, tile.groups, tile.begin, tile.end))
                sums = self.compute(job, data[images], axes, scratchpad)
                interleaver.write(images, tile, job.remainders, sums)

            return do

        with single_threaded_blas() as alone:
            run_jobs(make, tiles * -(-len(data) // together), threads if alone else 1)


def _share(tiling: Tiling, images: int, bound: int) -> tuple[int, int]:
    """Return the number of images of a job, and the number of threads."""
    jobs, size, threads = len(tiling.jobs), max(1, tiling.scratch_bytes), get_threads()
    fitting = min(bound // threads, COMFORTABLE_BYTES) // size
    together = max(1, min(images, fitting, images * jobs // (_JOBS_OF_A_THREAD * threads)))
    return together, max(1, min(threads, jobs * -(-images // together), bound // size // together))
