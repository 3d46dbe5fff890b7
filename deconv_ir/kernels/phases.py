"""Transposed convolution in NumPy: shifted products that add up in phase planes.

All taps that move data by the same number of phase positions form one matrix,
a row for every phase and output channel, and one accumulating product adds
them all to the phases at once.  There is no column buffer, the sums are
contiguous, and each phase is interleaved into the output in one strided write.
The data of a tile are copied with zeros around them, so that a shift is
nothing but another place to start reading; hence weights must be finite.

With few output channels these matrices would be too low for the BLAS; then
one product makes the columns of all taps, which are added up with their
shifts.  Layers whose groups are too small for any product (depthwise ones) are
summed tap by tap, many groups at a time.
"""

from __future__ import annotations

import enum
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.arithmetic import Arithmetic
from deconv_ir.kernels.blas import accumulate, single_threaded
from deconv_ir.kernels.col2im import fill_holes, finish
from deconv_ir.kernels.parallel import run_jobs
from deconv_ir.kernels.problem import AxisSpan, Problem, Tap, enumerate_taps, pick
from deconv_ir.kernels.threads import get_threads

__all__ = ["Method", "Phases", "choose_method"]

Array = np.ndarray[Any, np.dtype[Any]]

# Rows of a product: enough for the BLAS, few enough for their sums to stay near.
_ROWS = 768
# Bytes of the sums of a tile; a call costs some microseconds of the interpreter.
_SUMS_BYTES = 1 << 20
_DEPTHWISE_BYTES = 1 << 22
_COLUMNS_BYTES = 1 << 21
# Fewer rows than this do not make a product that the BLAS is good at.
_FEWEST_ROWS = 64
# With more phases than this the interleaving is done in one go, by way of a buffer.
_MANY_PHASES = 32


class Method(enum.Enum):
    """How the phases are summed."""

    PRODUCTS = "products"
    COLUMNS = "columns"
    TAPS = "taps"


def choose_method(problem: Problem) -> Method:
    """Choose by the size of a group's products: tiny ones are not worth a call of the BLAS."""
    if problem.groups > 1 and problem.channels_in * problem.channels_out <= 4:
        return Method.TAPS
    phases = math.prod(map(min, problem.strides, problem.kernel))
    shifts = problem.taps / phases
    if phases * problem.channels_out < _FEWEST_ROWS and shifts > 1:
        return Method.COLUMNS
    return Method.PRODUCTS


class _Product(NamedTuple):
    """One matrix: the taps of one shift, for neighbouring phases and a block of channels."""

    shift: tuple[int, ...]
    first_row: int
    matrix: Array
    add: bool


class _Layout(NamedTuple):
    """A tile: images, channels or groups, and a box of phase positions with its halo."""

    images: int
    groups: int
    box: tuple[int, ...]
    extent: tuple[int, ...]

    @property
    def positions(self) -> int:
        """Positions of the data block, all images together."""
        return self.images * math.prod(self.extent)

    def offset(self, steps: tuple[int, ...]) -> int:
        """Flat distance of a step along the axes."""
        flat = 0
        for step, extent in zip(steps, self.extent, strict=True):
            flat = flat * extent + step
        return flat


