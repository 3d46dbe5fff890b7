"""The kernel of a convolution with a packed filter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Infos, Kernel, LayerPlan, Operation
from deconv_ir.ir.record import NamedTuple
from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget
from deconv_ir.ir.shapes import static
from deconv_ir.ops.convolution.convolution_tile import ConvolutionTile
from deconv_ir.ops.numeric import np

if TYPE_CHECKING:
    from deconv_ir.kernels import Convolution, Deconvolution

Placement = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Arguments of the kernel: shape of the data, pads at the start, extents of the output."""


class _Fixed(NamedTuple):
    """The choice of a plan with one algorithm."""

    algorithm: AlgorithmCandidate
    candidates: tuple[AlgorithmCandidate, ...]
    whole: None = None


class PackedLayer(Kernel):
    """A prepared layer that reports its scratchpad and packed weights, and respects its budget.

    `run` takes the inputs, `out` and a budget.  `place` takes the infos of the inputs, with static
    shapes, and returns the arguments of the kernel; None if they depend on values.  With `adds`,
    the last input is added to the output, which then has channels first.
    """

    def __init__(
        self,
        run: Callable[[Arrays, Array | None, ScratchpadBudget | None], Array],
        place: Callable[[Infos], Placement | None],
        kernel: Convolution | Deconvolution,
        *,
        channels_last: bool = False,
        adds: bool = False,
    ) -> None:
        self._run = run
        self._adds = adds
        self._place = place
        self._kernel = kernel
        self._channels_last = channels_last

    @property
    def packed_bytes(self) -> int:
        return self._kernel.packed_bytes

    def plan(self, inputs: Infos, budget: ScratchpadBudget) -> LayerPlan:
        placed = self._place(inputs)
        if placed is None:
            unknown = AlgorithmCandidate(0.0, self._kernel.scratch_bytes, 0)
            return LayerPlan(functools.partial(self, budget=budget), _Fixed(unknown, (unknown,)))
        plan = self._kernel.plan(*placed, budget)
        if self._channels_last:

            def call(arrays: Arrays, out: Array | None) -> Arrays:
                return (np.moveaxis(plan.run(np.moveaxis(arrays[0], -1, 1)), 1, -1),)

            return LayerPlan(call, plan, 1)

        def addend(arrays: Arrays) -> Array | None:
            return arrays[-1] if self._adds else None

        return LayerPlan(
            lambda arrays, out: (plan.run(arrays[0], out, addend(arrays)),),
            plan,
            fix=lambda arrays, out: plan.fix(arrays[0], out, addend(arrays)),
        )

    def release(self) -> None:
        self._kernel.release()

    def tiled(self, operation: Operation) -> Kernel:
        if not isinstance(operation, ConvolutionTile):
            return self

        def run(inputs: Arrays, out: Array | None, budget: ScratchpadBudget | None) -> Array:
            return operation.place(self._kernel, inputs[0], out, budget)

        def place(inputs: Infos) -> Placement:
            data = static(inputs[0].shape)
            if self._channels_last:
                data = (data[0], data[-1], *data[1:-1])
            return data, operation.pads_begin, operation.extents

        return PackedLayer(run, place, self._kernel, channels_last=self._channels_last)

    def __call__(
        self,
        inputs: Arrays,
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
    ) -> tuple[Array, ...]:
        return (self._run(inputs, out, budget),)
