"""The compiled kernel, if it was built: arguments are checked here, before C uses a pointer."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.ir.lazy_tensor import LazyTensor, whole
from deconv_ir.ir.record import NamedTuple
from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.copies import in_order
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime.cpu import (
    INSTRUCTION_SETS,
    Machine,
    current_machine,
    instruction_set,
)
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.fields import FieldTable, pack_fields
from deconv_ir.kernels.runtime.locks import ForkSafeLock
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

_AXES = 3
# Above these limits the tables of sub-convolutions would be larger than the work.
_MOST_SUBCONVOLUTIONS = 1 << 16
_MOST_TAPS = 1 << 20
# Positions, sums of pads and extents, stay within 64 bits.
_MOST_PAD = 1 << 62
# Bytes of scratch, with which C computes without checks for overflow.
_MOST_SCRATCH = 1 << 40
# Bytes of scratch of a thread: larger tiles made no layer faster.
_THREAD_SCRATCH = 3 << 20
# Candidates are compared for this number of threads, for any number in a run, and as if no weights
# were kept: see enum winograd_choice in native.h.
_JUDGED_THREADS, _JUDGED = 2, 2
# Span of a dilated kernel, in positions, above which larger tiles do make a layer faster.
_MOST_REACH = 1 << 12
# Minimum size of a filter that C reads from the file.
LARGE_BYTES = 256 << 10
# Minimum input channels, and share of nonzero weights, for folding sub-convolutions into channels.
_FEWEST_FOLDED_CHANNELS = 4
_LEAST_USEFUL = 0.7
_ELEMENTS = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "bfloat16": 3,
    "int8": 4,
    "uint8": 4,
    "int16": 5,
    "uint16": 5,
    "int32": 6,
    "uint32": 6,
    "int64": 7,
    "uint64": 7,
}


def supports(problem: Problem, dtype: np.dtype[Any]) -> bool:
    """Whether the compiled kernel can compute a problem, which does not depend on extents."""
    return (
        problem.axes <= _AXES
        and dtype.name in _ELEMENTS
        and math.prod(problem.strides) <= _MOST_SUBCONVOLUTIONS
        and problem.taps <= _MOST_TAPS
        and max(problem.kernel) * max(problem.dilations) < 1 << 31
    )


def choose_fold(problem: Problem) -> int:
    """Choose the number of sub-convolutions of the last axis that become channels; 1: no folding.

    A micro-kernel with one or two rows waits for its loads.  If a group has so few output channels,
    the sub-convolutions of the last axis, which read nearly the same data, fill more rows.
    """
    stride, kernel = problem.strides[-1], problem.kernel[-1]
    rows = problem.channels_out * stride
    if problem.channels_out > 2 or stride == 1 or problem.dilations[-1] != 1:
        return 1
    if problem.channels_in < _FEWEST_FOLDED_CHANNELS or rows not in (2, 3, 4, 5, 6, 8, 12):
        return 1
    # Rows without a tap in the last shift have zero weights there.
    useful = kernel / (-(-kernel // stride) * stride)
    return stride if useful >= _LEAST_USEFUL and (rows > 2 or useful == 1) else 1


def fold_filter(problem: Problem, weights: Array) -> Array:
    """Return ``[groups * in, sub * out, ..., shift]`` of ``[groups * in, out, ..., K]``."""
    stride = problem.strides[-1]
    shifts = -(-problem.kernel[-1] // stride)
    padded = np.zeros((*weights.shape[:-1], shifts * stride), weights.dtype)
    padded[..., : weights.shape[-1]] = weights
    split = padded.reshape(*weights.shape[:-1], shifts, stride)
    folded = np.moveaxis(split, -1, 1)
    return folded.reshape(weights.shape[0], -1, *weights.shape[2:-1], shifts)


class WinogradUse(enum.Enum):
    """The use of Winograd instead of direct sums."""

    NEVER = 0
    BY_COST = 1
    ALWAYS = 2
    """Whenever possible, for tests."""


def background_packer() -> Any:
    """Return an object that packs filters in the background; None without a thread for it.

    Its `finish` waits until all are packed.  It returns 0; 1 if a layer cannot use Winograd,
    contrary to the assumption, and must be planned again; 2 if filters cannot be read or are not
    finite, so that their layers must be prepared again.
    """
    module = compiled_module()
    return None if module is None or get_threads() < 2 else module.Packer(get_threads())


class CompiledKernel:
    """A filter packed for the compiled kernel.

    Parameters
    ----------
    problem : Problem
        The convolution, for which `supports` is true.
    weights : ndarray or LazyTensor
        ``[groups * in, out, *K]``, or ``[groups * out, in, *K]`` for a convolution.
    bias : ndarray or None
        ``[groups * out]`` of the same dtype.
    activation : Activation
        Applied to every result; must be the identity for integers.
    fold : int, optional
        Sub-convolutions of the last axis that become channels; default: `choose_fold`.
    winograd : WinogradUse
        The use of Winograd instead of direct sums.  Its weights are packed by the first run that
        needs them, and kept in addition to the others.
    machine : Machine, optional
        The machine for which tiles and algorithms are chosen; default: `current_machine`.
    packer : object, optional
        Result of `background_packer`, which packs a large filter from a file.
    channel_block : int, optional
        Input channels whose sums are rounded together; default: chosen for the layer.
    """

    def __init__(
        self,
        problem: Problem,
        weights: Array | LazyTensor,
        bias: Array | None,
        activation: Activation,
        *,
        fold: int | None = None,
        winograd: WinogradUse = WinogradUse.BY_COST,
        machine: Machine | None = None,
        packer: Any = None,
        channel_block: int = 0,
    ) -> None:
        module = compiled_module()
        assert module is not None
        self._lead = _AXES - problem.axes
        reaches = zip(problem.dilations, problem.kernel, problem.strides, strict=True)
        # Small tiles would consist mostly of their halos.
        self._reaches_far = math.prod(1 + d * (k - 1) // s for d, k, s in reaches) > _MOST_REACH
        self._problem, self._shape, self._dtype = problem, weights.shape, weights.dtype
        self.is_depthwise = problem.groups > 1 and problem.channels_in == 1
        self._bias, self._activation = bias, activation
        # The original filter, kept for runs without folding: it is small, since layers are folded
        # only if they have few output channels.
        self._weights: Array | None = None
        self._plain_kernel: CompiledKernel | None = None
        if fold is None:
            fold = 1 if problem.forward or not weights.size else choose_fold(problem)
        self._fold = fold
        kernel, strides = problem.kernel, problem.strides
        guarded = 0
        if fold > 1:
            self._weights = weights = whole(weights)
            guarded = kernel[-1] % fold if weights.dtype.kind not in "iu" else 0
            weights = fold_filter(problem, weights)
            kernel, strides = weights.shape[2:], (*strides[:-1], 1)
            if bias is not None:
                by_group = bias.reshape(problem.groups, 1, problem.channels_out)
                bias = np.repeat(by_group, fold, axis=1).ravel()
        isa = instruction_set()
        self._machine = machine or current_machine()
        fields = pack_fields(
            module.LAYER_FIELDS,
            forward=int(problem.forward),
            element=_ELEMENTS[weights.dtype.name],
            isa=INSTRUCTION_SETS.index(isa),
            groups=problem.groups,
            channels_in=problem.channels_in,
            channels_out=problem.channels_out * fold,
            folded=fold,
            guarded=guarded,
            winograd=winograd.value,
            channel_block=channel_block,
            kernel=self._fill(kernel, 1),
            strides=self._fill(strides, 1),
            dilations=self._fill(problem.dilations, 1),
            **activation.fields(),
            level2_bytes=self._machine.level2_bytes,
            level3_bytes=self._machine.level3_bytes,
            multiply_adds=self._machine.multiply_adds(isa),
        )
        self._kernel = module.Kernel(fields, None if bias is None else _packable(bias))
        self._run_fields: FieldTable = module.RUN_FIELDS
        # A filter in a file can be read again, so it is not kept.
        self._lazy = weights if isinstance(weights, LazyTensor) else None
        self._lock = ForkSafeLock()
        file = self._large_file()
        if packer is None or file is None or not packer.add(self._kernel, *file):
            self.pack()
        if not isinstance(weights, LazyTensor):
            # Networks that compute their filters often swap these axes by a view.
            swapped = weights.swapaxes(0, 1)
            is_swapped = swapped.flags.c_contiguous and not weights.flags.c_contiguous
            given = _packable(swapped if is_swapped else weights)
            self._kernel.fill(given, 0, is_swapped, get_threads())

    def _large_file(self) -> tuple[int, int] | None:
        """Return descriptor and offset of the filter's file, if C reads it from there."""
        lazy = self._lazy
        return lazy.file if lazy is not None and lazy.nbytes >= LARGE_BYTES else None

    def pack(self) -> None:
        """Read and pack the weights, unless they are packed already."""
        with self._lock:
            lazy, threads = self._lazy, get_threads()
            if lazy is None or self.is_filled:
                return
            # If the file has been truncated, reading part by part raises the error.
            file = self._large_file()
            if file is None or not self._kernel.read(*file, threads):
                for first, part in lazy.parts():
                    self._kernel.fill(_packable(part), first, False, threads)

    def release(self) -> None:
        """Free packed weights that can be read again, unless a run uses them."""
        if self._lazy is not None:
            with self._lock:
                self._kernel.release()

    @property
    def is_filled(self) -> bool:
        """Whether the whole filter is packed."""
        return bool(self._kernel.is_filled)

    @property
    def finite(self) -> bool:
        """Whether all weights are finite; an infinite one times a zero around the data is NaN."""
        return bool(self._kernel.finite)

    @property
    def packed_bytes(self) -> int:
        """Bytes of the filter in all kept forms, including that of Winograd."""
        kept = 0 if self._weights is None else self._weights.nbytes
        plain = 0 if self._plain_kernel is None else self._plain_kernel.packed_bytes
        return int(self._kernel.packed_bytes) + kept + plain

    def unpacked(self) -> Array:
        """Return the original filter, restored from its packed form."""
        if self._weights is not None:
            return self._weights
        self.pack()
        weights = np.empty(self._shape, self._dtype)
        self._kernel.unpack(_plain(weights))
        return weights

    def unfolded(self) -> CompiledKernel | None:
        """Return the kernel without folding, for tiles that would be too large with it."""
        if self._weights is None:
            return None
        if self._plain_kernel is None:
            # Finite data give the same bits with and without folding.
            self._plain_kernel = CompiledKernel(
                self._problem,
                self._weights,
                self._bias,
                self._activation,
                fold=1,
                winograd=WinogradUse.NEVER,
                machine=self._machine,
                channel_block=self._kernel.channel_block,
            )
        return self._plain_kernel

    def _fill(self, values: Sequence[int], value: int) -> tuple[int, ...]:
        return (value,) * self._lead + tuple(values)


