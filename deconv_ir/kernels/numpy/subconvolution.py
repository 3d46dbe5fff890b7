"""The input positions and weights of each output position.

A transposed convolution of stride s consists of s sub-convolutions on each axis: with the
natural output position ``t = s*u + r``, all outputs of one remainder r use the same kernel
positions, at neighbouring inputs.  Each is a convolution of stride 1 over u, and the output is
their results interleaved.  A forward convolution is a single sub-convolution, with its own stride
and dilation.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from deconv_ir.kernels.problem import Problem


class SubAxis(NamedTuple):
    """One axis of sub-convolutions that read the same input positions."""

    remainders: tuple[int, ...]
    """Remainders r of the sub-convolutions, ascending."""
    kernel: tuple[tuple[int, ...], ...]
    """Kernel positions, ``[remainder][tap]``, in order of the input positions."""
    start: int
    """Input position of the first tap at u = 0, without the pads of a forward convolution."""
    step: int
    """Input positions from each tap to the next."""
    stride: int
    """Input positions from u to u + 1."""

    @property
    def taps(self) -> int:
        """Number of taps of each sub-convolution."""
        return len(self.kernel[0])


class SubConvolutions(NamedTuple):
    """Sub-convolutions that read the same inputs: all combinations of the axes' remainders."""

    axes: tuple[SubAxis, ...]

    @property
    def number(self) -> int:
        """Number of sub-convolutions."""
        return math.prod(len(axis.remainders) for axis in self.axes)

    @property
    def taps(self) -> int:
        """Number of taps of each sub-convolution."""
        return math.prod(axis.taps for axis in self.axes)


@functools.lru_cache(maxsize=256)
def sub_convolutions(problem: Problem) -> tuple[SubConvolutions, ...]:
    """Return all sub-convolutions with taps, grouped by the inputs that they read."""
    per_axis = []
    for extent, s, d in zip(problem.kernel, problem.strides, problem.dilations, strict=True):
        if problem.forward:
            per_axis.append([SubAxis((0,), (tuple(range(extent)),), 0, d, s)])
            continue
        # Kernel positions k, k + every, k + 2 * every ... belong to one sub-convolution.
        every, step = s // math.gcd(s, d), d // math.gcd(s, d)
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for k in range(min(every, extent)):
            taps = (extent - 1 - k) // every + 1
            found.setdefault((d * k // s, taps), []).append((d * k % s, k))
        axis = []
        for (nearest, taps), members in found.items():
            members.sort()
            kernel = tuple(
                tuple(k + every * tap for tap in reversed(range(taps))) for _, k in members
            )
            start = -(nearest + step * (taps - 1))
            axis.append(SubAxis(tuple(r for r, _ in members), kernel, start, step, 1))
        per_axis.append(axis)
    return tuple(SubConvolutions(axes) for axes in itertools.product(*per_axis))


class AxisSpan(NamedTuple):
    """One spatial axis of one run; `data` and `output` are extents."""

    data: int
    output: int
    pad: int
    """Position of the output in the natural output; 0 for a forward convolution."""
    stride: int
    """Stride of the output: ``y = stride * u + remainder - pad``."""
    offset: int
    """Added to input positions: minus the pad of a forward convolution."""

    def clip(self, remainder: int, begin: int, end: int) -> tuple[int, int]:
        """Return the u in ``[begin, end)`` of a sub-convolution that are part of the output."""
        low = max(begin, -((remainder - self.pad) // self.stride))
        high = min(end, (self.pad + self.output - 1 - remainder) // self.stride + 1)
        return low, max(low, high)

    def seen(self, remainders: tuple[int, ...], begin: int, end: int) -> tuple[int, int]:
        """Return the u in ``[begin, end)`` that any of these sub-convolutions writes."""
        ranges = [self.clip(remainder, begin, end) for remainder in remainders]
        ranges = [(low, high) for low, high in ranges if high > low]
        if not ranges:
            return begin, begin
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def reached(self, axis: SubAxis) -> tuple[int, int]:
        """Return the u that are part of the output, and that a tap can reach."""
        if not self.data:
            return 0, 0
        far = axis.start + axis.step * (axis.taps - 1) + self.offset
        begin = -(far // axis.stride)
        end = (self.data - 1 - axis.start - self.offset) // axis.stride + 1
        return self.seen(axis.remainders, begin, end)

    def covered(self, remainders: tuple[int, ...], begin: int, end: int) -> int:
        """Return the number of outputs of these sub-convolutions for u in ``[begin, end)``."""
        ranges = (self.clip(remainder, begin, end) for remainder in remainders)
        return sum(high - low for low, high in ranges)


Axes = tuple[AxisSpan, ...]


@functools.lru_cache(maxsize=512)
def spans(
    problem: Problem,
    data: tuple[int, ...],
    pads_begin: tuple[int, ...],
    output: tuple[int, ...],
) -> Axes:
    """Return the spans of all spatial axes of one run."""
    axes = zip(data, output, pads_begin, problem.strides, strict=True)
    return tuple(
        AxisSpan(x, y, 0, 1, -pad) if problem.forward else AxisSpan(x, y, pad, s, 0)
        for x, y, pad, s in axes
    )


Extents = tuple[int, int, Sequence[int]]
"""Numbers of groups, of output channels, and of positions u on each axis."""


class ImageTile(NamedTuple):
    """A part of one image."""

    groups: slice
    outs: slice
    """Groups, and output channels of each."""
    begin: tuple[int, ...]
    end: tuple[int, ...]
    """Positions u of the sub-convolutions, one for each axis."""

    @property
    def size(self) -> tuple[int, ...]:
        """Extents, one for each axis."""
        return tuple(e - b for b, e in zip(self.begin, self.end, strict=True))

    @property
    def extents(self) -> tuple[int, int, tuple[int, ...]]:
        """Numbers of groups, output channels and positions."""
        groups, outs = (part.stop - part.start for part in (self.groups, self.outs))
        return groups, outs, self.size
