"""Transposed convolution in NumPy: matrix products for phases, which are interleaved.

Outputs with the same remainder modulo the stride, a *phase*, see the same
taps.  Each phase is summed contiguously and written once, with a stride.  How
it is summed is chosen by a model of the costs: `Windows`, `Columns`, `Minimal`,
`Rows` or `Taps`.  Data are seen with zeros around them; hence weights must be finite.
"""

from __future__ import annotations

import enum
import functools
import math
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels import columns, minimal, rows, taps, windows
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.arithmetic import Arithmetic
from deconv_ir.kernels.blas import single_threaded
from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.by_set import BySet
from deconv_ir.kernels.col2im import fill_holes
from deconv_ir.kernels.columns import Columns, ColumnsInPlace
from deconv_ir.kernels.costs import Cost
from deconv_ir.kernels.layout import choose_tile, cut
from deconv_ir.kernels.minimal import LARGEST, Minimal
from deconv_ir.kernels.problem import AxisSpan, PhaseSet, Problem, phase_sets
from deconv_ir.kernels.rows import Rows
from deconv_ir.kernels.runtime.parallel import run_jobs
from deconv_ir.kernels.runtime.threads import get_threads
from deconv_ir.kernels.taps import Taps
from deconv_ir.kernels.windows import Windows
from deconv_ir.kernels.writer import Writer

__all__ = ["Method", "Phases", "Plan", "choose_plan", "estimate"]

Array = np.ndarray[Any, np.dtype[Any]]

# Positions of a plane; on larger ones the edges do not count.
_SMALL_PLANE = 1024


class Method(enum.Enum):
    """How phases are summed.

    Phases that are summed together share the data they see; those that are
    summed apart need only the positions at which the output sees each of them.
    """

    WINDOWS = "windows"
    WINDOWS_APART = "windows apart"
    COLUMNS = "columns"
    COLUMNS_IN_PLACE = "columns in place"
    MINIMAL = "minimal"
    MINIMAL_APART = "minimal apart"
    TAPS = "taps"
    ROWS = "rows"

    @property
    def minimal(self) -> bool:
        """Whether this is minimal filtering, which takes moderate values only."""
        return self in (Method.MINIMAL, Method.MINIMAL_APART)

    @property
    def apart(self) -> bool:
        """Whether every phase is summed by itself."""
        return self in (Method.WINDOWS_APART, Method.MINIMAL_APART)


def estimate(problem: Problem, method: Method, box: Box) -> Cost | None:
    """Estimate what a tile takes; None if the method does not fit the problem."""
    if method is Method.COLUMNS:
        return columns.cost(problem, box)
    if method is Method.COLUMNS_IN_PLACE:
        return columns.cost_in_place(problem, box)
    if method.minimal:
        return minimal.cost(problem, _sets(problem, method), box)
    if method is Method.TAPS:
        return taps.cost(problem, _sets(problem, method), box)
    if method is Method.ROWS:
        return rows.cost(problem, _sets(problem, method), box)
    return windows.cost(problem, _sets(problem, method), box)


@functools.lru_cache(maxsize=256)
def _sets(problem: Problem, method: Method) -> list[PhaseSet]:
    return phase_sets(problem, single=method.apart)


class Plan(NamedTuple):
    """How one run is done.

    Attributes
    ----------
    method : Method
        How phases are summed.
    tiles : tuple of Box
        What is computed at a time.
    elements : int
        Scratch of the method for one tile.
    nanoseconds : float
        What all of it should take.
    """

    method: Method
    tiles: tuple[Box, ...]
    elements: int
    nanoseconds: float


