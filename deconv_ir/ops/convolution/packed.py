"""A convolution with its filter packed: prepared, and planned for the shapes of its inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Context, Infos, Kernel, LayerPlan, Operation
from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget
from deconv_ir.ir.shapes import static
from deconv_ir.ops.convolution.convolution_tile import ConvolutionTile
from deconv_ir.ops.convolution.views import describe_requested
from deconv_ir.ops.numeric import np

if TYPE_CHECKING:
    from deconv_ir.kernels import ConvolutionPlan
    from deconv_ir.ops.convolution.base import AnyConvolution, PackedFilter


class _OneAlgorithm(NamedTuple):
    """The choice of a plan with one algorithm."""

    algorithm: AlgorithmCandidate
    candidates: tuple[AlgorithmCandidate, ...]
    whole: None = None


class PackedConvolution(Kernel):
    """A convolution, or a tile of one, with its filter packed.

    Parameters
    ----------
    operation : AnyConvolution or ConvolutionTile
        Finds where the output lies.
    packed : Convolution or Deconvolution
        The kernel with the filter.
    filter_shape : tuple of int
        Shape of the filter in the model.
    kept : sequence
        For each input, its array if it is constant and not packed; else None.
    context : Context
        Semantics of the model.
    adds : bool
        Whether the last input is added to the output, which then has channels first.
    """

    def __init__(
        self,
        operation: AnyConvolution | ConvolutionTile,
        packed: PackedFilter,
        filter_shape: tuple[int, ...],
        kept: Sequence[Any],
        context: Context,
        *,
        adds: bool = False,
    ) -> None:
        self._operation = operation
        self._packed = packed
        self._filter_shape = filter_shape
        self._kept = kept
        self._context = context
        self._adds = adds

    @property
    def packed_bytes(self) -> int:
        return self._packed.packed_bytes

    def plan(self, inputs: Infos, budget: ScratchpadBudget) -> LayerPlan:
        data = static(inputs[0].shape)
        others = inputs[2 : len(self._kept)]
        placed = self._operation.placement(data, self._filter_shape, others, self._context)
        if placed is None:
            unknown = AlgorithmCandidate(0.0, self._packed.scratch_bytes, 0)
            run = functools.partial(self, budget=budget)
            return LayerPlan(run, _OneAlgorithm(unknown, (unknown,)))
        if self._operation.channels_last:
            return _ChannelsLastPlan(
                self._packed.plan((data[0], data[-1], *data[1:-1]), *placed, budget)
            )
        return _ChannelsFirstPlan(self._packed.plan(data, *placed, budget), adds=self._adds)

    def release(self) -> None:
        self._packed.release()

    def tiled(self, operation: Operation) -> Kernel:
        if not isinstance(operation, ConvolutionTile):
            return self
        return PackedConvolution(
            operation, self._packed, self._filter_shape, self._kept, self._context
        )

    def __call__(
        self,
        inputs: Arrays,
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
    ) -> tuple[Array, ...]:
        addend = inputs[-1] if self._adds else None
        given = inputs[:-1] if self._adds else inputs
        others = [
            describe_requested(array if kept is None else kept)
            for array, kept in zip(given[2:], self._kept[2:], strict=True)
        ]
        data = inputs[0]
        placed = self._operation.placement(data.shape, self._filter_shape, others, self._context)
        assert placed is not None, "actual arrays have static shapes"
        if not self._operation.channels_last:
            return (self._packed.run(data, *placed, out, budget, addend),)
        result = self._packed.run(np.moveaxis(data, -1, 1), *placed, None, budget)
        return (np.moveaxis(result, 1, -1),)


class _ChannelsFirstPlan(LayerPlan):
    """A plan of a layer with channels first."""

    choice: ConvolutionPlan

    def __init__(self, plan: ConvolutionPlan, *, adds: bool) -> None:
        self.choice = plan
        self._adds = adds

    def _addend(self, inputs: Arrays) -> Array | None:
        return inputs[-1] if self._adds else None

    def run(self, inputs: Arrays, out: Array | None) -> Arrays:
        return (self.choice.run(inputs[0], out, self._addend(inputs)),)

    def bind(self, inputs: Arrays, out: Array) -> Callable[[], object]:
        return self.choice.bind(inputs[0], out, self._addend(inputs))


class _ChannelsLastPlan(LayerPlan):
    """A plan of a layer whose data and output are [N, spatial..., C]."""

    choice: ConvolutionPlan
    spatial = 1

    def __init__(self, plan: ConvolutionPlan) -> None:
        self.choice = plan

    def run(self, inputs: Arrays, out: Array | None) -> Arrays:
        return (np.moveaxis(self.choice.run(np.moveaxis(inputs[0], -1, 1)), 1, -1),)
