"""Filters in parts, so that packing one needs no other copy of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.lazy_tensor import Constant, rows_of
from deconv_ir.kernels.problem import Problem

# Elements of a part: computing them may need several f64 for each.
_MOST_ELEMENTS = 1 << 16


class FilterPart(NamedTuple):
    """The weights of some groups, inputs and outputs."""

    groups: slice
    ins: slice
    outs: slice
    weights: Array
    """``[groups, in, out, *K]``"""


def filter_parts(problem: Problem, weights: Constant) -> Iterator[FilterPart]:
    """Iterate over a filter: whole groups, or rows of one group.

    It is ``[groups * in, out, *K]``, or ``[groups * out, in, *K]`` for a convolution.
    """
    others = slice(0, weights.shape[1])
    rows = problem.channels_out if problem.forward else problem.channels_in
    at_once = max(1, _MOST_ELEMENTS // max(1, math.prod(weights.shape[1:])))
    groups_at_once = max(1, at_once // max(1, rows))
    for group in range(0, problem.groups, groups_at_once):
        groups = slice(group, min(group + groups_at_once, problem.groups))
        for first in range(0, rows, at_once):
            some = slice(first, min(first + at_once, rows))
            shape = (groups.stop - group, some.stop - first, *weights.shape[1:])
            begin = group * rows + first
            part = rows_of(weights, begin, begin + shape[0] * shape[1]).reshape(shape)
            if problem.forward:
                yield FilterPart(groups, others, some, part.swapaxes(1, 2))
            else:
                yield FilterPart(groups, some, others, part)


def packed_array(
    parts: Iterable[FilterPart], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """Return an array for a packed filter; without memory if there are no parts, ``()``."""
    return np.empty(shape, dtype) if parts else np.broadcast_to(np.zeros((), dtype), shape)


def parts_within(parts: Iterable[FilterPart], groups: slice, outs: slice) -> Iterator[FilterPart]:
    """Iterate over the parts of a filter that consists of these groups and outputs."""
    for part in parts:
        of_groups, of_outs = _common(part.groups, groups), _common(part.outs, outs)
        if of_groups.start < of_groups.stop and of_outs.start < of_outs.stop:
            chosen = _moved(of_groups, part.groups), slice(None), _moved(of_outs, part.outs)
            yield FilterPart(
                _moved(of_groups, groups), part.ins, _moved(of_outs, outs), part.weights[chosen]
            )


def _common(a: slice, b: slice) -> slice:
    return slice(max(a.start, b.start), min(a.stop, b.stop))


def _moved(a: slice, within: slice) -> slice:
    return slice(a.start - within.start, a.stop - within.start)
