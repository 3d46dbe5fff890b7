"""A convolution whose data and filter are codes: the filter, packed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.ir.lazy_tensor import Constant, LazyTensor, whole
from deconv_ir.ir.quantization import FOUR, Levels
from deconv_ir.ir.scratchpad import UNLIMITED, ScratchpadBudget
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import NATIVE, Algorithm, preferred_algorithm
from deconv_ir.kernels.native import CompiledKernel, supports
from deconv_ir.kernels.plan import ConvolutionPlan, RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.quantized.codes import quantize
from deconv_ir.kernels.quantized.filter import (
    NO_CODES,
    SEVERAL_RANGES,
    FilterElements,
    NoCodesError,
    element_of_sums,
    find_codes,
    groups_to_join,
    join_groups,
    sums_of_taps,
    why_too_long,
)
from deconv_ir.kernels.quantized.plan import PlannedCodes, QuantizedPlan
from deconv_ir.kernels.runtime.cpu import has_dots
from deconv_ir.kernels.runtime.extension import compiled_module

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


def quantize_filter(
    weights: Constant,
    scales: Array,
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
    scales : ndarray
        The scale of each of its elements, broadcast.
    levels : Levels
        Of the data.
    """
    problem = Problem.of_filter(weights.shape, strides, dilations, groups, forward=forward)
    reason = _why_unsuited(problem, levels)
    if not weights.size or reason is not None:
        return reason
    try:
        found = find_codes(problem, weights, scales)
        if found is None:
            return NO_CODES
        return QuantizedKernel(
            problem,
            *found,
            levels,
            bias,
            activation or Activation(),
            adds=adds,
            scratch_bytes=scratch_bytes,
        )
    except NoCodesError:
        return NO_CODES


def pack_integers(
    codes: Array,
    zero_point: int,
    *,
    signed: bool,
    forward: bool,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    scratch_bytes: int,
) -> QuantizedKernel | None:
    """Pack a filter of int8 for data of 8 bits, from which a zero point is subtracted.

    Its plans compute `exact_sums`.  Returns None if it is not suited, or without a compiled kernel.
    Layouts are as in `pack_filter`.
    """
    low, high = (-128.0, 127.0) if signed else (0.0, 255.0)
    levels = Levels(256, (low,), (high,), (low - zero_point,), (high - zero_point,))
    problem = Problem.of_filter(codes.shape, strides, dilations, groups, forward=forward)
    if not codes.size or _why_unsuited(problem, levels) is not None:
        return None
    ones = np.ones(problem.groups * problem.channels_out)
    made = QuantizedKernel(
        problem, codes, ones, levels, None, Activation(), adds=False, scratch_bytes=scratch_bytes
    )
    return made if made.uses_dots else None


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

    def __init__(
        self,
        problem: Problem,
        codes: Constant,
        scales: Array,
        levels: Levels,
        bias: Array | None,
        activation: Activation,
        *,
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
        module = compiled_module()
        self.uses_dots = (
            module is not None
            and preferred_algorithm() in NATIVE
            and supports(problem, np.dtype(np.uint32))
        )
        # The problem of sums: small groups are joined, so that four channels are of one.
        self.joined = problem
        if self.uses_dots:
            joins = groups_to_join(problem)
            if joins > 1:
                codes = join_groups(problem, whole(codes), joins)
            self.joined = problem = problem._replace(
                groups=problem.groups // joins,
                channels_in=problem.channels_in * joins,
                channels_out=problem.channels_out * joins,
            )
            filter_ = FilterElements(problem, codes, extends=not has_dots())
            self.sums = CompiledKernel(
                problem._replace(channels_in=filter_.of_group),
                # Codes in a file can be read again.
                filter_.elements if isinstance(codes, LazyTensor) else filter_.elements.whole(),
                None,
                Activation(),
                # Budgets bound it: no other kernel could sum codes.
                scratch_bytes=UNLIMITED.scratch_bytes,
                algorithm=preferred_algorithm(),
                fold=1,
                dots=True,
            )
            sums = filter_.sums
        else:
            from deconv_ir.kernels.numpy.kernel import NumpyKernel

            codes = whole(codes)
            terms = problem.channels_in * problem.taps
            self.sums = NumpyKernel(
                problem,
                codes.astype(element_of_sums(terms)),
                None,
                Activation(),
                adds=False,
                scratch_bytes=scratch_bytes,
            )
            sums = sums_of_taps(problem, codes)
        # Data at level 0 are `output_low`, not 0: each tap within the data adds its part.
        self.parts = None
        if any(levels.output_low):
            ends = scales * np.repeat(levels.output_low, of_outputs)
            self.parts = sums * ends[(..., *(None,) * problem.axes)]

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
        return self.sums.packed_bytes + own + parts

    @property
    def adds_in_cache(self) -> bool:
        return True

    def release(self) -> None:
        self.sums.release()

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
