"""A convolution with its filter packed: prepared, and planned for the shapes of its inputs."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Context, Infos, Kernel, LayerPlan, Operation
from deconv_ir.ir.scratchpad import UNLIMITED, AlgorithmCandidate, ScratchpadBudget
from deconv_ir.ir.shapes import static
from deconv_ir.ops.convolution.convolution_tile import ConvolutionTile
from deconv_ir.ops.convolution.dims import describe_requested

if TYPE_CHECKING:
    from deconv_ir.kernels import ConvolutionKernel


class Placing(Protocol):
    """A convolution, or a tile of one, that finds where its output lies."""

    @property
    def channels_last(self) -> bool:
        """Whether data and output are laid out [N, spatial..., C]."""

    def placement(
        self, data: tuple[int, ...], filter_shape: tuple[int, ...], others: Infos, context: Context
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Find the pads at the start and the extents of the output; None if values decide."""


class _OneAlgorithm(NamedTuple):
    """The choice of a plan with one algorithm."""

    algorithm: AlgorithmCandidate
    candidates: tuple[AlgorithmCandidate, ...]
    whole: None = None


class PackedConvolution(Kernel):
    """A convolution, or a tile of one, with its filter packed.

    Parameters
    ----------
    operation : Placing
        The convolution, or the tile.
    packed : ConvolutionKernel
        The kernel with the filter; the last input is added to the output if it `adds`.
    filter_shape : tuple of int
        Shape of the filter in the model.
    kept : sequence
        For each input, its array if it is constant and not packed; else None.
    context : Context
        Semantics of the model.
    """

    def __init__(
        self,
        operation: Placing,
        packed: "ConvolutionKernel",
        filter_shape: tuple[int, ...],
        kept: Sequence[Any],
        context: Context,
    ) -> None:
        self._operation = operation
        self._packed = packed
        self._filter_shape = filter_shape
        self._kept = kept
        self._context = context

    @property
    def packed_bytes(self) -> int:
        return self._packed.packed_bytes

    @property
    def precision(self) -> str | None:
        return self._packed.precision

    @property
    def why_f32(self) -> str | None:
        return self._packed.why_f32

    def plan(self, inputs: Infos, budget: ScratchpadBudget) -> LayerPlan:
        data = self._data_shape(static(inputs[0].shape))
        others = inputs[2 : len(self._kept)]
        placed = self._operation.placement(data, self._filter_shape, others, self._context)
        if placed is None:
            bound = min(self._packed.scratch_bytes, budget.scratch_bytes)
            unknown = AlgorithmCandidate(0.0, bound, 0)
            run = functools.partial(self, budget=budget)
            return LayerPlan(run, _OneAlgorithm(unknown, (unknown,)))
        last = self._operation.channels_last
        return self._packed.plan(self._by_axis(data), *placed, budget, channels_last=last)

    def run_bytes(self, inputs: Infos) -> int:
        """Return the bytes of the filter and of the scratchpad of its only run."""
        data = self._data_shape(static(inputs[0].shape))
        placed = self._operation.placement(data, self._filter_shape, inputs[2:], self._context)
        if placed is None:
            return self._packed.packed_bytes + self._packed.scratch_bytes
        last = self._operation.channels_last
        plan = self._packed.plan_once(self._by_axis(data), *placed, channels_last=last)
        chosen = plan.algorithm
        transformed = 0 if chosen.packed else chosen.weight_bytes
        return self._packed.packed_bytes + chosen.scratch_bytes + transformed

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
        given = inputs[:-1] if self._packed.adds else inputs
        others = [
            describe_requested(array if kept is None else kept)
            for array, kept in zip(given[2:], self._kept[2:], strict=True)
        ]
        data, last = self._data_shape(inputs[0].shape), self._operation.channels_last
        placed = self._operation.placement(data, self._filter_shape, others, self._context)
        assert placed is not None, "actual arrays have static shapes"
        shape = self._by_axis(data)
        if budget is None and not self._packed.adds:
            plan = self._packed.plan_once(shape, *placed, channels_last=last)
        else:
            plan = self._packed.plan(shape, *placed, budget or UNLIMITED, channels_last=last)
        return plan.run(inputs, out)

    @property
    def kernel(self) -> "ConvolutionKernel":
        """The kernel with the filter."""
        return self._packed

    def with_kernel(self, packed: "ConvolutionKernel") -> "PackedConvolution":
        """Return the convolution with another kernel of the same filter."""
        return PackedConvolution(
            self._operation, packed, self._filter_shape, self._kept, self._context
        )

    @property
    def channels_last(self) -> bool:
        """Whether data and output are laid out ``[N, *X, C]``."""
        return self._operation.channels_last

    def _data_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the data, which may be codes."""
        if not self._packed.reads_codes:
            return shape
        problem = self._packed.problem
        return (shape[0], problem.groups * problem.channels_in, *shape[2:])

    def _by_axis(self, data: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the data with channels first."""
        return (data[0], data[-1], *data[1:-1]) if self._operation.channels_last else data
