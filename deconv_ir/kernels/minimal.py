"""Minimal filtering (Winograd): two outputs of two taps for three products, of three for four.

Where a phase has two to five taps along an axis, neighbouring outputs are
computed in pairs.  With data d0, d1, ... and taps g0, g1, ... in the order in
which they meet::

    two taps      m0 = (d0 - d1) g0    m1 = d1 (g0 + g1)    m2 = (d1 - d2) g1
                  y0 = m0 + m1         y1 = m1 - m2
    three taps    m0 = (d0 - d2) g0    m1 = (d1 + d2) (g0 + g1 + g2) / 2
                  m3 = (d1 - d3) g2    m2 = (d2 - d1) (g0 - g1 + g2) / 2
                  y0 = m0 + m1 + m2    y1 = m1 - m2 - m3

Four taps are two and two, five are three and two: the results are added.
Axes are transformed one after the other, so that two of them need 9 products
instead of 16, or 16 instead of 36.  The sums over input channels lie between
the transforms of data and results: one matrix product for each combination of
the m.  Differences of data may overflow or meet infinities that the sum itself
does not, so that data and weights must be finite and no larger than `LARGEST`.
S. Winograd, Arithmetic Complexity of Computations (1980), theorem 6; A. Lavin
and S. Gray, Fast Algorithms for Convolutional Neural Networks (2016).
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.by_set import BySet
from deconv_ir.kernels.costs import ADD, Cost, Time, gather_time, product_time, write_time
from deconv_ir.kernels.problem import AxisPhases, PhaseSet, Problem, pick
from deconv_ir.kernels.products import multiply_stacks
from deconv_ir.kernels.writer import Writer

__all__ = ["LARGEST", "Minimal", "cost"]

Array = np.ndarray[Any, np.dtype[Any]]

_Index = tuple[int | slice, ...]

# From this number on, v make runs that are worth a neighbour computed for nothing.
_LONG = 8

# Five taps make what is added at most 12 times as large as a datum and a weight, for each of
# three axes; then 2^16 channels add up below the end of f32.
LARGEST = 2.0**50

# How taps are split; each part has one point more than taps.
_SPLITS = {2: (2,), 3: (3,), 4: (2, 2), 5: (3, 2)}


def _pairs(axis: AxisPhases) -> bool:
    """Whether outputs of these phases are computed in pairs along the axis."""
    return axis.taps in _SPLITS


class Minimal(BySet):
    """The filter packed for minimal filtering; no phase has more than five taps along an axis."""

    @staticmethod
    def pack(weights: Array, phases: PhaseSet) -> Array:
        """Return ``[point, group, out and phase, in]``."""
        for axis, part in enumerate(phases.axes):
            # Data come in order of position, so the farthest tap is the first.
            index = [positions[::-1] for positions in part.kernel_positions()]
            weights = weights.take(index, axis=3 + 2 * axis)
            if _pairs(part):
                weights = _transform_taps(weights, 4 + 2 * axis)
        axes = len(phases.axes)
        phase_axes = [3 + 2 * a for a in range(axes)]
        point_axes = [4 + 2 * a for a in range(axes)]
        ordered = np.ascontiguousarray(weights.transpose(*point_axes, 0, 2, *phase_axes, 1))
        groups, depth, outs = weights.shape[:3]
        points = math.prod(weights.shape[a] for a in point_axes)
        return ordered.reshape(points, groups, outs * phases.phases, depth)

    def compute(self, box: Box, source: Source, writer: Writer, scratch: Scratch) -> None:
        """Compute one tile."""
        depth = self.problem.channels_in
        for phases, weights in zip(self.sets, self.packed, strict=True):
            shape = _shape_of(phases, box)
            if shape is None:
                continue
            lead = (box.groups, depth, box.images)
            stages = [math.prod(lead) * n for n in shape.stages()]
            offsets = [0, max(stages[::2])]
            axes = len(shape.sides)
            planes = scratch.take(0, (*shape.sides, *lead, *shape.spatial(axes)))
            for part in shape.parts:
                source.copy(part.of_data, shape.steps, planes[part.planes])
            stage = 0
            # From the last axis on: the neighbours of those before are whole rows.
            for axis in reversed(range(axes)):
                if shape.sides[axis] == 2:
                    stage += 1
                    extents = (*shape.after(axis), *lead, *shape.spatial(axis))
                    done = scratch.take(offsets[stage % 2], extents)
                    _transform(planes, done, axis, shape)
                    planes = done
            self._multiply(shape, weights, planes, writer, scratch, _two_places(stages))

    def _multiply(
        self,
        shape: _Shape,
        weights: Array,
        planes: Array,
        writer: Writer,
        scratch: Scratch,
        begin: int,
    ) -> None:
        """Multiply transformed data, and write what becomes of the products."""
        box = shape.box
        positions = box.images * math.prod(shape.spatial())
        matrix = planes.reshape(len(weights), box.groups, self.problem.channels_in, positions)
        for part in box.blocks():
            rows = part.rows(math.prod(map(len, shape.places)))
            high = rows.stop - rows.start
            products = scratch.take(begin, (len(weights), box.groups, high, positions))
            multiply_stacks(weights[:, box.group : box.group + box.groups, rows], matrix, products)
            channels = box.groups * part.outs
            sums = products.reshape(
                *shape.points, channels, *map(len, shape.places), box.images, *shape.spatial()
            )
            for axis, sides in enumerate(shape.sides):
                if sides == 2:
                    sums = _combine(sums, axis, shape.splits[axis])
            for plane in shape.parts:
                writer.write(part, shape.places, plane.starts, shape.steps, sums[plane.sums])


class _Part(NamedTuple):
    """One plane: index and first position of the data, and of the sums."""

    planes: _Index
    of_data: tuple[int, ...]
    sums: _Index
    starts: tuple[int, ...]


class _Shape:
    """How one tile is cut for one set of phases.

    Along an axis whose outputs are computed in pairs, outputs that share data
    are `step` apart, and the position is ``2*step*v + step*side + lane``.
    """

    def __init__(self, phases: PhaseSet, box: Box) -> None:
        self.box = box
        self.places = tuple(axis.phases for axis in phases.axes)
        paired = [_pairs(part) for part in phases.axes]
        self.sides = [2 if pairs else 1 for pairs in paired]
        self.splits = [_SPLITS.get(a.taps, ()) for a in phases.axes]
        self.points = [sum(taps + 1 for taps in split) or 1 for split in self.splits]
        # How far pairs look ahead.
        self.ahead = [sum(split) // 2 for split in self.splits]
        self.lanes = [a.step if pairs else 1 for a, pairs in zip(phases.axes, paired, strict=True)]
        self.steps = tuple(
            2 * a.step if pairs else 1 for a, pairs in zip(phases.axes, paired, strict=True)
        )
        self.counts = [-(-n // step) for n, step in zip(box.size, self.steps, strict=True)]
        # The last axis along which outputs are computed in pairs.
        last = max((axis for axis, pairs in enumerate(paired) if pairs), default=-1)
        self.keeps = [axis == last and count >= _LONG for axis, count in enumerate(self.counts)]
        """Whether neighbours stay behind the transform: a few more of many v make long runs."""
        self._spatial = [self._extents(done) for done in range(len(paired) + 1)]
        self._axes = phases.axes

    @functools.cached_property
    def parts(self) -> list[_Part]:
        """The planes, one for each side and lane; what is only estimated may have billions."""
        result = []
        whole = [slice(None)] * (len(self.sides) + 2)
        far = [a.base + (a.taps - 1) * a.step for a in self._axes]
        for side, lane in itertools.product(
            itertools.product(*map(range, self.sides)), itertools.product(*map(range, self.lanes))
        ):
            here = [entry for rho in lane for entry in (rho, slice(None))]
            starts = tuple(
                first + a.step * e + rho
                for a, first, e, rho in zip(self._axes, self.box.first, side, lane, strict=True)
            )
            of_data = tuple(start - n for start, n in zip(starts, far, strict=True))
            result.append(
                _Part((*side, *whole[:3], *here), of_data, (*side, *whole, *here), starts)
            )
        return result

    def _extents(self, done: int) -> tuple[int, ...]:
        result: list[int] = []
        for axis, (lanes, count) in enumerate(zip(self.lanes, self.counts, strict=True)):
            stay = axis < done or self.keeps[axis]
            result += [lanes, count + self.ahead[axis] * stay]
        return tuple(result)

    def spatial(self, done: int = 0) -> tuple[int, ...]:
        """Return ``[lane, v]`` of every axis, those from `done` on transformed."""
        return self._spatial[done]

    def after(self, axis: int) -> tuple[int, ...]:
        """Return the planes an axis, once this one and those behind it are transformed."""
        return (*self.sides[:axis], *self.points[axis:])

    def stages(self) -> list[int]:
        """Return the elements of the planes, and after each transform, for one channel."""
        result = [math.prod(self.sides) * math.prod(self.spatial(len(self.sides)))]
        for axis in reversed(range(len(self.sides))):
            if self.sides[axis] == 2:
                result.append(math.prod(self.after(axis)) * math.prod(self.spatial(axis)))
        return result


def _two_places(stages: list[int]) -> int:
    return max(stages[::2]) + max(stages[1::2], default=0)


@functools.lru_cache(maxsize=4096)
def _shape_of(phases: PhaseSet, box: Box) -> _Shape | None:
    seen = box.seen(phases)
    return None if seen is None else _Shape(phases, seen)


def _transform(planes: Array, done: Array, axis: int, shape: _Shape) -> None:
    """Transform the data along one axis; the axes behind it are done."""
    v = len(shape.sides) + 3 + 2 * axis + 1
    inner = math.prod(planes.shape[v + 1 :])
    count = shape.counts[axis] * inner
    # [sides before, side, what lies between, v and the positions behind]
    others = math.prod(shape.sides[:axis])
    between = math.prod(shape.points[axis + 1 :]) * math.prod(planes.shape[len(shape.sides) : v])
    before = planes.reshape(others, 2, between, planes.shape[v] * inner)
    after = done.reshape(others, shape.points[axis], between, done.shape[v] * inner)
    if shape.keeps[axis]:
        # All rows are one run; what has no neighbour of its own becomes no result.
        before = before.reshape(*before.shape[:2], 1, between * before.shape[3])
        after = after.reshape(*after.shape[:2], 1, between * after.shape[3])
        count = before.shape[3] - shape.ahead[axis] * inner
        after[..., count:] = 0

    def datum(index: int) -> Array:
        side, ahead = index % 2, index // 2
        part: Array = before[:, side, :, ahead * inner : ahead * inner + count]
        return part

    to = iter([after[:, point, :, :count] for point in range(shape.points[axis])])
    first = 0
    for taps in shape.splits[axis]:
        d = [datum(first + i) for i in range(taps + 1)]
        if taps == 2:
            np.subtract(d[0], d[1], out=next(to))
            np.copyto(next(to), d[1])
            np.subtract(d[1], d[2], out=next(to))
        else:
            np.subtract(d[0], d[2], out=next(to))
            np.add(d[1], d[2], out=next(to))
            np.subtract(d[2], d[1], out=next(to))
            np.subtract(d[1], d[3], out=next(to))
        first += taps


def _combine(sums: Array, axis: int, split: tuple[int, ...]) -> Array:
    """Turn products into the two outputs of one axis, in place of its first two points."""
    before = (slice(None),) * axis
    m = [pick(sums, *before, point) for point in range(sums.shape[axis])]
    np.add(m[0], m[1], out=m[0])
    if split[0] == 2:
        np.subtract(m[1], m[2], out=m[1])
    else:
        np.add(m[0], m[2], out=m[0])
        np.subtract(m[1], m[2], out=m[1])
        np.subtract(m[1], m[3], out=m[1])
    if len(split) == 2:  # the second one always has two taps
        np.add(m[0], m[-3], out=m[0])
        np.add(m[0], m[-2], out=m[0])
        np.add(m[1], m[-2], out=m[1])
        np.subtract(m[1], m[-1], out=m[1])
    both: Array = sums[(*before, slice(0, 2))]
    return both


def _transform_taps(weights: Array, axis: int) -> Array:
    taps = iter(np.moveaxis(weights, axis, 0))
    half = weights.dtype.type(0.5)
    points = []
    for count in _SPLITS[weights.shape[axis]]:
        g = [next(taps) for _ in range(count)]
        if count == 2:
            points += [g[0], g[0] + g[1], g[1]]
        else:
            even = (g[0] + g[2]) * half
            points += [g[0], even + g[1] * half, even - g[1] * half, g[2]]
    return np.stack(points, axis=axis)


def cost(problem: Problem, sets: list[PhaseSet], box: Box) -> Cost | None:
    """Estimate what a tile takes; None if the method does not fit the problem."""
    elements, total = 0, Time()
    if any(axis.taps > max(_SPLITS) for phases in sets for axis in phases.axes):
        return None
    for phases in sets:
        seen = box.most(phases)
        if seen is None:
            continue
        shape = _Shape(phases, seen)
        data = box.groups * problem.channels_in * box.images
        stages = [data * n for n in shape.stages()]
        positions = box.images * math.prod(shape.spatial())
        points = math.prod(shape.points)
        rows = box.groups * phases.phases * positions
        # Planes and transforms alternate between two places; the products lie behind.
        elements = max(elements, _two_places(stages) + points * rows * box.block)
        copies = math.prod(shape.sides) * math.prod(shape.lanes)
        total += gather_time(stages[0], copies, shape.counts[-1])
        total += Time(passes=(ADD + 0.1) * sum(stages[1:]), calls=4 * len(stages))
        depth = problem.channels_in
        total += product_time(seen, phases.phases, depth, positions) * points
        total += Time(passes=2 * ADD * points * rows * box.outs)
        narrow = seen._replace(size=tuple(shape.counts))
        total += write_time(narrow, phases.phases * positions, phases) * copies
    return Cost(elements, total)