def choose_plan(
    problem: Problem,
    images: int,
    axes: tuple[AxisSpan, ...],
    threads: int,
    bound: int,
    converts: bool = False,
    *,
    moderate: bool = True,
    in_place: bool = True,
) -> Plan | None:
    """Choose method and tiles by the model of costs.

    Parameters
    ----------
    problem : Problem
        What is computed.
    images, axes
        Extents of the run.
    threads : int
        Threads among which tiles are shared out.
    bound : int
        Elements of scratch that a thread may use.
    converts : bool
        Whether data are converted.
    moderate : bool
        Whether minimal filtering is allowed.
    in_place : bool
        Whether products can read the data where they lie.

    Returns
    -------
    Plan or None
        None if nothing fits into the bound.
    """
    best: Plan | None = None
    # Apart they save the edges that the output does not see of some phases.
    small = math.prod(a.last - a.first for a in axes) <= _SMALL_PLANE
    apart = small and any(a.pad_begin % a.stride for a in axes)
    for method in Method:
        if (method.minimal and not moderate) or (method.apart and not apart):
            continue
        if method is Method.COLUMNS_IN_PLACE and not in_place:
            continue

        def cost(box: Box, method: Method = method) -> Cost | None:
            found = estimate(problem, method, box)
            return found and Cost(found.elements + _beside(problem, box, converts), found.time)

        chosen = choose_tile(problem, images, axes, cost, bound, threads)
        if chosen is not None and (best is None or chosen[1] < best.nanoseconds):
            tile, nanoseconds = chosen
            found = estimate(problem, method, tile)
            assert found is not None
            best = Plan(method, cut(problem, images, tile), found.elements, nanoseconds)
    return best


def _beside(problem: Problem, box: Box, converts: bool) -> int:
    """Return the elements in use beside those of the method: converted data, activations."""
    converted = 0
    if converts:
        near = math.prod(s + a.reach for s, a in zip(box.size, box.axes, strict=True))
        converted = box.groups * problem.channels_in * box.images * near
    return converted + 3 * box.groups * box.block * box.positions


class Phases:
    """A transposed convolution packed for phases.

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
        shape = (problem.groups, problem.channels_in, problem.channels_out, *problem.kernel)
        self.weights = weights.reshape(shape)
        self.moderate = arithmetic.element == np.float32 and _moderate(weights)
        self._packed: dict[Method, BySet | Columns] = {}
        self._plan = functools.lru_cache(maxsize=16)(choose_plan)

    def _pack(self, method: Method) -> BySet | Columns:
        """Return the filter packed for a method."""
        if method not in self._packed:
            weights = self.weights.astype(self.arithmetic.operand, copy=False)
            sets = _sets(self.problem, method)
            if method is Method.COLUMNS:
                self._packed[method] = Columns(self.problem, weights)
            elif method is Method.COLUMNS_IN_PLACE:
                self._packed[method] = ColumnsInPlace(self.problem, weights)
            else:
                self._packed[method] = _BY_SET[method](self.problem, weights, sets)
        return self._packed[method]

    def run(self, data: Array, axes: tuple[AxisSpan, ...], scratch_bytes: int, out: Array) -> bool:
        """Compute into `out`; False, and nothing done, if scratch could not be kept in bounds."""
        problem, dtype = self.problem, self.arithmetic.accumulator
        with single_threaded() as alone:
            threads = get_threads() if alone else 1
            plan = functools.partial(
                self._plan,
                problem,
                len(data),
                axes,
                threads,
                scratch_bytes // threads // dtype.itemsize,
                self.arithmetic.converts,
                in_place=data.flags.c_contiguous and not self.arithmetic.converts,
            )
            chosen = plan(moderate=self.moderate)
            if chosen is not None and chosen.method.minimal and not _moderate(data):
                chosen = plan(moderate=False)
            if chosen is None:
                return False
            method, tiles, elements, _ = chosen
            packed = self._pack(method)
            fill_holes(problem, axes, self.bias, self.activation, out)
            writer = Writer(out, axes, problem.channels_out, self.bias, self.activation)

            def make() -> Any:
                scratch = Scratch(elements, dtype)

                def do(job: int) -> None:
                    box = tiles[job]
                    source = Source(data, box, problem.channels_in, dtype)
                    packed.compute(box, source, writer, scratch)

                return do

            run_jobs(make, len(tiles), threads)
        return True


_BY_SET: dict[Method, type[BySet]] = {
    Method.WINDOWS: Windows,
    Method.WINDOWS_APART: Windows,
    Method.MINIMAL: Minimal,
    Method.MINIMAL_APART: Minimal,
    Method.TAPS: Taps,
    Method.ROWS: Rows,
}


def _moderate(values: Array) -> bool:
    """Whether minimal filtering can take these values: no infinity, no NaN, none too large."""
    if not values.size:
        return True
    return bool(values.min() >= -LARGEST) and bool(values.max() <= LARGEST)
