"""What a transposed convolution is made of, in the kernels' own terms.

Names of axes, used in every file of this room::

    n  batch                 g  group
    i  input channel         o  output channel        (both counted in a group)
    x  input position        y  output position       k  kernel position
    t  position in the natural output, t = s*x + d*k = y + pad_begin

Output phases: write ``t = s*u + r`` with the phase ``0 <= r < s``.  A tap k
has ``d*k = s*shift + phase``, so it takes ``data[u - shift]`` to ``(u, phase)``
and to no other phase.  Each phase is therefore a small dense correlation of
its own, contiguous in u, and the output is the phases interleaved.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "AxisPhases",
    "AxisSpan",
    "PhaseSet",
    "Problem",
    "Tap",
    "check_run",
    "check_vector",
    "enumerate_taps",
    "leaves_holes",
    "phase_sets",
    "pick",
    "spans",
]

Array = np.ndarray[Any, np.dtype[Any]]


class Problem(NamedTuple):
    """A transposed convolution without its extents: what can be prepared once.

    Attributes
    ----------
    groups : int
        Number of groups.
    channels_in, channels_out : int
        Channels of one group.
    kernel, strides, dilations : tuple of int
        One entry a spatial axis.
    """

    groups: int
    channels_in: int
    channels_out: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def axes(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def taps(self) -> int:
        """Number of kernel positions."""
        return math.prod(self.kernel)

    @classmethod
    def of_filter(
        cls,
        shape: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        groups: int,
        *,
        forward: bool = False,
    ) -> Problem:
        """Read the problem off a filter ``[groups * in, out, *K]``.

        With `forward` it is that of a convolution, ``[groups * out, in, *K]``.

        Raises
        ------
        ValueError
            The lengths or the values do not fit together.
        """
        if len(shape) < 3:
            raise ValueError(f"filter must have rank 3 or greater, not shape {list(shape)}")
        kernel = tuple(int(k) for k in shape[2:])
        if min(kernel) < 1:
            raise ValueError(f"kernel extents must be positive, not {list(kernel)}")
        if groups < 1 or shape[0] % groups:
            name = "output" if forward else "input"
            raise ValueError(f"{shape[0]} {name} channels do not make {groups} groups")
        grouped, other = int(shape[0]) // groups, int(shape[1])
        return cls(
            int(groups),
            other if forward else grouped,
            grouped if forward else other,
            kernel,
            check_vector("strides", strides, len(kernel), 1),
            check_vector("dilations", dilations, len(kernel), 1),
        )


def check_vector(
    name: str, values: Sequence[int], length: int, least: int | None = None
) -> tuple[int, ...]:
    """Return `values` as a tuple of ints after checking their number and range.

    Raises
    ------
    ValueError
        There are not `length` values, or one is less than `least`.
    """
    result = tuple(int(v) for v in values)
    if len(result) != length:
        raise ValueError(f"{name} must have {length} entries, one a spatial axis, not {result}")
    if least is not None and any(v < least for v in result):
        raise ValueError(f"{name} must be at least {least}, not {result}")
    return result


@functools.lru_cache(maxsize=512)
def check_run(
    problem: Problem, shape: tuple[int, ...], pads_begin: tuple[int, ...], output: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Check the arguments of one run against the prepared problem.

    Returns
    -------
    pads_begin, output : tuple of int
        Pads in the bounds within which they make a difference.

    Raises
    ------
    ValueError
        Rank, channels or lengths do not fit.
    """
    if len(shape) != problem.axes + 2:
        raise ValueError(f"data must have rank {problem.axes + 2}, not shape {list(shape)}")
    channels = problem.groups * problem.channels_in
    if shape[1] != channels:
        raise ValueError(f"data must have {channels} channels, not {shape[1]}")
    extents = check_vector("output", output, problem.axes, 0)
    pads = check_vector("pads_begin", pads_begin, problem.axes)
    # Beyond these bounds data and output do not meet, however far beyond: sums
    # with them stay within 64 bits.
    bounds = (
        s * max(x, y) + d * k + x + y + 1
        for s, d, k, x, y in zip(
            problem.strides, problem.dilations, problem.kernel, shape[2:], extents, strict=True
        )
    )
    return tuple(max(-b, min(p, b)) for p, b in zip(pads, bounds, strict=True)), extents


class Tap(NamedTuple):
    """One kernel position: the phase that it feeds, and from how far away."""

    kernel: tuple[int, ...]
    phase: tuple[int, ...]
    shift: tuple[int, ...]


