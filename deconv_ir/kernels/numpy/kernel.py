"""The implementation of convolutions with NumPy, for any problem."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget, Whole
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import Algorithm
from deconv_ir.kernels.numpy.filter_parts import filter_parts
from deconv_ir.kernels.numpy.method import pack
from deconv_ir.kernels.numpy.nonfinite import NonFiniteOutputs, finite_part
from deconv_ir.kernels.plan import NOTHING, ConvolutionKernel, ConvolutionPlan, RunShapes
from deconv_ir.kernels.problem import Problem, by_group
from deconv_ir.kernels.runtime.memory import empty

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.lazy_tensor import Constant
    from deconv_ir.kernels.numpy.tiled import TiledKernel

# Scratch that NumPy's kernels may always use: smaller tiles cost more than they save.
_ALWAYS_USED = 1 << 20


def _bound(scratch_bytes: int, budget: ScratchpadBudget) -> int:
    return min(scratch_bytes, max(budget.scratch_bytes, _ALWAYS_USED))


def _run_tiled(
    tiled: TiledKernel | NonFiniteOutputs,
    problem: Problem,
    shapes: RunShapes,
    bound: int,
    data: Array,
    out: Array,
) -> None:
    # Infinities and NaNs are valid results here, so warnings are off.
    with np.errstate(all="ignore"):
        tiled.run(by_group(problem, data), shapes.pads, bound, by_group(problem, out))


class NumpyKernel(ConvolutionKernel):
    """A filter packed for one of NumPy's methods; the parameters are those of `pack_filter`.

    `method` is that of `numpy.method.pack`.
    """

    def __init__(
        self,
        problem: Problem,
        weights: Constant,
        bias: Array | None,
        activation: Activation,
        *,
        adds: bool,
        scratch_bytes: int,
        reads: bool = True,
        method: str = "numpy",
    ) -> None:
        super().__init__(problem, weights.dtype, scratch_bytes, adds=adds)
        self.activation = activation
        self._bias_bytes = 0 if bias is None else bias.nbytes
        fused = Activation() if adds else activation
        parts = filter_parts(problem, weights) if reads else ()
        self.tiled = pack(problem, parts, weights.dtype, bias, fused, method)

    @property
    def algorithm(self) -> Algorithm:
        return Algorithm(self.tiled.name)

    @property
    def packed_bytes(self) -> int:
        return self.tiled.packed_bytes + self._bias_bytes

    def plan_shapes(self, shapes: RunShapes, budget: ScratchpadBudget) -> NumpyPlan:
        return NumpyPlan(self, shapes, budget)


class NumpyPlan(ConvolutionPlan):
    """Runs of a `NumpyKernel`."""

    def __init__(self, kernel: NumpyKernel, shapes: RunShapes, budget: ScratchpadBudget) -> None:
        super().__init__(kernel, shapes)
        self._kernel = kernel
        self._scratch_bytes = _bound(kernel.scratch_bytes, budget)

    @functools.cached_property
    def algorithm(self) -> AlgorithmCandidate:
        data, pads, output = self.shapes[:3]
        if self.shapes.is_empty:
            return NOTHING
        needed = self._kernel.tiled.scratch_bytes(data, pads, output[2:], self._scratch_bytes)
        return AlgorithmCandidate(0.0, needed, 0)

    def compute(self, data: Array, out: Array, addend: Array | None) -> None:
        if addend is not None:
            out[...] = self.add(data, addend)
            return
        kernel = self._kernel
        _run_tiled(kernel.tiled, kernel.problem, self.shapes, self._scratch_bytes, data, out)

    def add(self, data: Array, addend: Array) -> Array:
        sums = empty(self.shapes.output, self._kernel.element)
        if sums.size:
            self.compute(data, sums, None)
        return self._kernel.activation.apply(np.add(sums, addend))


class NonFiniteKernel(ConvolutionKernel):
    """A filter with infinities or NaN, for an implementation that multiplies the zeros around data.

    That one computes the layer with `finite_part`; then the few output channels that depend on
    other weights are computed again.

    Parameters
    ----------
    problem, weights, bias, activation, scratch_bytes
        As in `NumpyKernel`.
    pack_finite : callable
        Packs the finite part of the filter for the other implementation.
    """

    def __init__(
        self,
        problem: Problem,
        weights: Constant,
        bias: Array | None,
        activation: Activation,
        *,
        scratch_bytes: int,
        pack_finite: Callable[[Constant], ConvolutionKernel],
    ) -> None:
        super().__init__(problem, weights.dtype, scratch_bytes, adds=False)
        finite = finite_part(weights)
        # A lazy tensor would keep the array.
        self.finite = pack_finite(finite if isinstance(weights, LazyTensor) else finite.whole())
        self.others = NonFiniteOutputs(problem, weights, bias, activation)

    @property
    def algorithm(self) -> Algorithm:
        return self.finite.algorithm

    @property
    def packed_bytes(self) -> int:
        return self.finite.packed_bytes + self.others.packed_bytes

    def plan_shapes(self, shapes: RunShapes, budget: ScratchpadBudget) -> ConvolutionPlan:
        return _NonFinitePlan(self, shapes, budget)


class _NonFinitePlan(ConvolutionPlan):
    """Runs of a `NonFiniteKernel`."""

    def __init__(
        self, kernel: NonFiniteKernel, shapes: RunShapes, budget: ScratchpadBudget
    ) -> None:
        super().__init__(kernel, shapes)
        self._kernel = kernel
        self._finite = kernel.finite.plan_shapes(shapes, budget)
        self._scratch_bytes = _bound(kernel.scratch_bytes, budget)
        self.name = self._finite.name

    @functools.cached_property
    def algorithm(self) -> AlgorithmCandidate:
        return self._with_others(self._finite.algorithm)

    @property
    def candidates(self) -> tuple[AlgorithmCandidate, ...]:
        return tuple(map(self._with_others, self._finite.candidates))

    @property
    def details(self) -> dict[str, Any]:
        return self._finite.details

    @property
    def whole(self) -> Whole | None:
        return self._finite.whole

    def _with_others(self, chosen: AlgorithmCandidate) -> AlgorithmCandidate:
        """Include the scratchpad of the channels that are computed again."""
        data, pads, output = self.shapes[:3]
        if self.shapes.is_empty:
            return chosen
        needed = self._kernel.others.scratch_bytes(data, pads, output[2:], self._scratch_bytes)
        return chosen._replace(scratch_bytes=max(chosen.scratch_bytes, needed))

    def compute(self, data: Array, out: Array, addend: Array | None) -> None:
        kernel = self._kernel
        self._finite.compute(data, out, None)
        _run_tiled(kernel.others, kernel.problem, self.shapes, self._scratch_bytes, data, out)

    def add(self, data: Array, addend: Array) -> Array:
        raise AssertionError("such a kernel adds nothing")
