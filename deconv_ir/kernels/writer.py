"""Phases go to their places: the results of the NumPy path are interleaved here."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.box import Box
from deconv_ir.kernels.col2im import finish
from deconv_ir.kernels.problem import AxisSpan

__all__ = ["Writer"]

Array = np.ndarray[Any, np.dtype[Any]]

# From this number on, phases of an axis are copied together: a view costs as much as some calls.
_TOGETHER = 3


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
            ``[channel, *phase, image, *index]``.
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
        for index, places, apart in _moves(self.axes, phases, tuple(starts), steps, counts):
            if apart:
                source, there = _together(sums, index, target, places, apart)
            else:
                source, there = sums[index].swapaxes(0, 1), target[places]
            if bias is not None:
                bias = bias.reshape(-1, *(1 for _ in there.shape[2:]))
            finish(source, bias, self.activation, there)


_Index = tuple[slice | int, ...]


@functools.lru_cache(maxsize=4096)
def _moves(
    axes: tuple[AxisSpan, ...],
    phases: tuple[tuple[int, ...], ...],
    starts: tuple[int, ...],
    steps: tuple[int, ...],
    counts: tuple[int, ...],
) -> list[tuple[_Index, _Index, tuple[int, ...]]]:
    """Return for each copy the index of the sums, that of the output, and how far phases are apart.

    Phases are copied one by one, for which there is no distance, or several together.
    """
    per_axis = [
        _runs(*arguments) for arguments in zip(axes, phases, starts, steps, counts, strict=True)
    ]
    # Neighbouring positions of one phase are the longest rows there are.
    per_axis[-1] = [single for run in per_axis[-1] for single in run.singles()]
    for i, runs in enumerate(per_axis):
        few = [run.singles() if run.number < _TOGETHER else [run] for run in runs]
        per_axis[i] = list(itertools.chain(*few))
    everything = (slice(None), slice(None))
    moves: list[tuple[_Index, _Index, tuple[int, ...]]] = []
    for combination in itertools.product(*per_axis):
        places = (*everything, *(run.places for run in combination))
        indices = (slice(None), *(run.indices for run in combination))
        if all(run.number == 1 for run in combination):
            moves.append(((slice(None), *(run.phase for run in combination), *indices), places, ()))
        else:
            some = (slice(run.phase, run.phase + run.number) for run in combination)
            apart = tuple(max(1, run.apart) for run in combination)
            moves.append(((slice(None), *some, *indices), places, apart))
    return moves


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
