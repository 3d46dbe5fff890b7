"""Filters of 8-bit codes, as kernels pack them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.quantized.codes import FOUR

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

# Distance of a weight from a code, in codes: the ends of ranges and the weights are rounded to f32.
_ROUNDING = 3e-5


def find_codes(problem: Problem, weights: Array, scales: Array) -> tuple[Array, Array] | None:
    """Return the codes of a filter, int8, and the scale of each output channel, f64.

    Returns None if they do not exist.  `scales` are those of each element.
    """
    of_channels = _one_by_channel(problem, scales)
    if of_channels is None or not (np.isfinite(of_channels) & (of_channels > 0)).all():
        return None
    codes = weights / scales
    rounded = np.rint(codes)
    if not (np.abs(codes - rounded) <= _ROUNDING).all() or np.abs(rounded + 0.5).max() > 128:
        return None
    return rounded.astype(np.int8), np.ascontiguousarray(of_channels, np.float64)


def _one_by_channel(problem: Problem, scales: Array) -> Array | None:
    """Return ``[groups * out]`` of the scales of a filter; None if a channel has several."""
    if problem.forward:
        rows = scales.reshape(len(scales), -1)
    else:
        grouped = scales.reshape(problem.groups, problem.channels_in, *scales.shape[1:])
        rows = np.moveaxis(grouped, 1, 2).reshape(problem.groups * problem.channels_out, -1)
    first: Array = rows[:, 0]
    return first if (rows == rows[:, :1]).all() else None


def groups_to_join(problem: Problem) -> int:
    """Return the number of groups whose inputs fill an element; 1: they do, or do not."""
    joins = FOUR // problem.channels_in if problem.channels_in in (1, 2) else 1
    return joins if problem.groups > 1 and problem.groups % joins == 0 else 1


def join_groups(problem: Problem, codes: Array, joins: int) -> Array:
    """Return the filter of groups that consist of several: zero between their channels."""
    if joins == 1:
        return codes
    inputs, outputs, kernel = problem.channels_in, problem.channels_out, codes.shape[2:]
    groups = problem.groups // joins
    sides = (outputs, inputs) if problem.forward else (inputs, outputs)
    apart = codes.reshape(groups, joins, *sides, *kernel)
    found = np.zeros((groups, joins, sides[0], joins, sides[1], *kernel), codes.dtype)
    for one in range(joins):
        found[:, one, :, one] = apart[:, one]
    return found.reshape(groups * joins * sides[0], joins * sides[1], *kernel)


def in_fours(problem: Problem, codes: Array) -> Array:
    """Return the filter with four codes of input channels in each element; missing ones are 0."""
    axis = 1 if problem.forward else 0
    grouped = codes if problem.forward else codes.reshape(problem.groups, -1, *codes.shape[1:])
    missing = -problem.channels_in % FOUR
    pads = [(0, 0)] * grouped.ndim
    pads[1] = (0, missing)
    padded = np.pad(grouped, pads)
    fours = padded.reshape(padded.shape[0], -1, FOUR, *padded.shape[2:])
    elements = np.ascontiguousarray(np.moveaxis(fours, 2, -1)).view(np.uint32)[..., 0]
    return elements if axis else elements.reshape(-1, *codes.shape[1:])


def sums_of_taps(problem: Problem, codes: Array) -> Array:
    """Return ``[groups * out, *K]``: the sum of each tap's codes."""
    if not problem.forward:
        grouped = codes.reshape(problem.groups, problem.channels_in, *codes.shape[1:])
        codes = np.moveaxis(grouped, 1, 2).reshape(-1, problem.channels_in, *codes.shape[2:])
    sums: Array = codes.sum(axis=1, dtype=np.float64)
    return sums
