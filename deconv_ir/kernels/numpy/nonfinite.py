"""Outputs of non-finite weights, for a kernel that does not support them."""

from __future__ import annotations

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.numpy.method import grouped, pack
from deconv_ir.kernels.problem import Problem


def finite_part(weights: Array) -> Array:
    """Return the weights with infinities and NaN replaced by zeros."""
    return np.where(np.isfinite(weights), weights, weights.dtype.type(0))


class NonFiniteOutputs:
    """The output channels that depend on an infinite weight or NaN.

    A kernel that multiplies the zeros around the data computes the layer with
    `finite_part`; then these channels, usually few, are computed again by a kernel that multiplies
    only data.  Arguments are those of `pack`.
    """

    def __init__(
        self, problem: Problem, weights: Array, bias: Array | None, activation: Activation
    ) -> None:
        by_group = grouped(problem, weights)
        others = (1, *range(3, by_group.ndim))
        found = np.nonzero(~np.isfinite(by_group).all(axis=others))
        # The smallest box of groups and channels that contains all of them.
        self.groups, self.outs = (slice(int(i.min()), int(i.max()) + 1) for i in found)
        part = by_group[self.groups, :, self.outs]
        if bias is not None:
            shape = (problem.groups, problem.channels_out)
            bias = bias.reshape(shape)[self.groups, self.outs].ravel()
        of_part = problem._replace(groups=part.shape[0], channels_out=part.shape[2])
        self._kernel = pack(of_part, part, bias, activation)

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed weights."""
        return self._kernel.packed_bytes

    def scratch_bytes(
        self, data: tuple[int, ...], pads: tuple[int, ...], output: tuple[int, ...], bound: int
    ) -> int:
        """Return the scratchpad bytes of `run`, as in `TiledKernel`."""
        return self._kernel.scratch_bytes(data, pads, output, bound)

    def run(self, data: Array, pads: tuple[int, ...], bound: int, out: Array) -> None:
        """Compute these channels of `out`; the parameters are those of `TiledKernel.run`."""
        part = out[:, self.groups, self.outs]
        self._kernel.run(data[:, self.groups], pads, bound, part)
