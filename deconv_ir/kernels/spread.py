"""Transposed convolutions whose stride is far beyond their kernel: mostly gaps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.problem import Problem

__all__ = ["MOST_PHASES", "Spread"]

Array = np.ndarray[Any, np.dtype[Any]]

MOST_PHASES = 1 << 16
"""Phases of all axes from which on tables of them would be larger than the work."""

Compute = Callable[[Array, tuple[int, ...], tuple[int, ...]], Array]


class Spread(NamedTuple):
    """How a layer is computed by one without gaps, whose results are spread.

    Along an axis with s >= d*(K - 1) + 1 no two taps meet: output s*x + d*k is a product of
    data x and tap k.  A layer of stride K and dilation 1 makes the same products, at K*x + k.

    Attributes
    ----------
    problem : Problem
        The layer in question.
    spread : tuple of bool
        The axes that have gaps.
    """

    problem: Problem
    spread: tuple[bool, ...]

    @classmethod
    def of(cls, problem: Problem) -> Spread | None:
        """Return how to compute a layer of too many phases; None where it has not, or cannot."""
        if math.prod(problem.strides) <= MOST_PHASES:
            return None
        found = cls(
            problem,
            tuple(
                s >= d * (k - 1) + 1 and s > k
                for s, d, k in zip(problem.strides, problem.dilations, problem.kernel, strict=True)
            ),
        )
        return found if math.prod(found.strides) <= MOST_PHASES else None

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of the layer without gaps."""
        return self._either(self.problem.kernel, self.problem.strides)

    @property
    def dilations(self) -> tuple[int, ...]:
        """Dilations of the layer without gaps."""
        return self._either((1,) * self.problem.axes, self.problem.dilations)

    def _either(self, spread: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
        return tuple(
            a if gaps else b for gaps, a, b in zip(self.spread, spread, other, strict=True)
        )

    def run(self, compute: Compute, data: Array, pads: tuple[int, ...], out: Array) -> None:
        """Compute into `out` by `compute(data, pads_begin, output)` of the other layer."""
        extents, axes = out.shape[2:], self.problem.axes
        # In the gaps, the bias, activated: what no data come to.
        nothing = data[(slice(None), slice(None), *(slice(0),) * axes)]
        out[...] = compute(nothing, (0,) * axes, (1,) * axes)
        cut: list[slice] = [slice(None), slice(None)]
        inner_pads, inner, moves = [], [], []
        for axis, gaps in enumerate(self.spread):
            stride, reach = self.problem.strides[axis], self._reach(axis)
            if not gaps:
                cut.append(slice(None))
                inner_pads.append(pads[axis])
                inner.append(extents[axis])
                moves.append([(slice(None), slice(None))])
                continue
            # Data whose products are in the output: y = stride*x + dilation*k - pad.
            first = max(0, -((reach - pads[axis]) // stride))
            last = min(data.shape[axis + 2], (pads[axis] + extents[axis] - 1) // stride + 1)
            if first >= last:
                return
            cut.append(slice(first, last))
            inner_pads.append(0)
            inner.append((last - first) * self.problem.kernel[axis])
            moves.append(self._moves(axis, first, last, pads[axis], extents[axis]))
        products = compute(data[tuple(cut)], tuple(inner_pads), tuple(inner))
        for combination in itertools.product(*moves):
            to, from_ = zip(*combination, strict=True)
            out[(..., *to)] = products[(..., *from_)]

    def _reach(self, axis: int) -> int:
        return self.problem.dilations[axis] * (self.problem.kernel[axis] - 1)

    def _moves(
        self, axis: int, first: int, last: int, pad: int, extent: int
    ) -> list[tuple[slice, slice]]:
        """Return, for each tap, where its products of data `first` to `last` go."""
        stride, kernel = self.problem.strides[axis], self.problem.kernel[axis]
        moves = []
        for tap in range(kernel):
            shift = self.problem.dilations[axis] * tap - pad
            begin = max(first, -(shift // stride))
            end = min(last, (extent - 1 - shift) // stride + 1)
            if begin < end:
                at = stride * begin + shift
                to = slice(at, stride * (end - 1) + shift + 1, stride)
                moves.append(
                    (to, slice(kernel * (begin - first) + tap, kernel * (end - first), kernel))
                )
        return moves