class Phases:
    """A transposed convolution packed for phase planes.

    Parameters
    ----------
    problem : Problem
        What is computed.
    arithmetic : Arithmetic
        Of a floating-point type.
    weights : ndarray
        ``[groups * in, out, *K]``, all finite.
    bias : ndarray or None
        ``[groups * out]``.
    activation : Activation
        Applied to every result before it is rounded.
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
        self.activation = activation
        self.bias = None if bias is None else bias.astype(arithmetic.accumulator)
        self.method = choose_method(problem)
        self.taps = enumerate_taps(problem)
        # Phases in order, each once; those without taps are not among them.
        self.phases = list(dict.fromkeys(tap.phase for tap in self.taps))
        blocks = -(-problem.channels_out * len(self.phases) // _ROWS)
        self.block = -(-problem.channels_out // max(1, min(blocks, problem.channels_out)))
        shape = (problem.groups, problem.channels_in, problem.channels_out, *problem.kernel)
        self.weights = weights.reshape(shape).astype(arithmetic.operand, copy=False)
        if self.method is Method.COLUMNS:
            self.block = problem.channels_out
        self.products = {} if self.method is Method.TAPS else self._pack()

    def _pack(self) -> dict[tuple[int, int], list[_Product]]:
        """Make the matrices of every group and block of output channels."""
        index = {phase: i for i, phase in enumerate(self.phases)}
        by_shift: dict[tuple[int, ...], list[Tap]] = {}
        for tap in self.taps:
            by_shift.setdefault(tap.shift, []).append(tap)
        if self.method is Method.COLUMNS:
            nowhere = (0,) * self.problem.axes
            order = [np.ravel_multi_index(tap.kernel, self.problem.kernel) for tap in self.taps]
            flat = self.weights.reshape(*self.weights.shape[:3], len(order))[..., order]
            columns = np.ascontiguousarray(flat.transpose(0, 3, 2, 1)).reshape(
                self.problem.groups,
                len(self.taps) * self.problem.channels_out,
                self.problem.channels_in,
            )
            return {
                (g, 0): [_Product(nowhere, 0, matrix, False)] for g, matrix in enumerate(columns)
            }
        packed: dict[tuple[int, int], list[_Product]] = {}
        blocks = range(0, max(self.problem.channels_out, 1), self.block)
        for g, o in itertools.product(range(self.problem.groups), blocks):
            products: list[_Product] = []
            begun: set[int] = set()
            width = min(self.block, self.problem.channels_out - o)
            for shift, taps in sorted(by_shift.items()):
                for run in _runs(taps, index, begun):
                    rows = [
                        pick(self.weights, g, slice(None), slice(o, o + width), *tap.kernel).T
                        for tap in run
                    ]
                    products.append(
                        _Product(
                            shift,
                            index[run[0].phase] * width,
                            np.ascontiguousarray(np.concatenate(rows)),
                            index[run[0].phase] in begun,
                        )
                    )
                begun.update(index[tap.phase] for tap in taps)
            packed[g, o] = products
        return packed

    def run(self, data: Array, axes: tuple[AxisSpan, ...], scratch_bytes: int, out: Array) -> bool:
        """Compute into `out`; False, and nothing done, if scratch could not be kept in bounds."""
        with single_threaded() as alone:
            threads = get_threads() if alone else 1
            layout = self._lay_out(data, axes, scratch_bytes // threads, threads)
            if layout is None:
                return False
            fill_holes(self.taps, axes, self.bias, self.activation, out)
            grids = [range(a.first, a.last, size) for a, size in zip(axes, layout.box, strict=True)]
            images = range(0, data.shape[0], layout.images)
            if self.method is Method.TAPS:
                parts: list[tuple[int, int]] = [
                    (g, 0) for g in range(0, self.problem.groups, layout.groups)
                ]
            else:
                parts = list(self.products)
            jobs = list(itertools.product(parts, images, itertools.product(*grids)))

            def make() -> Any:
                tile = _Tile(self, layout, data, axes, out)

                def do(job: int) -> None:
                    # The error state belongs to a thread.
                    with np.errstate(all="ignore"):
                        (g, o), n, first = jobs[job]
                        tile.compute(g, o, n, first)

                return do

            run_jobs(make, len(jobs), threads)
        return True

    def _lay_out(
        self, data: Array, axes: tuple[AxisSpan, ...], scratch_bytes: int, threads: int
    ) -> _Layout | None:
        """Choose the tiles of one run; None if even the smallest is too large."""
        problem = self.problem
        reach = [a.reach for a in axes]
        whole = [a.last - a.first for a in axes]
        size = self.arithmetic.accumulator.itemsize
        taps = self.method is Method.TAPS
        columns = self.method is Method.COLUMNS
        rows = problem.channels_out if taps else self.block * len(self.phases)
        if columns:
            rows = problem.channels_out * (len(self.taps) + 1)

        def layout(images: int, groups: int, box: list[int]) -> _Layout:
            extent = tuple(b + r for b, r in zip(box, reach, strict=True))
            return _Layout(images, groups, tuple(box), extent)

        def sums(t: _Layout) -> int:
            return t.groups * t.positions * size * (2 if taps else rows)

        def total(t: _Layout) -> int:
            data_bytes = t.groups * problem.channels_in * t.positions * size
            products = self.method is Method.PRODUCTS
            assembly = sums(t) if len(self.phases) > _MANY_PHASES and products else 0
            # A write with a bias or an activation passes through a copy of a phase.
            return sums(t) + data_bytes + assembly + 2 * sums(t) // max(1, len(self.phases))

        box = [max(1, w) for w in whole]
        target = _DEPTHWISE_BYTES if taps else _COLUMNS_BYTES if columns else _SUMS_BYTES
        axis = 0
        while axis < len(box):
            t = layout(1, 1, box)
            if box[axis] > 1 and (sums(t) > target or total(t) > scratch_bytes):
                if math.prod(box) <= 256 and total(t) <= scratch_bytes:
                    break
                box[axis] = -(-box[axis] // 2)
            else:
                axis += 1
        images, groups = 1, 1
        if taps:
            while groups < problem.groups and sums(layout(1, 2 * groups, box)) <= target:
                groups *= 2
        elif box == [max(1, w) for w in whole]:
            # Small planes: several images make one product.
            while images < data.shape[0] and math.prod(box) * images < 512:
                grown = layout(2 * images, 1, box)
                if sums(grown) > 4 * target or total(grown) > scratch_bytes:
                    break
                images *= 2
        t = layout(images, groups, box)
        while self._jobs(data, axes, t) < 2 * threads and threads > 1:
            longest = max(range(len(box)), key=lambda i: box[i] if i == 0 else 0)
            if images > 1:
                images = -(-images // 2)
            elif box[longest] > 8 and math.prod(box) > 512:
                box[longest] = -(-box[longest] // 2)
            else:
                break
            t = layout(images, groups, box)
        return t if total(t) <= scratch_bytes else None

    def _jobs(self, data: Array, axes: tuple[AxisSpan, ...], t: _Layout) -> int:
        jobs: int = -(-data.shape[0] // t.images)
        jobs *= -(-self.problem.groups // t.groups) if t.groups > 1 else max(1, len(self.products))
        for a, size in zip(axes, t.box, strict=True):
            jobs *= -(-(a.last - a.first) // size)
        return jobs


class _Tile:
    """The scratch of one thread, and what it does for one tile."""

    def __init__(
        self,
        kernel: Phases,
        layout: _Layout,
        data: Array,
        axes: tuple[AxisSpan, ...],
        out: Array,
    ) -> None:
        self.kernel, self.layout, self.axes = kernel, layout, axes
        self.data, self.out = data, out
        self.reach = tuple(a.reach for a in axes)
        dtype = kernel.arithmetic.accumulator
        depth = layout.groups * kernel.problem.channels_in
        self.block = np.zeros((depth, layout.images, *layout.extent), dtype)
        self.flat = self.block.reshape(depth, layout.positions)
        # What every shift can read without leaving the block.
        self.length = layout.positions - layout.offset(self.reach)
        rows = 2 * layout.groups
        if kernel.method is Method.PRODUCTS:
            rows = len(kernel.phases) * kernel.block
        elif kernel.method is Method.COLUMNS:
            rows = (len(kernel.taps) + 1) * kernel.block
        self.sums = np.empty((rows, layout.positions), dtype)

    def compute(self, g: int, o: int, n: int, first: tuple[int, ...]) -> None:
        """Compute one tile: group(s) from g, channels from o, images from n, box at `first`."""
        kernel, problem = self.kernel, self.kernel.problem
        images = min(self.layout.images, self.data.shape[0] - n)
        groups = min(self.layout.groups, problem.groups - g)
        self._copy_data(g * problem.channels_in, groups * problem.channels_in, n, images, first)
        if kernel.method is Method.TAPS:
            self._sum_taps(g, groups, n, images, first)
            return
        if kernel.method is Method.COLUMNS:
            self._sum_columns(g, n, images, first)
            return
        for product in kernel.products[g, o]:
            steps = tuple(r - s for r, s in zip(self.reach, product.shift, strict=True))
            begin = self.layout.offset(steps)
            rows = slice(product.first_row, product.first_row + len(product.matrix))
            accumulate(
                product.matrix,
                self.flat[:, begin : begin + self.length],
                self.sums[rows, : self.length],
                add=product.add,
            )
        width = min(kernel.block, problem.channels_out - o)
        channels = slice(g * problem.channels_out + o, g * problem.channels_out + o + width)
        planes = self.sums[: len(kernel.phases) * width].reshape(
            len(kernel.phases), width, self.layout.images, *self.layout.extent
        )[:, :, :images]
        target = self.out[n : n + images, channels]
        dense = len(kernel.phases) == math.prod(problem.strides)
        if len(kernel.phases) > _MANY_PHASES and dense:
            self._write_assembled(planes, target, channels, first)
            return
        for phase, plane in zip(kernel.phases, planes, strict=True):
            self._write(phase, plane, target, channels, first)

    def _copy_data(
        self, channel: int, channels: int, n: int, images: int, first: tuple[int, ...]
    ) -> None:
        """Copy the data that a box sees, with zeros where there are none."""
        here: list[slice] = []
        there: list[slice] = []
        covered = images == self.layout.images
        for axis, begin, extent in zip(self.axes, first, self.layout.extent, strict=True):
            start = begin - axis.reach
            low, high = max(0, start), max(0, min(axis.data, start + extent))
            high = max(low, high)
            here.append(slice(low - start, high - start))
            there.append(slice(low, high))
            covered &= high - low == extent
        if not covered:
            self.block.fill(0)
        source = self.data[(slice(n, n + images), slice(channel, channel + channels), *there)]
        self.block[(slice(0, channels), slice(0, images), *here)] = source.swapaxes(0, 1)

    def _write(
        self,
        phase: tuple[int, ...],
        plane: Array,
        target: Array,
        channels: slice,
        first: tuple[int, ...],
    ) -> None:
        """Write one phase, ``[o, n, *u]``, to its places in ``[n, o, *y]``."""
        inside = [
            axis.outputs(p, begin, min(begin + size, axis.last))
            for axis, p, begin, size in zip(self.axes, phase, first, self.layout.box, strict=True)
        ]
        source = plane[(slice(None), slice(None), *(u for u, _ in inside))].swapaxes(0, 1)
        finish(
            source,
            self._bias(channels),
            self.kernel.activation,
            target[(slice(None), slice(None), *(y for _, y in inside))],
        )

    def _write_assembled(
        self, planes: Array, target: Array, channels: slice, first: tuple[int, ...]
    ) -> None:
        """Interleave many phases at once: ``[phase, o, n, *u]`` to ``[n, o, *y]``."""
        strides = self.kernel.problem.strides
        axes = len(strides)
        box = tuple(
            min(size, a.last - begin)
            for a, begin, size in zip(self.axes, first, self.layout.box, strict=True)
        )
        inner = pick(planes, ..., *(slice(0, b) for b in box))
        width, images = inner.shape[1:3]
        split = inner.reshape(*strides, width, images, *box)
        order = [axes + 1, axes]
        for i in range(axes):
            order += [axes + 2 + i, i]
        whole = np.ascontiguousarray(split.transpose(order)).reshape(
            images, width, *(b * s for b, s in zip(box, strides, strict=True))
        )
        here: list[slice] = []
        there: list[slice] = []
        for axis, begin, size in zip(self.axes, first, box, strict=True):
            start = begin * axis.stride - axis.pad_begin
            low, high = max(0, start), min(axis.output, start + size * axis.stride)
            high = max(low, high)
            here.append(slice(low - start, high - start))
            there.append(slice(low, high))
        finish(
            whole[(slice(None), slice(None), *here)],
            self._bias(channels),
            self.kernel.activation,
            target[(slice(None), slice(None), *there)],
        )

    def _bias(self, channels: slice) -> Array | None:
        bias = self.kernel.bias
        return None if bias is None else bias[channels].reshape(-1, *(1 for _ in self.axes))

    def _sum_columns(self, g: int, n: int, images: int, first: tuple[int, ...]) -> None:
        """Make the columns of all taps, and add those of each phase where they belong."""
        kernel, width = self.kernel, self.kernel.block
        (product,) = kernel.products[g, 0]
        count = len(kernel.taps)
        accumulate(product.matrix, self.flat, self.sums[: count * width], add=False)
        columns = self.sums[: count * width].reshape(count, width, -1)
        total = self.sums[count * width :]
        size = self.length
        channels = slice(g * width, (g + 1) * width)
        target = self.out[n : n + images, channels]
        shape = (width, self.layout.images, *self.layout.extent)
        numbered = zip(kernel.taps, columns, strict=True)
        for phase, members in itertools.groupby(numbered, key=lambda pair: pair[0].phase):
            terms = []
            for tap, column in members:
                steps = tuple(r - s for r, s in zip(self.reach, tap.shift, strict=True))
                begin = self.layout.offset(steps)
                terms.append(column[:, begin : begin + size])
            if len(terms) == 1:
                total[:, :size] = terms[0]
            else:
                np.add(terms[0], terms[1], out=total[:, :size])
                for term in terms[2:]:
                    np.add(total[:, :size], term, out=total[:, :size])
            self._write(phase, total.reshape(shape)[:, :images], target, channels, first)

    def _sum_taps(self, g: int, groups: int, n: int, images: int, first: tuple[int, ...]) -> None:
        """Sum each phase tap by tap, for all groups of the tile at once."""
        kernel, problem = self.kernel, self.kernel.problem
        size = self.length
        data = self.flat.reshape(self.layout.groups, problem.channels_in, -1)[:groups]
        total, term = self.sums[:groups, :size], self.sums[self.layout.groups :][:groups, :size]
        weights = kernel.weights[g : g + groups]
        for o in range(problem.channels_out):
            channels = slice(
                g * problem.channels_out + o,
                (g + groups - 1) * problem.channels_out + o + 1,
                problem.channels_out,
            )
            target = self.out[n : n + images, channels]
            for phase, taps in itertools.groupby(kernel.taps, key=lambda tap: tap.phase):
                begun = False
                for tap, i in itertools.product(taps, range(problem.channels_in)):
                    steps = tuple(r - s for r, s in zip(self.reach, tap.shift, strict=True))
                    begin = self.layout.offset(steps)
                    values = data[:, i, begin : begin + size]
                    weight = pick(weights, slice(None), i, o, *tap.kernel)[:, None]
                    np.multiply(values, weight, out=term if begun else total)
                    if begun:
                        np.add(total, term, out=total)
                    begun = True
                if not begun:
                    total[...] = 0
                plane = self.sums[:groups].reshape(groups, self.layout.images, *self.layout.extent)
                self._write(phase, plane[:, :images], target, channels, first)


def _runs(taps: list[Tap], index: dict[tuple[int, ...], int], begun: set[int]) -> list[list[Tap]]:
    """Cut the taps of a shift into runs of neighbouring phases that all begin, or all go on."""
    runs: list[list[Tap]] = []
    for tap in sorted(taps, key=lambda tap: index[tap.phase]):
        here = index[tap.phase]
        if runs:
            last = index[runs[-1][-1].phase]
            if here == last + 1 and (here in begun) == (last in begun):
                runs[-1].append(tap)
                continue
        runs.append([tap])
    return runs
