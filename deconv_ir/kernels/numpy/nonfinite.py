"""Outputs of non-finite weights, for a kernel that does not support them."""

from __future__ import annotations

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.lazy_tensor import Constant, LazyTensor, mapped
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.numpy.filter_parts import filter_parts, parts_within
from deconv_ir.kernels.numpy.method import pack
from deconv_ir.kernels.problem import Problem


def finite_part(weights: Constant) -> LazyTensor:
    """Return the weights with infinities and NaN replaced by zeros."""
    return mapped(weights, lambda x: np.where(np.isfinite(x), x, x.dtype.type(0)), weights.dtype)


class NonFiniteOutputs:
    """The output channels that depend on an infinite weight or NaN.

    A kernel that multiplies the zeros around the data computes the layer with
    `finite_part`; then these channels, usually few, are computed again by a kernel that multiplies
    only data.  The parameters are those of `NumpyKernel`.
    """

    def __init__(
        self, problem: Problem, weights: Constant, bias: Array | None, activation: Activation
    ) -> None:
        others = np.zeros((problem.groups, problem.channels_out), bool)
        for part in filter_parts(problem, weights):
            inner = (1, *range(3, part.weights.ndim))
            others[part.groups, part.outs] |= ~np.isfinite(part.weights).all(axis=inner)
        # The smallest box of groups and channels that contains all of them.
        self.groups, self.outs = (slice(int(i.min()), int(i.max()) + 1) for i in np.nonzero(others))
        if bias is not None:
            shape = (problem.groups, problem.channels_out)
            bias = bias.reshape(shape)[self.groups, self.outs].ravel()
        of_box = problem._replace(
            groups=self.groups.stop - self.groups.start,
            channels_out=self.outs.stop - self.outs.start,
        )
        parts = parts_within(filter_parts(problem, weights), self.groups, self.outs)
        self._kernel = pack(of_box, parts, weights.dtype, bias, activation)

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
