"""Convolution on the BLAS: windows of the data make columns, a matrix product sums them.

This is what a machine without the compiled kernel computes convolutions with;
the compiled kernel has them from the same machinery as the transposed ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.arithmetic import Arithmetic
from deconv_ir.kernels.col2im import finish
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.tiling import TileCost, boxes, choose_tiling

__all__ = ["Im2col"]

Array = np.ndarray[Any, np.dtype[Any]]


class Im2col:
    """A convolution packed for columns.

    Parameters
    ----------
    problem : Problem
        What is computed.
    arithmetic : Arithmetic
        How elements are multiplied and summed.
    weights : ndarray
        ``[groups * out, in, *K]``.
    bias : ndarray or None
        ``[groups * out]``.
    activation : Activation
        Applied before rounding; to integers once they have been truncated.
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
        shape = (problem.groups, problem.channels_out, problem.channels_in, problem.taps)
        by_tap = weights.reshape(shape).transpose(0, 3, 1, 2)
        # [limb, g, tap, o, i]
        self.packed = arithmetic.operands(np.ascontiguousarray(by_tap))

    def run(
        self,
        data: Array,
        pads_begin: Sequence[int],
        scratch_bytes: int,
        out: Array,
    ) -> None:
        """Compute into `out`."""
        problem, arithmetic = self.problem, self.arithmetic
        size = arithmetic.accumulator.itemsize
        output = out.shape[2:]
        tiling = choose_tiling(
            cost=TileCost(
                0,
                2 * size + arithmetic.product_bytes,
                3 * data.itemsize + arithmetic.limbs * arithmetic.operand.itemsize,
            ),
            data=output,
            reach=(0,) * problem.axes,
            channels=problem.channels_out,
            box=output,
            taps=1,
            depth=problem.channels_in,
            scratch_bytes=scratch_bytes,
        )
        grid = list(boxes((0,) * problem.axes, output, tiling.box))
        channels = range(0, problem.channels_out, tiling.channels)
        for n, g in itertools.product(range(data.shape[0]), range(problem.groups)):
            for box, o in itertools.product(grid, channels):
                last = min(o + tiling.channels, problem.channels_out)
                self._run_tile(data[n], g, slice(o, last), box, pads_begin, tiling.depth, out[n])

    def _run_tile(
        self,
        data: Array,
        g: int,
        channels: slice,
        box: tuple[tuple[int, int], ...],
        pads_begin: Sequence[int],
        depth: int,
        out: Array,
    ) -> None:
        """Sum all taps of one box; positions that a tap finds outside of the data add nothing."""
        problem, arithmetic = self.problem, self.arithmetic
        count = channels.stop - channels.start
        sums = np.zeros((count, *(high - low for low, high in box)), arithmetic.accumulator)
        for tap, k in enumerate(np.ndindex(*problem.kernel)):
            here: list[slice] = []
            there: list[slice] = []
            for axis, (low, high) in enumerate(box):
                stride = problem.strides[axis]
                at = problem.dilations[axis] * k[axis] - pads_begin[axis]
                # The y of the box with 0 <= stride*y + at < X.
                first = max(low, -(at // stride))
                last = min(high, (data.shape[axis + 1] - 1 - at) // stride + 1)
                last = max(first, last)
                here.append(slice(first - low, last - low))
                begin = first * stride + at
                there.append(slice(begin, begin + (last - first - 1) * stride + 1, stride))
            extents = [s.stop - s.start for s in here]
            if 0 in extents:
                continue
            target = sums[(slice(None), *here)]
            for i in range(0, problem.channels_in, depth):
                stop = min(i + depth, problem.channels_in)
                source = data[g * problem.channels_in + i : g * problem.channels_in + stop]
                window = np.ascontiguousarray(source[(slice(None), *there)])
                operands = arithmetic.operands(window.reshape(stop - i, math.prod(extents)))
                part = np.empty((count, math.prod(extents)), arithmetic.accumulator)
                arithmetic.multiply(self.packed[:, g, tap, channels, i:stop], operands, part)
                target += part.reshape(count, *extents)
        rows = slice(
            g * problem.channels_out + channels.start, g * problem.channels_out + channels.stop
        )
        bias = None if self.bias is None else self.bias[rows].reshape(-1, *(1 for _ in box))
        place = out[(rows, *(slice(low, high) for low, high in box))]
        finish(sums, bias, self.activation, place)
