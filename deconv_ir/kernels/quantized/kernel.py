"""A convolution whose data and filter are codes: the filter, packed."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.ir.lazy_tensor import Constant, LazyTensor, mapped
from deconv_ir.ir.quantization import FOUR, CodeLayout, Levels, WeightLevels
from deconv_ir.ir.scratchpad import UNLIMITED, ScratchpadBudget
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import NATIVE, Algorithm, preferred_algorithm
from deconv_ir.kernels.native import CompiledKernel, supports
from deconv_ir.kernels.plan import ConvolutionKernel, ConvolutionPlan, RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.quantized.codes import quantize
from deconv_ir.kernels.quantized.filter import (
    NO_CODES,
    NOT_EXACT,
    SEVERAL_RANGES,
    FilterElements,
    NoCodesError,
    add_taps,
    element_of_sums,
    filter_scalings,
    find_codes,
    groups_to_join,
    join_groups,
    levels_of_bytes,
    signed_bytes,
    whole_deltas,
    why_too_long,
)
from deconv_ir.kernels.quantized.plan import BYTES_OF_CHANNEL, PlannedCodes, QuantizedPlan
from deconv_ir.kernels.runtime.cpu import has_dots
from deconv_ir.kernels.runtime.extension import compiled_module

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


def quantize_filter(
    weights: Constant,
    weight_levels: WeightLevels,
    levels: Levels,
    *,
    forward: bool,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    bias: Array | None,
    activation: Activation | None,
    adds: bool,
    scratch_bytes: int,
) -> QuantizedKernel | str | None:
    """Pack the codes of a filter; a string says why this is not possible.

    Parameters
    ----------
    weights : ndarray or LazyTensor
        The filter; layouts and others as in `pack_filter`.
    weight_levels : WeightLevels
        Of its elements, broadcast.
    levels : Levels
        Of the data.
    """
    problem = Problem.of_filter(weights.shape, strides, dilations, groups, forward=forward)
    reason = _why_unsuited(problem, levels)
    if not weights.size or reason is not None:
        return reason
    reason = NO_CODES
    for scaling in filter_scalings(problem, weight_levels):
        try:
            return QuantizedKernel(
                problem,
                find_codes(problem, weights, scaling),
                scaling.scales,
                levels,
                bias,
                activation or Activation(),
                deltas=scaling.deltas,
                adds=adds,
                scratch_bytes=scratch_bytes,
            )
        except NoCodesError:
            reason = NO_CODES if weight_levels.rounded else NOT_EXACT
    return reason


def pack_integers(
    weights: Array,
    data: tuple[float, int],
    scales: Callable[[int], Array],
    bias: Array | None,
    activation: Activation,
    *,
    signed: bool,
    adds: bool,
    forward: bool,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    scratch_bytes: int,
) -> QuantizedKernel | None:
    """Pack a filter of integers for data of 8 bits, from which a zero point is subtracted.

    Returns None if it is not suited, such as one with weights of an output channel that are more
    than 255 apart, or without a compiled kernel.

    Parameters
    ----------
    weights : ndarray
        Layouts and others as in `pack_filter`.
    data : tuple
        Scale and zero point of the data.
    scales : callable
        Returns the scales of products, for a number of output channels: of each, or one.
    """
    problem = Problem.of_filter(weights.shape, strides, dilations, groups, forward=forward)
    channels = problem.groups * problem.channels_out
    factors = np.broadcast_to(scales(channels), channels)
    levels = levels_of_bytes(data, factors, signed=signed)
    if not weights.size or levels is None or _why_unsuited(problem, levels) is not None:
        return None
    sides = (problem.channels_out, problem.channels_in)
    grouped = weights.reshape(problem.groups, *(sides if forward else sides[::-1]), -1)
    found = signed_bytes(grouped, (2, 3) if forward else (1, 3))
    if found is None:
        return None
    codes, deltas = found
    made = QuantizedKernel(
        problem,
        codes.reshape(weights.shape),
        factors / data[0],
        levels,
        bias,
        activation,
        deltas=deltas.reshape(-1),
        adds=adds,
        scratch_bytes=scratch_bytes,
    )
    return made if made.uses_dots else None


def code_bytes(
    groups: int, channels_in: int, channels_out: int, kernel: tuple[int, ...]
) -> tuple[int, int]:
    """Return the bytes of a packed filter of codes, and those that packing it needs as well."""
    ones = (1,) * len(kernel)
    problem = Problem(groups, channels_in, channels_out, kernel, ones, ones)
    taps = math.prod(kernel)
    sums = 8 * groups * channels_out * taps
    if not _uses_dots(problem):
        terms = channels_in * taps
        return groups * channels_out * terms * element_of_sums(terms).itemsize, sums
    joined = _joined(problem, groups_to_join(problem))
    of_code = 1 if has_dots() else 2
    rows = joined.groups * taps * -(-joined.channels_in // FOUR) * FOUR * of_code
    # Sums with zero points have a kernel of their own, for one channel of each group.
    return rows * joined.channels_out, sums + rows * joined.channels_out // max(1, channels_out)


def _uses_dots(problem: Problem) -> bool:
    """Whether a compiled kernel sums products of codes."""
    return (
        compiled_module() is not None
        and preferred_algorithm() in NATIVE
        and supports(problem, np.dtype(np.uint32))
    )


def _why_unsuited(problem: Problem, levels: Levels) -> str | None:
    """Return why sums of a problem are not computed in integers; None: they can be."""
    reason = why_too_long(problem.channels_in * problem.taps)
    if reason is not None:
        return reason
    if problem.groups > 1 and problem.channels_in * groups_to_join(problem) < FOUR - 1:
        return "its groups have few channels, which would leave most of a vector empty"
    own = len(levels.low) == problem.groups == problem.channels_in * problem.groups
    return None if levels.is_single or own else SEVERAL_RANGES


class QuantizedKernel(PlannedCodes):
    """A filter of 8-bit codes, for data that are quantised when they are read.

    Parameters
    ----------
    problem : Problem
        The convolution; at most `MOST_TERMS` products are summed.
    codes : ndarray or LazyTensor
        The filter's codes, ``[groups * in, out, *K]``, or ``[groups * out, in, *K]`` of a
        convolution; int8.
    scales : ndarray
        ``[groups * out]``, f64: a weight is its code times the scale of its channel.
    deltas : ndarray or None
        ``[groups * out]``, f64: numbers that are added to the codes of a channel.
    levels : Levels
        Of the data.
    bias : ndarray or None
        ``[groups * out]``.
    activation : Activation
        Applied to results, rounded to f32.
    adds : bool
        Whether every run adds another tensor, before the activation.
    scratch_bytes : int
        Bound on the scratchpad of a run.
    """

    layout = CodeLayout.FOURS

    def __init__(
        self,
        problem: Problem,
        codes: Constant,
        scales: Array,
        levels: Levels,
        bias: Array | None,
        activation: Activation,
        *,
        deltas: Array | None = None,
        adds: bool,
        scratch_bytes: int,
    ) -> None:
        super().__init__(problem, np.dtype(np.float32), scratch_bytes, adds=adds)
        self.levels, self.activation = levels, activation
        self.writes = None
        channels = problem.groups * problem.channels_out
        # Levels of each channel are those of a group's only input.
        of_outputs = channels // len(levels.low)
        self.scales = scales * np.repeat(levels.steps, of_outputs)
        self.bias = np.zeros(channels) if bias is None else bias.astype(np.float64)
        self.uses_dots = _uses_dots(problem)
        # The problem of sums: small groups are joined, so that four channels are of one.
        joins = groups_to_join(problem) if self.uses_dots else 1
        self.joined = _joined(problem, joins)
        of_taps = np.zeros((channels, *problem.kernel))
        self.sums = self._sums_of(problem, codes, joins, preferred_algorithm(), of_taps)
        self.windows = None
        self.window_wholes, self.window_scales = np.zeros(channels), np.zeros(channels)
        if deltas is not None and deltas.any():
            alone = problem._replace(channels_out=1)
            sides = (1, problem.channels_in) if problem.forward else (problem.channels_in, 1)
            shape = (problem.groups * sides[0], sides[1], *problem.kernel)
            ones = LazyTensor(
                shape, np.dtype(np.int8), lambda start, stop: np.ones(stop - start, np.int8)
            )
            self.windows = self._sums_of(alone, ones, joins, Algorithm.DIRECT, None)
            self.window_wholes = whole_deltas(deltas, problem.channels_in * problem.taps)
            self.window_scales = self.scales * (deltas - self.window_wholes)
            of_taps += problem.channels_in * deltas[(..., *(None,) * problem.axes)]
        # Data at level 0 are `output_low`, not 0: each tap within the data adds its part.
        self.parts = None
        if any(levels.output_low):
            ends = scales * np.repeat(levels.output_low, of_outputs)
            of_taps *= ends[(..., *(None,) * problem.axes)]
            self.parts = of_taps

    def _sums_of(
        self,
        problem: Problem,
        codes: Constant,
        joins: int,
        algorithm: Algorithm,
        of_taps: Array | None,
    ) -> ConvolutionKernel:
        """Return the kernel that sums products with a filter.

        Sums of the codes of each tap are added to `of_taps`, ``[groups * out, *K]``.
        """
        if self.uses_dots:
            codes = join_groups(problem, codes, joins)
            problem = _joined(problem, joins)
            filter_ = FilterElements(problem, codes, of_taps, extends=not has_dots())
            kernel = CompiledKernel(
                problem._replace(channels_in=filter_.of_group),
                # Codes in a file can be read again.
                filter_.elements if isinstance(codes, LazyTensor) else filter_.elements.whole(),
                None,
                Activation(),
                # Budgets bound it: no other kernel could sum codes.
                scratch_bytes=UNLIMITED.scratch_bytes,
                algorithm=algorithm,
                dots=True,
            )
            filter_.sums = None  # a kernel that reads codes again keeps `filter_`
            return kernel
        from deconv_ir.kernels.numpy.kernel import NumpyKernel

        if of_taps is not None:
            add_taps(problem, codes, of_taps)
        element = element_of_sums(problem.channels_in * problem.taps)
        return NumpyKernel(
            problem,
            mapped(codes, lambda part: part.astype(element), element),
            None,
            Activation(),
            adds=False,
            scratch_bytes=self.scratch_bytes,
        )

    @property
    def can_read_codes(self) -> bool:
        """Whether the data can be codes: four channels in an element belong to one group."""
        return self.uses_dots and self._are_whole

    @property
    def can_write_codes(self) -> bool:
        """Whether results can become codes: not NaN, nor elements of two groups."""
        apart = self.joined.groups == 1 or self.joined.channels_out % FOUR == 0
        return self.uses_dots and apart and bool(np.isfinite(self.bias).all())

    @property
    def _are_whole(self) -> bool:
        """Whether four channels in an element belong to one group."""
        return self.joined.groups == 1 or self.joined.channels_in % FOUR == 0

    def coded(self, *, reads: bool, writes: Levels | None) -> QuantizedKernel:
        """Return the kernel for data that are codes, or for results quantised to codes."""
        found = copy.copy(self)
        found.reads_codes, found.writes = reads, writes
        return found

    @property
    def algorithm(self) -> Algorithm:
        return self.sums.algorithm

    @property
    def packed_bytes(self) -> int:
        parts = 0 if self.parts is None else self.parts.nbytes
        own = int(self.scales.nbytes + self.bias.nbytes)
        own += BYTES_OF_CHANNEL * len(self.scales) * self.uses_dots
        windows = 0 if self.windows is None else self.windows.packed_bytes
        return self.sums.packed_bytes + windows + own + parts

    @property
    def adds_in_cache(self) -> bool:
        return True

    def release(self) -> None:
        self.sums.release()
        if self.windows is not None:
            self.windows.release()

    def plan_shapes(self, shapes: RunShapes, budget: ScratchpadBudget) -> ConvolutionPlan:
        return QuantizedPlan(self, shapes, budget)

    def codes_shape(self, data: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the codes of data."""
        if not self.uses_dots:
            return data
        problem = self.joined
        return (data[0], problem.groups * -(-problem.channels_in // FOUR), *data[2:])

    def quantize(self, data: Array, codes: Array) -> None:
        """Write the codes of data."""
        quantize(data, codes, self.levels, 1 if self._are_whole else self.joined.groups)


def _joined(problem: Problem, joins: int) -> Problem:
    """Return the problem of groups that consist of several."""
    return problem._replace(
        groups=problem.groups // joins,
        channels_in=problem.channels_in * joins,
        channels_out=problem.channels_out * joins,
    )