def enumerate_taps(problem: Problem) -> list[Tap]:
    """Return every kernel position, sorted by phase, then by shift."""
    per_axis = [
        [(k, d * k % s, d * k // s) for k in range(extent)]
        for extent, s, d in zip(problem.kernel, problem.strides, problem.dilations, strict=True)
    ]
    taps = [
        Tap(tuple(c[0] for c in cell), tuple(c[1] for c in cell), tuple(c[2] for c in cell))
        for cell in itertools.product(*per_axis)
    ]
    return sorted(taps, key=lambda tap: (tap.phase, tap.shift))


class AxisPhases(NamedTuple):
    """Phases of one axis that see data from the same distances.

    Attributes
    ----------
    phases : tuple of int
        The phases, ascending.
    first : tuple of int
        The nearest tap of each.
    every : int
        Kernel positions from a tap to the next one of its phase.
    base, step : int
        Distance of the nearest tap, and from there to the next.
    taps : int
        Taps of each phase.
    """

    phases: tuple[int, ...]
    first: tuple[int, ...]
    every: int
    base: int
    step: int
    taps: int

    def kernel_positions(self) -> list[list[int]]:
        """Return the kernel positions of all taps, ``[phase][tap]``."""
        return [[k + self.every * tap for tap in range(self.taps)] for k in self.first]


class PhaseSet(NamedTuple):
    """Phases that see data from the same distances: the same taps along every axis.

    Attributes
    ----------
    axes : tuple of AxisPhases
        The phases; all combinations of them are in the set.
    phases : int
        Number of phases.
    shifts : int
        Number of distances, which is that of the taps of each phase.
    reach : tuple of int
        From the nearest tap to the farthest, an axis each.
    """

    axes: tuple[AxisPhases, ...]
    phases: int
    shifts: int
    reach: tuple[int, ...]

    @classmethod
    def of_axes(cls, axes: tuple[AxisPhases, ...]) -> PhaseSet:
        """Combine the phases of all axes."""
        return cls(
            axes,
            math.prod(len(a.phases) for a in axes),
            math.prod(a.taps for a in axes),
            tuple(a.step * (a.taps - 1) for a in axes),
        )


def phase_sets(problem: Problem, *, single: bool = False) -> list[PhaseSet]:
    """Return all phases that have taps, sorted into sets; with `single` each is one of its own."""
    per_axis = []
    for extent, s, d in zip(problem.kernel, problem.strides, problem.dilations, strict=True):
        every = s // math.gcd(s, d)
        found: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        for k in range(min(every, extent)):
            key = (d * k // s, (extent - 1 - k) // every + 1, k if single else 0)
            found.setdefault(key, []).append((d * k % s, k))
        per_axis.append(
            [
                AxisPhases(
                    tuple(r for r, _ in sorted(members)),
                    tuple(k for _, k in sorted(members)),
                    every,
                    base,
                    d // math.gcd(s, d),
                    taps,
                )
                for (base, taps, _), members in found.items()
            ]
        )
    return [PhaseSet.of_axes(axes) for axes in itertools.product(*per_axis)]


class AxisSpan(NamedTuple):
    """One spatial axis of one run.

    Attributes
    ----------
    data, output : int
        Extents X and Y.
    pad_begin, stride : int
        As in the run.
    first, last : int
        The u that can be non-zero and that the output sees: ``first <= u < last``.
    reach : int
        Largest shift of a tap; u needs ``data[u - reach .. u]``.
    """

    data: int
    output: int
    pad_begin: int
    stride: int
    first: int
    last: int
    reach: int

    def outputs(self, phase: int, first: int, last: int) -> tuple[slice, slice]:
        """Map the u in [first, last) of a phase to output positions.

        Returns
        -------
        u, y : slice
            The u whose output exists, counted from `first`, and where they go.
        """
        low = max(first, -((phase - self.pad_begin) // self.stride))
        high = min(last, (self.pad_begin + self.output - 1 - phase) // self.stride + 1)
        if high <= low:
            return slice(0, 0), slice(0, 0)
        begin = low * self.stride + phase - self.pad_begin
        end = (high - 1) * self.stride + phase - self.pad_begin + 1
        return slice(low - first, high - first), slice(begin, end, self.stride)

    def seen(self, phases: Sequence[int]) -> tuple[int, int]:
        """Return the first u of these phases that the output sees, and the one after the last."""
        low = min(-((phase - self.pad_begin) // self.stride) for phase in phases)
        high = max((self.pad_begin + self.output - 1 - phase) // self.stride for phase in phases)
        return max(self.first, low), min(self.last, high + 1)

    def place(self, phase: int, start: int, step: int, count: int) -> tuple[slice, slice]:
        """Map ``u = start + step * index`` of a phase, index < count, to output positions.

        Returns
        -------
        index, y : slice
            The indices whose output exists and lies before `last`, and where they go.
        """
        every = self.stride * step
        begin = self.stride * start + phase - self.pad_begin
        low = max(0, -(begin // every))
        high = min(count, -((start - self.last) // step), -((begin - self.output) // every))
        if high <= low:
            return slice(0, 0), slice(0, 0)
        return slice(low, high), slice(begin + every * low, begin + every * (high - 1) + 1, every)


@functools.lru_cache(maxsize=512)
def spans(
    problem: Problem, data: tuple[int, ...], pads_begin: tuple[int, ...], output: tuple[int, ...]
) -> tuple[AxisSpan, ...]:
    """Return the spans of all spatial axes of one run."""
    result = []
    for axis, (extent, pad, y) in enumerate(zip(data, pads_begin, output, strict=True)):
        stride = problem.strides[axis]
        reach = (problem.kernel[axis] - 1) * problem.dilations[axis] // stride
        first = max(pad // stride, 0)
        last = min((pad + y - 1) // stride + 1, extent + reach) if extent and y else first
        result.append(AxisSpan(extent, y, pad, stride, first, max(first, last), reach))
    return tuple(result)


@functools.lru_cache(maxsize=512)
def leaves_holes(problem: Problem, axes: tuple[AxisSpan, ...]) -> bool:
    """Whether there are output positions that no tap takes data to."""
    for axis, extent, s, d in zip(
        axes, problem.kernel, problem.strides, problem.dilations, strict=True
    ):
        phases = min(extent, s // math.gcd(s, d))  # that have taps
        low, high = axis.first * s, axis.last * s
        if phases < s or low > axis.pad_begin or high < axis.pad_begin + axis.output:
            return True
    return False


def pick(array: Array, *index: Any) -> Array:
    """Return ``array[index]`` for an index of as many entries as the array's rank needs."""
    result: Array = array[index]
    return result