class _Chosen(NamedTuple):
    """The choices of a plan."""

    budget: ScratchpadBudget
    fields: bytes
    """The fields of a run, for C."""
    tiling: dict[str, Any]
    """The description from C; empty if C cannot compute the run."""


class CompiledPlan:
    """Runs of a compiled kernel with arrays of fixed shapes, on the current number of threads."""

    def __init__(
        self,
        kernel: CompiledKernel,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: tuple[int, ...],
        scratch_bytes: int,
        budget: ScratchpadBudget,
    ) -> None:
        self._kernel = kernel
        self._data, self._pads, self._output = data, pads_begin, output
        self._scratch_bytes = scratch_bytes
        self._within_bounds = all(abs(pad) < _MOST_PAD for pad in pads_begin)
        self._given = budget

    def describe(self) -> dict[str, Any]:
        """Return the tiling that `run` uses."""
        return dict(self._chosen.tiling)

    @property
    def budget(self) -> ScratchpadBudget:
        """The budget of runs: the given one, raised if no tile fits."""
        return self._chosen.budget

    @property
    def algorithm(self) -> AlgorithmCandidate:
        """The algorithm of runs."""
        return _candidate(self._chosen.tiling)

    @functools.cached_property
    def _fields(self) -> bytes:
        """The fields of a run with the given budget."""
        return self._fields_for(self._given)

    @functools.cached_property
    def _chosen(self) -> _Chosen:
        """The budget, fields and tiling of all runs."""
        if not self._within_bounds:
            return _Chosen(self._given, b"", {})
        budget, fields = self._given, self._fields
        while True:
            tiling = self._describe(self._data[0], fields) | {"fold": self._kernel._fold}
            needed = min(_candidate(tiling).scratch_bytes, self._scratch_bytes)
            if budget.scratch_bytes >= needed:
                return _Chosen(budget, fields, tiling)
            budget = budget._replace(scratch_bytes=4 * budget.scratch_bytes)
            fields = self._fields_for(budget)

    def _describe(self, batch: int, fields: bytes) -> dict[str, Any]:
        kernel = self._kernel
        arguments = (batch, *kernel._fill(self._data[2:], 1)), fields
        tiling: dict[str, Any] | None = kernel._kernel.describe(*arguments)
        while tiling is None:
            kernel.pack()
            tiling = kernel._kernel.describe(*arguments)
        return tiling

    @property
    def candidates(self) -> tuple[AlgorithmCandidate, ...]:
        """The algorithms for one image and the given scratchpad, direct sums first."""
        if not self._within_bounds:
            return (_candidate({}),)
        found: list[AlgorithmCandidate] = []
        for winograd in (True, False):
            budget = self._given._replace(winograd=winograd, whole=None)
            tiling = self._describe(1, self._fields_for(budget, _JUDGED_THREADS))
            found.insert(0, _candidate(tiling))
            if "winograd" not in tiling:
                break
        return tuple(found)

    def run(self, data: Array, out: Array, addend: Array | None = None) -> bool:
        """Compute into `out`; False, with `out` undefined, if no tile fits the scratch.

        The addend is in f32, without gaps, and of the output's shape.
        """
        if self._within_bounds:
            # A depthwise layer would read transposed data one element at a time.
            copied = in_order(data) if self._kernel.is_depthwise else None
            data = _in_whole_elements(data) if copied is None else copied
            arrays = _plain(data), _plain(out), addend
            # Describing the tiling takes longer than a small layer, and most budgets need not be
            # raised.
            if self._run(*arrays, self._fields):
                return True
            if self._fields != self._chosen.fields and self._run(*arrays, self._chosen.fields):
                return True
        other = self._kernel.unfolded()
        if other is None:
            return False
        args = self._data, self._pads, self._output, self._scratch_bytes, self.budget
        return CompiledPlan(other, *args).run(data, out, addend)

    def _run(self, *arguments: Any) -> bool:
        done = self._kernel._kernel.run(*arguments)
        while done is None:
            self._kernel.pack()
            done = self._kernel._kernel.run(*arguments)
        return bool(done)

    def bind(
        self, data: Array, out: Array, addend: Array | None, otherwise: Callable[[], object]
    ) -> Callable[[], object]:
        """Return a call of `run` with these arrays; `otherwise` is called if C refuses them."""
        copied = self._kernel.is_depthwise or _in_whole_elements(data) is not data
        if not self._within_bounds or (copied and not data.flags.c_contiguous):
            return otherwise
        arguments = (_plain(data), _plain(out), addend, self._chosen.fields)
        run = self._kernel._kernel.run

        def call() -> None:
            if not run(*arguments):
                otherwise()

        return call

    def _fields_for(self, budget: ScratchpadBudget, threads: int | None = None) -> bytes:
        """Return the fields of a run, for C."""
        kernel = self._kernel
        # The pad of a folded axis, and the interleaved positions before the output.
        pad, crop = divmod(self._pads[-1], kernel._fold)
        extent = self._output[-1]
        allowed = max(0, min(self._scratch_bytes, budget.scratch_bytes, _MOST_SCRATCH))
        positions = -(-(crop + extent) // kernel._fold)
        thread_bytes = _MOST_SCRATCH if kernel._reaches_far else _THREAD_SCRATCH
        whole = (self._data[2:], self._pads, self._output[2:])
        if budget.whole is not None:
            whole = (budget.whole.data[2:], budget.whole.pads_begin, budget.whole.output)
        data, pads_begin, output = (
            kernel._fill(axes, one) for axes, one in zip(whole, (1, 0, 1), strict=True)
        )
        return pack_fields(
            kernel._run_fields,
            pads_begin=kernel._fill((*self._pads[:-1], pad), 0),
            output=kernel._fill((*self._output[2:-1], positions), 1),
            threads=threads or get_threads(),
            scratch_bytes=allowed,
            # Independent of the run's budget: the choice of the algorithm depends on it.
            thread_bytes=max(0, min(self._scratch_bytes, thread_bytes)),
            winograd=0 if not budget.winograd else 1 if threads is None else _JUDGED,
            extent=extent,
            crop=crop,
            data_of_whole=data,
            pads_begin_of_whole=pads_begin,
            output_of_whole=output,
        )


def _candidate(tiling: dict[str, Any]) -> AlgorithmCandidate:
    """Return the algorithm of a tiling from C."""
    if not tiling:
        return AlgorithmCandidate(0.0, 0, 0)
    scratch = tiling["bytes"] * min(tiling["threads"], tiling["jobs"]) + tiling["shared_bytes"]
    weights, packed = tiling["weight_bytes"], tiling.get("packed", False)
    return AlgorithmCandidate(tiling["cycles"], scratch, weights, bool(packed))


def _packable(array: Array) -> Array:
    """Return an array in the form that C reads: aligned and contiguous."""
    return _plain(np.require(array, requirements=["C", "A"]))


def _in_whole_elements(array: Array) -> Array:
    """Return an array, or a copy if its strides are not multiples of the element size."""
    if array.flags.c_contiguous or not any(s % array.itemsize for s in array.strides):
        return array
    return np.ascontiguousarray(array)


def _plain(array: Array) -> Array:
    """Return a view with a dtype that the buffer protocol supports."""
    return array.view(f"u{array.itemsize}") if array.dtype.isbuiltin != 1 else array
