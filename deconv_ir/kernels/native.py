"""The compiled kernel, if it was built."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.ir.lazy_tensor import LazyTensor, whole
from deconv_ir.ir.scratchpad import UNLIMITED, ScratchpadBudget
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import Algorithm
from deconv_ir.kernels.native_plan import CompiledPlan, PlannedKernel, plain
from deconv_ir.kernels.plan import ConvolutionKernel, ConvolutionPlan, RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import (
    INSTRUCTION_SETS,
    Machine,
    current_machine,
    has_dots,
    instruction_set,
    pairs_instruction_set,
)
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.locks import ForkSafeLock
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.kernels.filter_codes import FilterCodes
    from deconv_ir.kernels.numpy.kernel import NumpyKernel

# Above these limits the tables of sub-convolutions would be larger than the work.
_MOST_SUBCONVOLUTIONS = 1 << 16
_MOST_TAPS = 1 << 20
# Positions, sums of pads and extents, stay within 64 bits.
_MOST_POSITION = 1 << 62
# Span of a dilated kernel, in positions, above which larger tiles do make a layer faster.
_MOST_REACH = 1 << 12
# Minimum size of a filter that C reads from the file, and that transformed weights can replace.
LARGE_BYTES = 256 << 10
# Minimum input channels for folding sub-convolutions into channels, and share of nonzero weights of
# two output channels.
_FEWEST_FOLDED_CHANNELS = 4
_LEAST_USEFUL = 0.7
_ELEMENTS = {
    "float32": interface.F32,
    "float64": interface.F64,
    "float16": interface.F16,
    "bfloat16": interface.BF16,
    "int8": interface.I8,
    "uint8": interface.I8,
    "int16": interface.I16,
    "uint16": interface.I16,
    "int32": interface.I32,
    "uint32": interface.I32,
    "int64": interface.I64,
    "uint64": interface.I64,
}
_WINOGRAD = {
    Algorithm.DIRECT: interface.WINOGRAD_NEVER,
    Algorithm.COMPILED: interface.WINOGRAD_BY_COST,
    Algorithm.WINOGRAD: interface.WINOGRAD_ALWAYS,
}


def supports(problem: Problem, dtype: np.dtype[Any]) -> bool:
    """Whether the compiled kernel can compute a problem, which does not depend on extents."""
    return (
        problem.axes <= interface.AXES
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
    # Rows without a tap in the last shift leave it out; the others are then few.
    useful = kernel / (-(-kernel // stride) * stride)
    return stride if problem.channels_out == 1 or useful >= _LEAST_USEFUL else 1


def fold_filter(problem: Problem, weights: Array) -> Array:
    """Return ``[groups * in, sub * out, ..., shift]`` of ``[groups * in, out, ..., K]``."""
    stride = problem.strides[-1]
    shifts = -(-problem.kernel[-1] // stride)
    padded = np.zeros((*weights.shape[:-1], shifts * stride), weights.dtype)
    padded[..., : weights.shape[-1]] = weights
    split = padded.reshape(*weights.shape[:-1], shifts, stride)
    folded = np.moveaxis(split, -1, 1)
    return folded.reshape(weights.shape[0], -1, *weights.shape[2:-1], shifts)


def background_packer() -> Any:
    """Return an object that packs filters in the background; None without a thread for it.

    Its `finish` waits until all are packed.  It returns 0; 1 if a layer cannot use Winograd,
    contrary to the assumption, and must be planned again; 2 if filters cannot be read or are not
    finite, so that their layers must be prepared again.
    """
    module = compiled_module()
    return None if module is None or get_threads() < 2 else module.Packer(get_threads())


class CompiledKernel(PlannedKernel):
    """A filter packed for the compiled kernel; runs for which that is unfit use another one.

    Parameters
    ----------
    problem : Problem
        The convolution, for which `supports` is true.
    weights : ndarray or LazyTensor
        ``[groups * in, out, *K]``, or ``[groups * out, in, *K]`` for a convolution.
    bias : ndarray or None
        ``[groups * out]`` of the same dtype.
    activation : Activation
        Applied to every result.
    adds : bool
        Whether every run adds another tensor, before the activation.
    scratch_bytes : int
        Bound on the scratchpad of a run.
    fold : int, optional
        Sub-convolutions of the last axis that become channels; default: `choose_fold`.
    algorithm : Algorithm
        Whether runs use Winograd instead of direct sums.  Its weights are packed by the first run
        that needs them.  If the filter `is_reread`, they replace the others, which are packed again
        when a run needs them: by then it is known that both are needed, and both are kept.
    machine : Machine, optional
        The machine for which tiles and algorithms are chosen; default: `current_machine`.
    packer : object, optional
        Result of `background_packer`, which packs a large filter from a file.
    channel_block : int, optional
        Input channels whose sums are rounded together; default: chosen for the layer.
    dots : bool
        Whether each element of data is four unsigned bytes, for four channels, and products are
        summed in 32 bits.  With `has_dots`, an element of the weights is four signed bytes.  Else
        it is two codes of 16 bits, and the problem has two channels for four: those of bytes 0 and
        1, then of 2 and 3, unless these are missing.
    pairs : bool
        Whether each element of data and weights, of f32, has the bits of two bf16, for two
        channels: see `kernels/bf16.py`.
    codes : FilterCodes, optional
        The weights as a file stores them, which stay so: runs unpack those of a tile.
    """

    def __init__(
        self,
        problem: Problem,
        weights: Array | LazyTensor,
        bias: Array | None,
        activation: Activation,
        *,
        adds: bool = False,
        scratch_bytes: int = UNLIMITED.scratch_bytes,
        fold: int | None = None,
        algorithm: Algorithm = Algorithm.COMPILED,
        machine: Machine | None = None,
        packer: Any = None,
        reads: bool = True,
        channel_block: int = 0,
        dots: bool = False,
        pairs: bool = False,
        codes: FilterCodes | None = None,
    ) -> None:
        super().__init__(problem, weights.dtype, scratch_bytes, adds=adds)
        module = compiled_module()
        assert module is not None
        self._lead = interface.AXES - problem.axes
        reaches = zip(problem.dilations, problem.kernel, problem.strides, strict=True)
        # Small tiles would consist mostly of their halos.
        self.reaches_far = math.prod(1 + d * (k - 1) // s for d, k, s in reaches) > _MOST_REACH
        self._shape = weights.shape
        self.is_depthwise = problem.groups > 1 and problem.channels_in == 1
        self._bias, self.activation = bias, activation
        self._algorithm = algorithm
        # The original filter, kept for runs without folding: it is small, since layers are folded
        # only if they have few output channels.
        self._weights: Array | None = None
        self._other: CompiledKernel | NumpyKernel | None = None
        if fold is None:
            unfolded = problem.forward or not weights.size
            fold = 1 if unfolded else choose_fold(problem)
        self.fold = fold
        kernel, strides = problem.kernel, problem.strides
        longer = 0
        if fold > 1:
            self._weights = weights = whole(weights)
            longer = kernel[-1] % fold
            weights = fold_filter(problem, weights)
            kernel, strides = weights.shape[2:], (*strides[:-1], 1)
            if bias is not None:
                by_group = bias.reshape(problem.groups, 1, problem.channels_out)
                bias = np.repeat(by_group, fold, axis=1).ravel()
        # Integers are activated by NumPy.
        fused = Activation() if weights.dtype.kind in "iu" else activation
        isa = instruction_set()
        self._machine = machine or current_machine()
        element, multiply_adds = _ELEMENTS[weights.dtype.name], self._machine.multiply_adds(isa)
        if dots:
            element = interface.U8X4 if has_dots() else interface.I16X2
        elif pairs:
            # The baseline emulates the instruction.
            isa = pairs_instruction_set()
            element, multiply_adds = interface.BF16X2, self._machine.pair_products(isa)
        # Smaller filters are not worth reading twice.
        lazy = weights if isinstance(weights, LazyTensor) else None
        large = lazy if lazy is not None and lazy.nbytes >= LARGE_BYTES else None
        fields = interface.layer_fields(
            forward=int(problem.forward),
            element=element,
            isa=INSTRUCTION_SETS.index(isa),
            groups=problem.groups,
            channels_in=problem.channels_in,
            channels_out=problem.channels_out * fold,
            folded=fold,
            longer=longer,
            winograd=_WINOGRAD[algorithm],
            channel_block=channel_block,
            form=interface.COMPRESSED_FORMS if codes is None else codes.form,
            halves=codes is not None and codes.halves,
            frees=large is not None and large.is_reread and codes is None,
            unread=not reads,
            kernel=self.fill(kernel, 1),
            strides=self.fill(strides, 1),
            dilations=self.fill(problem.dilations, 1),
            **fused.fields(),
            level2_bytes=self._machine.level2_bytes,
            sure_level2_bytes=self._machine.sure_level2_bytes,
            level3_bytes=self._machine.level3_bytes,
            multiply_adds=multiply_adds,
        )
        given = (None,) * 3 if codes is None else (codes.numbers, codes.scales, codes.zeros)
        self.layer = module.Kernel(None if bias is None else _packable(bias), *given, fields)
        # Filters of codes are kept: they would have to be computed again.
        replaces = large is not None and codes is None and not dots
        self.replaced_bytes = self.layer.packed_bytes if replaces else 0
        self._codes = codes
        self.unpacks = codes is not None
        if codes is not None:
            self.precision = f"f32 ({codes.name} weights)"
        # A filter in a file can be read again, so it is not kept.
        self._lazy = lazy
        self._lock = ForkSafeLock()
        if not reads:
            return
        file = self._large_file()
        if packer is None or file is None or not packer.add(self.layer, *file):
            self.pack()
        if not isinstance(weights, LazyTensor):
            # Networks that compute their filters often swap these axes by a view.
            swapped = weights.swapaxes(0, 1)
            is_swapped = swapped.flags.c_contiguous and not weights.flags.c_contiguous
            # C widens narrow numbers, all that it is given at once.
            widens = weights.itemsize < 4 and weights.nbytes > LARGE_BYTES
            if not widens and (is_swapped or weights.flags.c_contiguous):
                filter_ = _packable(swapped if is_swapped else weights)
                self.layer.fill(filter_, 0, is_swapped, get_threads())
            else:
                at_once = max(1, LARGE_BYTES * len(weights) // weights.nbytes)
                for row in range(0, len(weights), at_once):
                    part = _packable(weights[row : row + at_once])
                    self.layer.fill(part, row, False, get_threads())

    def _large_file(self) -> tuple[int, int] | None:
        """Return descriptor and offset of the filter's file, if C reads it from there."""
        lazy = self._lazy if self._codes is None else None
        return lazy.file if lazy is not None and lazy.nbytes >= LARGE_BYTES else None

    def pack(self) -> None:
        """Read and pack the weights, unless they are packed already."""
        with self._lock:
            lazy, threads = self._lazy, get_threads()
            if lazy is None or self.is_filled:
                return
            # If the file has been truncated, reading part by part raises the error.
            file = self._large_file()
            if file is None or not self.layer.read(*file, threads):
                parts = lazy.parts() if self._codes is None else self._codes.parts()
                for first, part in parts:
                    self.layer.fill(_packable(part), first, False, threads)

    def release(self) -> None:
        """Free packed weights that can be read again, unless a run uses them."""
        if self._lazy is not None:
            with self._lock:
                self.layer.release()

    @property
    def is_filled(self) -> bool:
        """Whether the whole filter is packed."""
        return bool(self.layer.is_filled)

    @property
    def finite(self) -> bool:
        """Whether all weights are finite; an infinite one times a zero around the data is NaN."""
        return bool(self.layer.finite)

    @property
    def algorithm(self) -> Algorithm:
        return self._algorithm

    @property
    def packed_bytes(self) -> int:
        kept = sum(array.nbytes for array in (self._weights, self._bias) if array is not None)
        other = 0 if self._other is None else self._other.packed_bytes
        return int(self.layer.packed_bytes) + kept + other

    @property
    def adds_in_cache(self) -> bool:
        return bool(self.element == np.float32)

    def unpacked(self) -> Array:
        """Return the original filter, restored from its packed form."""
        if self._weights is not None:
            return self._weights
        if self._codes is not None:
            return self._codes.source.whole()
        weights = np.empty(self._shape, self.element)
        while not self.layer.unpack(plain(weights)):
            self.pack()
        return weights

    def plan_shapes(self, shapes: RunShapes, budget: ScratchpadBudget) -> ConvolutionPlan:
        if any(abs(n) >= _MOST_POSITION for n in (*shapes.pads, *shapes.output)):
            return self.otherwise().plan_shapes(shapes, budget)
        return CompiledPlan(self, shapes, budget)

    def otherwise(self) -> ConvolutionKernel:
        """Return the kernel for runs that this one refuses, packed on first use.

        Without folding, tiles are smaller; NumPy computes anything.
        """
        if self._other is None and self._weights is not None:
            # Without taps that some sub-convolutions leave out, these are the same bits.
            self._other = CompiledKernel(
                self.problem,
                self._weights,
                self._bias,
                self.activation,
                adds=self.adds,
                scratch_bytes=self.scratch_bytes,
                fold=1,
                algorithm=Algorithm.DIRECT,
                machine=self._machine,
                channel_block=self.layer.channel_block,
            )
        elif self._other is None:
            from deconv_ir.kernels.numpy.kernel import NumpyKernel

            self._other = NumpyKernel(
                self.problem,
                self.unpacked(),
                self._bias,
                self.activation,
                adds=self.adds,
                scratch_bytes=self.scratch_bytes,
            )
        return self._other

    def fill(self, values: Sequence[int], value: int) -> tuple[int, ...]:
        """Return values for each axis of C, with `value` for the axes that the problem lacks."""
        return (value,) * self._lead + tuple(values)


def _packable(array: Array) -> Array:
    """Return an array in the form that C reads: aligned and contiguous."""
    return plain(np.require(array, requirements=["C", "A"]))
