"""Plans of the compiled kernel: the fields of a run, its tiling, and calls of C."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget, Whole
from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.algorithm import Algorithm
from deconv_ir.kernels.copies import in_order
from deconv_ir.kernels.plan import NOTHING, ConvolutionKernel, ConvolutionPlan, RunShapes
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import instruction_set
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.operation import Direct
    from deconv_ir.kernels.runtime.cpu import Machine

# Bytes of scratch, with which C computes without checks for overflow.
_MOST_SCRATCH = 1 << 40
# Bytes of scratch of a thread: larger tiles made no layer faster.
_THREAD_SCRATCH = 3 << 20
# More of it where runs transform weights: those of a chunk.
_CHUNK_SCRATCH = 2 << 20
# Candidates are compared for this number of threads, for any number in a run, and as if no weights
# were kept: see enum winograd_choice in interface.h.
_JUDGED_THREADS = 2


class _Chosen(NamedTuple):
    """The choices of a plan."""

    budget: ScratchpadBudget
    fields: bytes
    """The fields of a run, for C."""
    tiling: dict[str, Any]
    """The description from C."""


class PlannedKernel(ConvolutionKernel):
    """A kernel of C, as its plans see it.

    Attributes
    ----------
    layer : Kernel of the extension
    activation : Activation
    fold : int
        Sub-convolutions of the last axis that became channels.
    is_depthwise : bool
    replaced_bytes : int
        Bytes of the packed filter, if it can be freed once its weights are transformed; else 0.
    reaches_far : bool
        Whether small tiles would consist mostly of their halos.
    unpacks : bool
        Whether runs unpack the weights.
    """

    layer: Any
    activation: Activation
    fold: int
    is_depthwise: bool
    replaced_bytes: int = 0
    reaches_far: bool
    unpacks: bool = False

    @abc.abstractmethod
    def pack(self) -> None:
        """Read and pack the weights, unless they are packed already."""

    @abc.abstractmethod
    def otherwise(self) -> ConvolutionKernel:
        """Return the kernel for runs that this one refuses."""

    @abc.abstractmethod
    def fill(self, values: Sequence[int], value: int) -> tuple[int, ...]:
        """Return values for each axis of C, with `value` for the axes that the problem lacks."""


class CompiledPlan(ConvolutionPlan):
    """Runs of a kernel of C."""

    name = "direct sums"

    def __init__(self, kernel: PlannedKernel, shapes: RunShapes, budget: ScratchpadBudget) -> None:
        super().__init__(kernel, shapes)
        self._kernel = kernel
        self._given = budget

    @property
    def details(self) -> dict[str, Any]:
        return {} if 0 in self.shapes.output else dict(self._chosen.tiling)

    @property
    def algorithm(self) -> AlgorithmCandidate:
        return NOTHING if self.shapes.is_empty else _candidate(self._chosen.tiling)

    @property
    def candidates(self) -> tuple[AlgorithmCandidate, ...]:
        if self.shapes.is_empty:
            return (NOTHING,)
        found: list[AlgorithmCandidate] = []
        for winograd in (True, False):
            budget = self._given._replace(winograd=winograd, whole=None)
            batch = self.shapes.data[0] if budget.fixed_batch else 1
            tiling = self._describe(batch, self._fields_for(budget, _JUDGED_THREADS))
            candidate = _candidate(tiling)
            if "winograd" not in tiling:
                return (candidate._replace(filter_bytes=0), *found)
            # Winograd on request is chosen whatever it costs.
            forced = self._kernel.algorithm is Algorithm.WINOGRAD
            candidate = candidate._replace(filter_bytes=-self._kernel.replaced_bytes)
            if self._kernel.unpacks:
                # Small tiles do, and any run must be able to use the algorithm: also those of one
                # thread, whose chunks of weights are largest.
                least = self._describe(batch, self._fields_for(budget.within(0), 1))
                candidate = candidate._replace(scratch_bytes=_candidate(least).scratch_bytes)
            found.append(candidate._replace(cycles=-math.inf) if forced else candidate)
        raise AssertionError("the second one is direct")

    @property
    def whole(self) -> Whole | None:
        details = self.details
        if self.shapes.is_empty or "winograd" not in details:
            return None
        data, pads, output = self.shapes[:3]
        problem, spatial = self._kernel.problem, len(pads)
        # Windows of one tap read only the data of their outputs; others may overlap, or read more.
        margins = tuple(
            int(r > 1 and (not problem.forward or k % r > 0))
            for k, (_, r) in zip(problem.kernel, details["winograd"][-spatial:], strict=True)
        )
        return Whole(data, pads, output[2:], details["steps"][-spatial:], margins)

    @functools.cached_property
    def _fields(self) -> bytes:
        """The fields of a run with the given budget."""
        return self._fields_for(self._given)

    @functools.cached_property
    def _chosen(self) -> _Chosen:
        """The budget, raised if no tile fits, with fields and tiling."""
        budget, fields = self._given, self._fields
        while True:
            tiling = self._describe(self.shapes.data[0], fields) | {"fold": self._kernel.fold}
            needed = min(_candidate(tiling).scratch_bytes, self._kernel.scratch_bytes)
            if budget.scratch_bytes >= needed:
                return _Chosen(budget, fields, tiling)
            budget = budget._replace(scratch_bytes=4 * budget.scratch_bytes)
            fields = self._fields_for(budget)

    @functools.cached_property
    def _otherwise(self) -> ConvolutionPlan:
        """The plan for arrays that C refuses: for some tiles or data it needs another kernel."""
        return self._kernel.otherwise().plan_shapes(self.shapes, self._chosen.budget)

    def _describe(self, batch: int, fields: bytes) -> dict[str, Any]:
        kernel = self._kernel
        arguments = (batch, *kernel.fill(self.shapes.data[2:], 1)), fields
        tiling: dict[str, Any] | None = kernel.layer.describe(*arguments)
        while tiling is None:
            kernel.pack()
            tiling = kernel.layer.describe(*arguments)
        return tiling

    def predict(self, machine: Machine, costs: Sequence[float]) -> float:
        """Return the cycles of this plan by the cost model for a machine, with other constants.

        `costs` has a value for each of the extension's ``COST_CONSTANTS``.
        """
        kernel, data = self._kernel, self.shapes.data
        shape = (data[0], *kernel.fill(data[2:], 1))
        values = np.asarray(costs, np.float64)
        fields = interface.predict_fields(
            level2_bytes=machine.level2_bytes,
            sure_level2_bytes=machine.sure_level2_bytes,
            level3_bytes=machine.level3_bytes,
            multiply_adds=machine.multiply_adds(instruction_set()),
        )
        return float(kernel.layer.predict(shape, self._chosen.fields, values, fields))

    def compute(self, data: Array, out: Array, addend: Array | None) -> None:
        kernel = self._kernel
        if not out.flags.carray:
            result = empty(out.shape, out.dtype)
            self.compute(data, result, addend)
            out[...] = result
        elif not self._compute_in_c(data, out, addend):
            self._otherwise.compute(data, out, addend)
        elif out.dtype.kind in "iu" and kernel.activation.type is not ActivationType.NONE:
            out[...] = kernel.activation.apply(out)

    def add(self, data: Array, addend: Array) -> Array:
        return self._otherwise.add(data, addend)

    def _compute_in_c(self, data: Array, out: Array, addend: Array | None) -> bool:
        """Return False, with `out` undefined, if no tile fits the scratch, or arrays are unfit."""
        if addend is not None and not self._kernel.adds_in_cache:
            return False
        # A depthwise layer would read transposed data one element at a time.
        copied = in_order(data) if self._kernel.is_depthwise else None
        data = _in_whole_elements(data) if copied is None else copied
        if addend is not None and not (addend.flags.c_contiguous and addend.flags.aligned):
            addend = addend.copy()
        arrays = plain(data), plain(out), addend, None, None
        # Describing the tiling takes longer than a small layer, and most budgets need not be
        # raised.
        return self._call_c(*arrays, self._fields) or (
            self._fields != self._chosen.fields and self._call_c(*arrays, self._chosen.fields)
        )

    def _call_c(self, *arguments: Any) -> bool:
        kernel = self._kernel
        done = kernel.layer.run(*arguments)
        while done is None:
            kernel.pack()
            done = kernel.layer.run(*arguments)
        return bool(done)

    def bind(self, inputs: Sequence[Any], out: Array) -> Callable[[], object] | None:
        if self.shapes.channels_last:
            return None
        data, addend = self._split(inputs)
        kernel, element = self._kernel, self._element
        arrays = [data] if addend is None else [data, addend]
        is_direct = (
            element.kind not in "iu"
            and all(a.dtype == element and a.flags.aligned for a in (*arrays, out))
            and (data.shape, out.shape) == (self.shapes.data, self.shapes.output)
            and out.size > 0
            and out.flags.carray
            and not any(np.may_share_memory(array, out) for array in arrays)
        )
        if addend is not None:
            fits = addend.shape == out.shape and addend.flags.c_contiguous
            is_direct = is_direct and kernel.adds_in_cache and fits
        copied = kernel.is_depthwise or _in_whole_elements(data) is not data
        if not is_direct or (copied and not data.flags.c_contiguous):
            return None
        arguments = (plain(data), plain(out), addend, None, None, self._chosen.fields)
        run = kernel.layer.run

        def call() -> None:
            if not run(*arguments):
                self._run(data, out, addend)

        return call

    def direct(self) -> Direct | None:
        element, shapes = self._element, self.shapes
        if shapes.channels_last or self._adds or element.isbuiltin != 1 or element.kind in "iu":
            return None
        if 0 in shapes.output:
            return None
        run, fields = self._kernel.layer.run, self._chosen.fields

        def compute(data: Array, out: Array) -> bool:
            flags = data.flags
            if not (flags.c_contiguous and flags.aligned):
                return False
            return bool(run(data, out, None, None, None, fields))

        return compute

    def compute_codes(
        self,
        dequantizer: Any,
        codes: Array,
        out: Array,
        addend: Array | None,
        windows: Array | None = None,
    ) -> None:
        """Sum contiguous codes; `dequantizer` makes results of the sums, which `out` gets.

        It needs the sums of the data alone if the weights have a zero point: `windows`.
        """
        done = self._call_c(
            plain(codes), plain(out), addend, dequantizer, windows, self._chosen.fields
        )
        assert done, "a tile fits the scratchpad"

    def _fields_for(self, budget: ScratchpadBudget, threads: int | None = None) -> bytes:
        """Return the fields of a run, for C."""
        kernel, (data, pads, output) = self._kernel, self.shapes[:3]
        # The pad of a folded axis, and the interleaved positions before the output.
        pad, crop = divmod(pads[-1], kernel.fold)
        extent = output[-1]
        scratch_bytes = max(0, min(kernel.scratch_bytes, budget.scratch_bytes, _MOST_SCRATCH))
        positions = -(-(crop + extent) // kernel.fold)
        thread_bytes = _MOST_SCRATCH if kernel.reaches_far else _THREAD_SCRATCH
        thread_bytes += _CHUNK_SCRATCH if kernel.unpacks else 0
        whole = (data[2:], pads, output[2:])
        if budget.whole is not None:
            whole = (budget.whole.data[2:], budget.whole.pads_begin, budget.whole.output)
        data_of_whole, pads_of_whole, output_of_whole = (
            kernel.fill(axes, one) for axes, one in zip(whole, (1, 0, 1), strict=True)
        )
        allowed = interface.WINOGRAD_ALLOWED if threads is None else interface.WINOGRAD_JUDGED
        return interface.run_fields(
            pads_begin=kernel.fill((*pads[:-1], pad), 0),
            output=kernel.fill((*output[2:-1], positions), 1),
            threads=threads or get_threads(),
            scratch_bytes=scratch_bytes,
            # Independent of the run's budget: the choice of the algorithm depends on it.
            thread_bytes=max(0, min(kernel.scratch_bytes, thread_bytes)),
            winograd=allowed if budget.winograd else interface.WINOGRAD_REFUSED,
            extent=extent,
            crop=crop,
            data_of_whole=data_of_whole,
            pads_begin_of_whole=pads_of_whole,
            output_of_whole=output_of_whole,
        )


def _candidate(tiling: dict[str, Any]) -> AlgorithmCandidate:
    """Return the algorithm of a tiling from C."""
    scratch = tiling["bytes"] * min(tiling["threads"], tiling["jobs"]) + tiling["shared_bytes"]
    weights, packed = tiling["weight_bytes"], tiling.get("packed", False)
    change = tiling["filter_bytes"]
    return AlgorithmCandidate(tiling["cycles"], scratch, weights, bool(packed), change)


def _in_whole_elements(array: Array) -> Array:
    """Return an array, or a copy if its strides are not multiples of the element size."""
    if array.flags.c_contiguous or not any(s % array.itemsize for s in array.strides):
        return array
    return np.ascontiguousarray(array)


def plain(array: Array) -> Array:
    """Return a view with a dtype that the buffer protocol supports."""
    return array.view(f"u{array.itemsize}") if array.dtype.isbuiltin != 1 else array
