"""A convolution whose filter is packed, as an executor runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Call, Infos, Kernel
from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget
from deconv_ir.ops.numeric import np

if TYPE_CHECKING:
    from deconv_ir.kernels import Convolution, Deconvolution

Placement = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Shape of the data as the kernel takes it, where the output begins, and its extents."""


class PackedLayer(Kernel):
    """A prepared layer that tells what it takes, and keeps within what it is given.

    `run` takes the inputs, `out` and a budget.  `place` takes what is known of the inputs, all
    shapes static, and returns how the kernel is called; None where that depends on values.
    """

    has_candidates = True

    def __init__(
        self,
        run: Callable[[Arrays, Array | None, ScratchpadBudget | None], Array],
        place: Callable[[Infos], Placement | None],
        kernel: Convolution | Deconvolution,
        *,
        channels_last: bool = False,
    ) -> None:
        self._run = run
        self._place = place
        self._kernel = kernel
        self._channels_last = channels_last

    @property
    def packed_bytes(self) -> int:
        """Bytes of filter and bias, in all forms that are kept."""
        return self._kernel.packed_bytes

    def candidates(self, inputs: Infos, budget_bytes: int) -> Sequence[AlgorithmCandidate]:
        """Return the algorithms for this scratchpad; the first packs no further weights."""
        placed = self._place(inputs)
        if placed is None:
            return (AlgorithmCandidate(0.0, self._kernel.scratch_bytes, 0),)
        return self._kernel.candidates(*placed, budget_bytes)

    def settle(
        self, inputs: Infos, budget: ScratchpadBudget
    ) -> tuple[ScratchpadBudget, AlgorithmCandidate]:
        """Return the budget that runs need at least, and the algorithm that they take."""
        placed = self._place(inputs)
        if placed is None:
            return budget, AlgorithmCandidate(0.0, self._kernel.scratch_bytes, 0)
        return self._kernel.settle(*placed, budget)

    def bind(self, inputs: Infos, budget: ScratchpadBudget) -> Call:
        """Fix the shapes; see `Operation.bind`."""
        placed = self._place(inputs)
        if placed is None:
            return functools.partial(self, budget=budget)
        run = self._kernel.bind(*placed, budget)
        if self._channels_last:

            def call(arrays: Arrays, out: Array | None) -> Arrays:
                return (np.moveaxis(run(np.moveaxis(arrays[0], -1, 1), None), 1, -1),)

        else:

            def call(arrays: Arrays, out: Array | None) -> Arrays:
                return (run(arrays[0], out),)

        return call

    def __call__(
        self,
        inputs: Arrays,
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
    ) -> tuple[Array, ...]:
        """Compute the output."""
        return (self._run(inputs, out, budget),)
