"""Phases go to their places: the results of the NumPy path are interleaved here."""

from __future__ import annotations

import functools
import itertools
import math
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

# Elements from which on the phases of the axes before the last are copied together: whole
# rows of the output are written one after the other, in half the time; but the views cost
# as much as some calls.
_TOGETHER = 1 << 15


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

    def is_plain(self, sums: np.dtype[Any]) -> bool:
        """Whether sums of this type are the results, and a plane of these is a run."""
        alone = self.bias is None and self.activation.kind is ActivationKind.NONE
        return alone and self.out.dtype == sums and self.out.flags.c_contiguous

    def runs(self, box: Box, length: int) -> Array:
        """Return where results go that are a run, ``[group, out, image, position]``.

        Parameters
        ----------
        box : Box
            The tile; its strides are 1, and it has all of the axes but the first.
        length : int
            Positions of an image.
        """
        channel = box.group * self.channels + box.out
        planes = self.out[
            box.image : box.image + box.images, channel : channel + box.groups * box.outs
        ]
        rows = self.axes[0]
        start = (box.first[0] - rows.pad_begin) * math.prod(a.output for a in self.axes[1:])
        flat = planes.reshape(box.images, box.groups, box.outs, -1)
        return flat[..., start : start + length].transpose(1, 2, 0, 3)

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
        together = sums.size >= _TOGETHER
        for move in _moves(self.axes, phases, tuple(starts), steps, counts, together):
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
        Index of the sums, for the first of the phases, and of the output, for all.
    apart : tuple of _Apart
        An axis each; empty if there is one phase alone.
    """

    part: _Index
    places: _Index
    apart: tuple[_Apart, ...] = ()


class _Apart(NamedTuple):
    """How phases of an axis follow each other that are copied together: to all places in turn.

    Attributes
    ----------
    number : int
        How many they are.
    phases, indices : int
        From one to the next: in the list of phases, and along the axis.
    """

    number: int = 1
    phases: int = 1
    indices: int = 0


@functools.lru_cache(maxsize=4096)
def _moves(
    axes: tuple[AxisSpan, ...],
    phases: tuple[tuple[int, ...], ...],
    starts: tuple[int, ...],
    steps: tuple[int, ...],
    counts: tuple[int, ...],
    together: bool,
) -> list[_Move]:
    """Return all copies; with `together`, of several phases where that can be."""
    per_axis: list[list[_Run]] = []
    for arguments in zip(axes, phases, starts, steps, counts, strict=True):
        runs = _runs(*arguments)
        # Neighbouring positions of one phase are the longest rows there are.
        last = len(per_axis) == len(axes) - 1
        per_axis.append(_joined(runs) if together and not last else runs)
    return [_move(combination) for combination in itertools.product(*per_axis)]


def _move(combination: tuple[_Run, ...]) -> _Move:
    everything = (slice(None), slice(None))
    places: _Index = (*everything, *(run.places for run in combination))
    part: _Index = (
        slice(None),
        *(r.phase for r in combination),
        slice(None),
        *(r.indices for r in combination),
    )
    alone = all(run.apart.number == 1 for run in combination)
    return _Move(part, places, () if alone else tuple(run.apart for run in combination))


class _Run(NamedTuple):
    """Phases of an axis that follow each other evenly.

    Attributes
    ----------
    phase : int
        The first one, counted in the list of phases.
    indices, places : slice
        Its indices, and where they go, with those of the others.
    apart : _Apart
        How the others follow.
    """

    phase: int
    indices: slice
    places: slice
    apart: _Apart = _Apart()

    @property
    def length(self) -> int:
        """How many indices each phase has."""
        return int(self.indices.stop - self.indices.start)

    def cut(self, count: int) -> tuple[_Run, _Run]:
        """Return the first `count` indices, and the rest."""
        begin, end, step = self.places.start, self.places.stop, self.places.step
        at, place = self.indices.start + count, begin + count * step
        return (
            self._replace(indices=slice(self.indices.start, at), places=slice(begin, place, step)),
            self._replace(indices=slice(at, self.indices.stop), places=slice(place, end, step)),
        )


def _runs(axis: AxisSpan, phases: Sequence[int], start: int, step: int, count: int) -> list[_Run]:
    """Return the phases one by one; those without a place in the output are left out."""
    runs = []
    for i, phase in enumerate(phases):
        indices, places = axis.place(phase, start, step, count)
        if indices.stop > indices.start:
            runs.append(_Run(i, indices, places))
    return runs


def _joined(runs: list[_Run]) -> list[_Run]:
    """Join the phases, if they follow each other evenly and fill all places of the output.

    Some of many are as quickly copied one by one.
    """
    if len(runs) < 2 or runs[0].places.step != len(runs):
        return runs
    first, *others = sorted(runs, key=lambda run: run.places.start)
    number = len(runs)
    each = _distances(first, others[0])
    even = all(
        _distances(first, run) == tuple(i * n for n in each) for i, run in enumerate(others, 1)
    )
    if not even or each[2] != 1:
        return runs
    # At the end some may have an index more.
    length = min(run.length for run in runs)
    heads, rests = zip(*(run.cut(length) for run in (first, *others)), strict=True)
    begin = first.places.start
    joined = heads[0]._replace(
        places=slice(begin, begin + number * length), apart=_Apart(number, *each[:2])
    )
    return [joined, *(rest for rest in rests if rest.length)]


def _distances(first: _Run, run: _Run) -> tuple[int, int, int]:
    return (
        run.phase - first.phase,
        run.indices.start - first.indices.start,
        run.places.start - first.places.start,
    )


def _together(
    sums: Array, part: _Index, target: Array, places: _Index, apart: tuple[_Apart, ...]
) -> tuple[Array, Array]:
    """Return source and places of several phases, ``[image, channel, u, phase, u, phase, ...]``."""
    axes = len(apart)
    source, there = sums[part].swapaxes(0, 1), target[places]
    shape, strides = list(source.shape[:2]), list(source.strides[:2])
    for axis, run in enumerate(apart):
        shape += [source.shape[2 + axis], run.number]
        phase, index = sums.strides[1 + axis], sums.strides[2 + axes + axis]
        strides += [source.strides[2 + axis], run.phases * phase + run.indices * index]
    # Every element of the view is one that `AxisSpan.place` found.  Axes that are cut in two
    # make a view as well.
    return as_strided(source, shape, strides), there.reshape(shape)
