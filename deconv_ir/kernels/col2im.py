"""Transposed convolution on the BLAS: a matrix product makes columns, col2im adds them up.

For one tile, ``columns[tap, o, x] = sum over i of filter[i, o, tap] * data[i, x]``
is a matrix product that reads the data where they lie.  Each column is then
added to its phase at ``u = x + shift``, contiguously, and a phase that is
complete goes to the output in one strided write.  No zero is ever multiplied,
so an infinite weight stays where the definition puts it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.activation import Activation, ActivationKind
from deconv_ir.kernels.arithmetic import Arithmetic
from deconv_ir.kernels.problem import AxisSpan, Problem, Tap, enumerate_taps, leaves_holes
from deconv_ir.kernels.tiling import TileCost, Tiling, boxes, choose_tiling

__all__ = ["Col2im", "fill_holes", "finish"]

Array = np.ndarray[Any, np.dtype[Any]]


class _Tile(NamedTuple):
    """One image, one group, some output channels, a box of phase positions."""

    n: int
    g: int
    channels: slice
    box: tuple[tuple[int, int], ...]


class Col2im:
    """A transposed convolution packed for columns.

    Parameters
    ----------
    problem : Problem
        What is computed.
    arithmetic : Arithmetic
        How elements are multiplied and summed.
    weights : ndarray
        ``[groups * in, out, *K]``.
    bias : ndarray or None
        ``[groups * out]``.
    activation : Activation
        Applied to results in the accumulator's type; to integers once they
        have been truncated.
    """

    def __init__(
        self,
        problem: Problem,
        arithmetic: Arithmetic,
        weights: Array,
        bias: Array | None,
        activation: Activation,
    ) -> None:
        self.problem = problem
        self.arithmetic = arithmetic
        self.bias = None if bias is None else bias.astype(arithmetic.accumulator)
        self.activation = activation
        self.taps: list[Tap] = enumerate_taps(problem)
        order = [np.ravel_multi_index(tap.kernel, problem.kernel) for tap in self.taps]
        by_tap = weights.reshape(
            problem.groups, problem.channels_in, problem.channels_out, problem.taps
        )
        # [limb, g, tap, o, i]: the rows of a run of taps make one matrix.
        self.packed = arithmetic.operands(
            np.ascontiguousarray(by_tap[..., order].transpose(0, 3, 2, 1))
        )

    def tiling(self, data: Array, axes: tuple[AxisSpan, ...], scratch_bytes: int) -> Tiling:
        """Choose the tiles of one run."""

        def choose(data_bytes: int) -> Tiling:
            arithmetic, problem = self.arithmetic, self.problem
            size = arithmetic.accumulator.itemsize
            return choose_tiling(
                cost=TileCost(size + arithmetic.product_bytes, size, data_bytes),
                data=[a.data for a in axes],
                reach=[a.reach for a in axes],
                channels=problem.channels_out,
                box=[a.last - a.first for a in axes],
                taps=len(self.taps),
                depth=problem.channels_in,
                scratch_bytes=scratch_bytes,
            )

        # Converting keeps the elements as cut out, each of their limbs, and what
        # masking and shifting leaves behind on the way.
        copied = 3 * data.itemsize + self.arithmetic.limbs * self.arithmetic.operand.itemsize
        if self.arithmetic.converts:
            return choose(copied)
        tiling = choose(0)
        box = tuple((a.first, a.first + size) for a, size in zip(axes, tiling.box, strict=True))
        part = data[(slice(0, 1), slice(0, self.problem.channels_in), *_needed(axes, box))]
        return tiling if _is_flat(part) else choose(copied)

    def run(
        self,
        data: Array,
        axes: tuple[AxisSpan, ...],
        scratch_bytes: int,
        out: Array,
    ) -> None:
        """Compute into `out`."""
        fill_holes(self.problem, axes, self.bias, self.activation, out)
        tiling = self.tiling(data, axes, scratch_bytes)
        for tile in self._tiles(data, axes, tiling):
            self._run_tile(tile, data, axes, tiling, out)

    def _tiles(self, data: Array, axes: tuple[AxisSpan, ...], tiling: Tiling) -> Iterator[_Tile]:
        problem = self.problem
        for n in range(data.shape[0]):
            for g in range(problem.groups):
                for box in boxes([a.first for a in axes], [a.last for a in axes], tiling.box):
                    for o in range(0, problem.channels_out, tiling.channels):
                        last = min(o + tiling.channels, problem.channels_out)
                        yield _Tile(n, g, slice(o, last), box)

    def _run_tile(
        self,
        tile: _Tile,
        data: Array,
        axes: tuple[AxisSpan, ...],
        tiling: Tiling,
        out: Array,
    ) -> None:
        problem = self.problem
        group = slice(tile.g * problem.channels_in, (tile.g + 1) * problem.channels_in)
        needed = _needed(axes, tile.box)
        extents = [s.stop - s.start for s in needed]
        source = data[tile.n][(group, *needed)]
        channels = tile.channels.stop - tile.channels.start
        rows = slice(
            tile.g * problem.channels_out + tile.channels.start,
            tile.g * problem.channels_out + tile.channels.stop,
        )
        bias = None if self.bias is None else self.bias[rows].reshape(-1, *(1 for _ in axes))
        target = out[tile.n, rows]
        phase = _Phase(tile.box, axes, target, bias, self)
        whole = tiling.depth >= problem.channels_in
        operands = self.arithmetic.operands(_flat(source)) if whole else None
        columns = np.empty((tiling.taps, channels, math.prod(extents)), self.arithmetic.accumulator)
        for first in range(0, len(self.taps), tiling.taps):
            taps = self.taps[first : first + tiling.taps]
            weights = self.packed[:, tile.g, first : first + len(taps), tile.channels]
            part = columns[: len(taps)]
            if operands is not None:
                self._multiply(weights, operands, part)
            else:
                for i in range(0, problem.channels_in, tiling.depth):
                    some = self.arithmetic.operands(_flat(source[i : i + tiling.depth]))
                    self._multiply(weights[..., i : i + tiling.depth], some, part, add=i > 0)
            for tap, column in zip(taps, part, strict=True):
                phase.add(tap, column.reshape(channels, *extents), needed)
        phase.write()

    def _multiply(self, weights: Array, data: Array, out: Array, *, add: bool = False) -> None:
        limbs, taps, channels, depth = weights.shape
        if channels == self.problem.channels_out:
            # All channels: the taps' rows are one matrix, and one product makes them.
            weights = weights.reshape(limbs, taps * channels, depth)
            out = out.reshape(taps * channels, -1)
        self.arithmetic.multiply(weights, data, out, add=add)


class _Phase:
    """The phase that is being summed; taps must come sorted by phase."""

    def __init__(
        self,
        box: tuple[tuple[int, int], ...],
        axes: tuple[AxisSpan, ...],
        target: Array,
        bias: Array | None,
        kernel: Col2im,
    ) -> None:
        self.box = box
        self.axes = axes
        self.target = target
        self.bias = bias
        self.activation = kernel.activation
        self.phase: tuple[int, ...] | None = None
        self.sum = np.empty(
            (target.shape[0], *(high - low for low, high in box)), kernel.arithmetic.accumulator
        )

    def add(self, tap: Tap, column: Array, needed: tuple[slice, ...]) -> None:
        """Add the column of one tap, ``[o, *x]`` for the x in `needed`."""
        new = tap.phase != self.phase
        if new:
            self.write()
            self.phase = tap.phase
        here: list[slice] = []
        there: list[slice] = []
        for shift, (low, high), x in zip(tap.shift, self.box, needed, strict=True):
            begin, end = max(x.start, low - shift), min(x.stop, high - shift)
            end = max(begin, end)
            here.append(slice(begin + shift - low, end + shift - low))
            there.append(slice(begin - x.start, end - x.start))
        source = column[(slice(None), *there)]
        if not new:
            self.sum[(slice(None), *here)] += source
            return
        if source.shape != self.sum.shape:
            self.sum[...] = 0
        self.sum[(slice(None), *here)] = source

    def write(self) -> None:
        """Write the phase to the output, bias added, rounded once."""
        if self.phase is None:
            return
        inside = [
            axis.outputs(phase, low, high)
            for axis, phase, (low, high) in zip(self.axes, self.phase, self.box, strict=True)
        ]
        source = self.sum[(slice(None), *(u for u, _ in inside))]
        target = self.target[(slice(None), *(y for _, y in inside))]
        finish(source, self.bias, self.activation, target)


def fill_holes(
    problem: Problem,
    axes: tuple[AxisSpan, ...],
    bias: Array | None,
    activation: Activation,
    out: Array,
) -> None:
    """Write what is there without data, if tiles leave part of the output unwritten."""
    if not leaves_holes(problem, axes):
        return
    nothing = np.zeros((1,) * out.ndim, np.uint64 if out.dtype.kind in "iu" else np.float32)
    if bias is not None:
        bias = bias.reshape(-1, *(1 for _ in axes))
        nothing = nothing.astype(bias.dtype)
    finish(nothing, bias, activation, out)


def finish(source: Array, bias: Array | None, activation: Activation, target: Array) -> None:
    """Write ``activation(source + bias)`` to `target`, rounded once."""
    if activation.kind is ActivationKind.NONE:
        if bias is None:
            np.copyto(target, source, casting="unsafe")
        else:
            np.add(source, bias, out=target, casting="unsafe")
        return
    total = source if bias is None else source + bias
    if target.dtype.kind in "iu":
        # Whether a sum is negative shows only modulo 2^bits.
        total = total.astype(target.dtype)
    np.copyto(target, activation.apply(total), casting="unsafe")


def _needed(axes: tuple[AxisSpan, ...], box: tuple[tuple[int, int], ...]) -> tuple[slice, ...]:
    """Return the input positions that reach a box."""
    result = []
    for axis, (low, high) in zip(axes, box, strict=True):
        begin = min(max(0, low - axis.reach), axis.data)
        result.append(slice(begin, max(begin, min(axis.data, high))))
    return tuple(result)


def _is_flat(part: Array) -> bool:
    """Whether the spatial axes of ``[..., i, *x]`` make one without a copy."""
    expected = part.itemsize
    for extent, stride in zip(part.shape[:1:-1], part.strides[:1:-1], strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return part.strides[1] >= expected or part.shape[1] <= 1


def _flat(part: Array) -> Array:
    """Return ``[i, *x]`` as ``[i, positions]``: a view if the BLAS can read it so, else a copy."""
    shape = (part.shape[0], math.prod(part.shape[1:]))
    if _is_flat(part[None]):
        return part.reshape(shape)
    return np.ascontiguousarray(part).reshape(shape)
