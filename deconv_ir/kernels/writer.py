"""Phases go to their places: the results of the NumPy path are interleaved here."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from deconv_ir.kernels.activation import Activation, ActivationKind
from deconv_ir.kernels.box import Box
from deconv_ir.kernels.col2im import finish
from deconv_ir.kernels.problem import AxisSpan

__all__ = ["Writer"]

Array = np.ndarray[Any, np.dtype[Any]]

# From this number on, phases of an axis are copied together: a view costs as much as some calls.
_TOGETHER = 3
# Results from this size on leave the caches between one phase and the next.  Real and
# imaginary parts are neighbours: whole pairs are written first, then every other element.
_LARGE_BYTES = 8 << 20
_PAIRS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.complex64),
    np.dtype(np.float64): np.dtype(np.complex128),
}


class Writer:
    """Where the tiles of one run put their sums.

    Parameters
    ----------
    out : ndarray
        ``[N, groups * out, *Y]``.
    axes : tuple of AxisSpan
        Of the run.
    channels : int
        Output channels of a group.
    bias : ndarray or None
        ``[groups * out]``, in the type of the sums.
    activation : Activation
        Applied to every result.
    """

    def __init__(
        self,
        out: Array,
        axes: tuple[AxisSpan, ...],
        channels: int,
        bias: Array | None,
        activation: Activation,
    ) -> None:
        self.out, self.axes, self.channels = out, axes, channels
        self.bias, self.activation = bias, activation
        large = out.nbytes >= _LARGE_BYTES and out.strides[-1] == out.itemsize
        plain = activation.kind is ActivationKind.NONE
        self.pair = _PAIRS.get(out.dtype) if large and plain else None

    def write(
        self,
        box: Box,
        phases: tuple[tuple[int, ...], ...],
        starts: Sequence[int],
        steps: tuple[int, ...],
        sums: Array,
    ) -> None:
        """Write all combinations of `phases`, an axis each.

        Parameters
        ----------
        box : Box
            The tile; what lies beyond it is not written.
        phases : tuple of tuple of int
            The phases of each axis, ascending.
        starts, steps : sequence of int
            Indices of `sums` are at ``u = start + step * index``.
        sums : ndarray
            ``[channel, *phase, image, *index]``; it may be changed.
        """
        counts = tuple(
            min(count, -((start - first - size) // step))
            for count, start, step, first, size in zip(
                sums.shape[len(self.axes) + 2 :], starts, steps, box.first, box.size, strict=True
            )
        )
        channel = box.group * self.channels + box.out
        channels = slice(channel, channel + len(sums))
        target = self.out[box.image : box.image + box.images, channels]
        bias = None if self.bias is None else self.bias[channels]
        pair = self.pair if sums.dtype == self.out.dtype else None
        if pair is not None and bias is not None:
            np.add(sums, bias.reshape(-1, *(1 for _ in sums.shape[1:])), out=sums)
            bias = None
        for move in _moves(self.axes, phases, tuple(starts), steps, counts, pair is not None):
            if pair is not None and move.beside is not None:
                pairs: Array = target[move.places].view(pair)
                np.copyto(pairs, sums[move.part].swapaxes(0, 1))
                pairs.imag = sums[move.beside].swapaxes(0, 1)
                continue
            if move.apart:
                source, there = _together(sums, move.part, target, move.places, move.apart)
            else:
                source, there = sums[move.part].swapaxes(0, 1), target[move.places]
            if bias is not None:
                bias = bias.reshape(-1, *(1 for _ in there.shape[2:]))
            finish(source, bias, self.activation, there)


_Index = tuple[slice | int, ...]


class _Move(NamedTuple):
    """What is copied at once.

    Attributes
    ----------
    part, places : tuple
        Index of the sums and of the output.
    apart : tuple of int
        How far phases that are copied together lie apart; empty if there is one.
    beside : tuple or None
        Index of the sums whose places lie behind those of `part`, one each:
        `places` are all of them.
    """

    part: _Index
    places: _Index
    apart: tuple[int, ...] = ()
    beside: _Index | None = None


@functools.lru_cache(maxsize=4096)
def _moves(
    axes: tuple[AxisSpan, ...],
    phases: tuple[tuple[int, ...], ...],
    starts: tuple[int, ...],
    steps: tuple[int, ...],
    counts: tuple[int, ...],
    paired: bool,
) -> list[_Move]:
    """Return all copies; with `paired`, two phases that alternate along the last axis are one."""
    per_axis = [
        _runs(*arguments) for arguments in zip(axes, phases, starts, steps, counts, strict=True)
    ]
    # Neighbouring positions of one phase are the longest rows there are.
    per_axis[-1] = [single for run in per_axis[-1] for single in run.singles()]
    for i, runs in enumerate(per_axis):
        few = [run.singles() if run.number < _TOGETHER else [run] for run in runs]
        per_axis[i] = list(itertools.chain(*few))
    moves: list[_Move] = []
    for combination in itertools.product(*per_axis[:-1]):
        last = per_axis[-1]
        if paired and all(run.number == 1 for run in combination):
            pairs, last = _alternating(last)
            moves += [
                _move((*combination, first))._replace(
                    places=_move((*combination, both)).places,
                    beside=_move((*combination, second)).part,
                )
                for first, second, both in pairs
            ]
        moves += [_move((*combination, run)) for run in last]
    return moves


def _move(combination: tuple[_Run, ...]) -> _Move:
    everything = (slice(None), slice(None))
    places = (*everything, *(run.places for run in combination))
    indices = (slice(None), *(run.indices for run in combination))
    if all(run.number == 1 for run in combination):
        return _Move((slice(None), *(run.phase for run in combination), *indices), places)
    some = (slice(run.phase, run.phase + run.number) for run in combination)
    return _Move(
        (slice(None), *some, *indices), places, tuple(max(1, run.apart) for run in combination)
    )


def _alternating(runs: list[_Run]) -> tuple[list[tuple[_Run, _Run, _Run]], list[_Run]]:
    """Return two runs that alternate and their common places, and what is left of them."""
    if len(runs) != 2:
        return [], runs
    first, second = sorted(runs, key=lambda run: run.places.start)
    begin = first.places.start
    if (first.places.step, second.places.step, second.places.start) != (2, 2, begin + 1):
        return [], runs
    count = min(run.indices.stop - run.indices.start for run in runs)
    both = first._replace(places=slice(begin, begin + 2 * count))
    heads, rests = zip(first.cut(count), second.cut(count), strict=True)
    left = [run for run in rests if run.indices.stop > run.indices.start]
    return [(heads[0], heads[1], both)], left


class _Run(NamedTuple):
    """Phases of an axis that lie equally far apart, of which the same indices have places.

    Attributes
    ----------
    phase, number : int
        The first one, counted in the list of phases, and how many.
    indices : slice
        The indices.
    places : slice
        Where those of the first phase go.
    apart : int
        From there to those of the next.
    """

    phase: int
    number: int
    indices: slice
    places: slice
    apart: int

    def cut(self, count: int) -> tuple[_Run, _Run]:
        """Return the first `count` indices, and the rest."""
        begin, end, step = self.places.start, self.places.stop, self.places.step
        at, place = self.indices.start + count, begin + count * step
        return (
            self._replace(indices=slice(self.indices.start, at), places=slice(begin, place, step)),
            self._replace(indices=slice(at, self.indices.stop), places=slice(place, end, step)),
        )

    def singles(self) -> list[_Run]:
        """Return the phases one by one."""
        return [
            self._replace(
                phase=self.phase + i,
                number=1,
                places=slice(
                    self.places.start + i * self.apart,
                    self.places.stop + i * self.apart,
                    self.places.step,
                ),
            )
            for i in range(self.number)
        ]


def _runs(axis: AxisSpan, phases: Sequence[int], start: int, step: int, count: int) -> list[_Run]:
    """Sort the phases of an axis into runs; those without a place in the output are in none."""
    runs: list[_Run] = []
    for i, phase in enumerate(phases):
        index, places = axis.place(phase, start, step, count)
        if index.stop == index.start:
            continue
        if runs:
            last = runs[-1]
            apart = places.start - last.places.start
            if last.number == 1 and last.indices == index and last.phase == i - 1:
                runs[-1] = last._replace(number=2, apart=apart)
                continue
            if (
                last.indices == index
                and last.phase + last.number == i
                and apart == last.number * last.apart
            ):
                runs[-1] = last._replace(number=last.number + 1)
                continue
        runs.append(_Run(i, 1, index, places, 0))
    return runs


def _together(
    sums: Array, index: _Index, target: Array, places: _Index, apart: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return source and places of several phases, ``[image, channel, u, phase, u, phase, ...]``."""
    axes = len(apart)
    order = [axes + 1, 0, *(i for a in range(axes) for i in (axes + 2 + a, 1 + a))]
    source = sums[index].transpose(order)
    first = target[places]
    strides = [
        n
        for axis, distance in enumerate(apart)
        for n in (first.strides[2 + axis], distance * target.strides[2 + axis])
    ]
    # Every element of the view is one that `AxisSpan.place` found inside the output.
    return source, as_strided(first, source.shape, (*first.strides[:2], *strides))
