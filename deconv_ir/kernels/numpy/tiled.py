"""The base of both methods: threads take tiles, each with a scratchpad of its own."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deconv_ir.kernels.activation import Activation, ActivationKind
from deconv_ir.kernels.numpy.interleave import Interleaver
from deconv_ir.kernels.numpy.subconvolution import AxisSpan, spans
from deconv_ir.kernels.numpy.tile import Tile
from deconv_ir.kernels.problem import Problem, accumulator_of
from deconv_ir.kernels.runtime.parallel import run_jobs, single_threaded_blas
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

__all__ = ["Scratchpad", "TiledKernel", "Tiling", "leaves_holes"]


class Scratchpad:
    """The memory of one thread, handed out anew for every tile."""

    def __init__(self, size: int) -> None:
        self._memory = np.empty(size, np.uint8)
        self._used = 0

    def clear(self) -> None:
        """Take back all that was handed out."""
        self._used = 0

    def take(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return an uninitialised array; beyond the planned size, new memory."""
        size = math.prod(shape) * dtype.itemsize
        begin = self._used
        if begin + size > len(self._memory):
            return np.empty(shape, dtype)
        self._used += -(-size // 64) * 64
        return self._memory[begin : begin + size].view(dtype).reshape(shape)


class Tiling(NamedTuple):
    """How one image is computed.

    Attributes
    ----------
    jobs : list of (int, Tile)
        What is computed at a time: the number of some sub-convolutions, and a tile of them.
    scratch_bytes : int
        What one job takes.
    pad_bytes : int
        What it takes of its `Scratchpad`; the rest are temporary arrays.
    holes : bool
        Whether there are outputs that no job writes.
    """

    jobs: list[tuple[int, Tile]]
    scratch_bytes: int
    pad_bytes: int
    holes: bool


class TiledKernel(abc.ABC):
    """A filter packed for one method.

    Parameters
    ----------
    problem : Problem
        What is computed.
    weights : ndarray
        ``[groups, in, out, *K]``.
    bias : ndarray or None
        ``[groups * out]``.
    activation : Activation
        Applied to every result.
    """

    name: str

    def __init__(
        self, problem: Problem, weights: Array, bias: Array | None, activation: Activation
    ) -> None:
        self.problem, self.activation = problem, activation
        self.element = weights.dtype
        self.accumulator = accumulator_of(weights.dtype)
        self.bias = None
        if bias is not None:
            self.bias = bias.astype(self.accumulator).reshape(problem.groups, problem.channels_out)

    @property
    @abc.abstractmethod
    def packed_bytes(self) -> int:
        """Bytes of the packed filter."""

    @abc.abstractmethod
    def tiling(self, axes: tuple[AxisSpan, ...], bound: int) -> Tiling:
        """Choose the tiles of one image."""

    @abc.abstractmethod
    def compute(
        self,
        part: int,
        tile: Tile,
        data: Array,
        write: Callable[[tuple[tuple[int, ...], ...], Array], None],
        axes: tuple[AxisSpan, ...],
        scratchpad: Scratchpad,
    ) -> None:
        """Compute one tile of one image, ``[groups, in, *X]``."""

    def epilogue_bytes(self, elements: int) -> int:
        """Return what bias and activation take beside the sums of a tile."""
        if self.activation.kind is ActivationKind.NONE:
            return 0
        return 3 * elements * self.accumulator.itemsize

    def _spans(
        self, data: Sequence[int], pads: tuple[int, ...], output: Sequence[int]
    ) -> tuple[AxisSpan, ...]:
        return spans(self.problem, tuple(data), pads, tuple(output))

    def scratch_bytes(
        self, data: tuple[int, ...], pads: tuple[int, ...], output: Sequence[int], bound: int
    ) -> int:
        """Return the bytes that `run` takes for so large an image, on all threads."""
        tiling = self.tiling(self._spans(data[2:], pads, output), bound)
        return tiling.scratch_bytes * _threads(tiling, data[0], bound)

    def run(self, data: Array, pads: tuple[int, ...], bound: int, out: Array) -> None:
        """Compute into `out`.

        Parameters
        ----------
        data : ndarray
            ``[N, groups, in, *X]``.
        pads : tuple of int
            An axis each.
        bound : int
            Bytes of scratch that all threads may take together.
        out : ndarray
            ``[N, groups, out, *Y]``.
        """
        axes = self._spans(data.shape[3:], pads, out.shape[3:])
        tiling = self.tiling(axes, bound)
        interleaver = Interleaver(out, axes, self.bias, self.activation)
        if tiling.holes:
            interleaver.fill()
        images, tiles = len(data), len(tiling.jobs)
        # Of weights and images, what is larger is read once.
        by_tile = self.packed_bytes * images > data.nbytes

        def make() -> Callable[[int], None]:
            scratchpad = Scratchpad(tiling.pad_bytes)

            def do(job: int) -> None:
                if by_tile:
                    number, image = divmod(job, images)
                else:
                    image, number = divmod(job, tiles)
                part, tile = tiling.jobs[number]
                scratchpad.clear()

                def write(phases: tuple[tuple[int, ...], ...], sums: Array) -> None:
                    interleaver.write(image, tile, phases, sums)

                self.compute(part, tile, data[image], write, axes, scratchpad)

            return do

        if not tiles:
            return
        with single_threaded_blas() as alone:
            threads = _threads(tiling, images, bound) if alone else 1
            run_jobs(make, tiles * images, threads)


def _threads(tiling: Tiling, images: int, bound: int) -> int:
    """Return how many threads have work, and scratch within the bound."""
    jobs = len(tiling.jobs) * images
    return max(min(get_threads(), jobs, bound // max(1, tiling.scratch_bytes)), min(1, jobs))


def leaves_holes(axes: tuple[AxisSpan, ...], covered: Sequence[int]) -> bool:
    """Whether outputs are left when this number of each axis is written."""
    return any(n < axis.output for n, axis in zip(covered, axes, strict=True))
