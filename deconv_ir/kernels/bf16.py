"""Layers whose data and weights are rounded to bf16: products summed in f32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.ir.lazy_tensor import Constant, LazyTensor, whole
from deconv_ir.ir.scratchpad import UNLIMITED, AlgorithmCandidate, ScratchpadBudget
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import Algorithm
from deconv_ir.kernels.compressed import is_within_bf16, rounded_matrix
from deconv_ir.kernels.copies import contiguous
from deconv_ir.kernels.native import CompiledKernel
from deconv_ir.kernels.plan import NOTHING, ConvolutionKernel, ConvolutionPlan, RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.products import (
    MatrixBlock,
    PackedMatrix,
    RightFactor,
    blocks_of,
    can_pack,
    pack_columns,
)
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import (
    INSTRUCTION_SETS,
    current_machine,
    has_pairs,
    instruction_set,
    isa_number,
    pairs_instruction_set,
)
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.kernels.numpy.kernel import NumpyKernel

# Positions of sums stay within 64 bits.
_MOST_POSITION = 1 << 62
# Positions of a layer for which it is chosen, and maximum for large strides.
_POSITIONS, _MOST_POSITIONS = 1 << 10, 1 << 24
# Cycles in which an element of data is rounded.
_PAIRING_CYCLES = 0.6


def pair_channels(data: Array, groups: int = 1) -> Array:
    """Round data ``[N, groups * C, *X]`` to bf16, those of two channels in an element.

    Returns ``[N, groups * ceil(C / 2), *X]``: the first channel is in the lower half, and a missing
    one is 0.  The type is f32, that of the sums.
    """
    module = compiled_module()
    assert module is not None, "pairs are for compiled kernels"
    stacks, channels = data.shape[0] * groups, data.shape[1] // groups
    positions, found = math.prod(data.shape[2:]), -(-channels // 2)
    pairs = empty((stacks, found, positions), np.dtype(np.float32))
    if pairs.size:
        rows = contiguous(data).reshape(stacks, channels, positions)
        fields = interface.pair_channels_fields(isa=isa_number(), threads=get_threads())
        module.pair_channels(rows, pairs, fields)
    return pairs.reshape(data.shape[0], groups * found, *data.shape[2:])


def _paired_filter(problem: Problem, weights: Array) -> Array:
    """Return the filter with two input channels in each element."""
    if problem.forward:
        return pair_channels(weights)
    # The input channels are the second axis of each group.
    grouped = weights.reshape(problem.groups, problem.channels_in, *weights.shape[1:])
    return pair_channels(grouped).reshape(-1, *weights.shape[1:])


def round_to_bf16(values: Array) -> Array:
    """Return numbers of f32 rounded to bf16, in f32."""
    rounded = pair_channels(values.reshape(1, 1, -1)).view(np.uint32) << 16
    return rounded.view(np.float32).reshape(values.shape)


def pack_rounded(matrix: Constant, *, transposed: bool = False) -> RightFactor | None:
    """Round ``[K, N]``, or ``[N, K]`` if `transposed`, of f32 to bf16.

    Returns None if the matrix is small, not of f32, or beyond bf16. Rows are rounded as well where
    products of bf16 take less time than those of f32.
    """
    if not are_products_faster():
        return rounded_matrix(matrix, transposed=transposed)
    columns, terms = matrix.shape if transposed else matrix.shape[::-1]
    if matrix.dtype != np.float32 or not matrix.size or not can_pack(terms, columns):
        return None
    # A lazy tensor is read twice instead of being in memory as a whole.
    if not all(is_within_bf16(b.elements) for b in blocks_of(matrix, transposed=transposed)):
        return None
    pairs = (
        MatrixBlock(row // 2, column, pair_channels(elements[np.newaxis])[0])
        for row, column, elements in blocks_of(matrix, transposed=transposed)
    )
    isa = INSTRUCTION_SETS.index(pairs_instruction_set())
    packed = pack_columns(pairs, -(-terms // 2), columns, isa)
    return PackedMatrix(packed, (terms, columns), isa, pairs=True)


def are_products_faster() -> bool:
    """Whether a product of bf16 takes less time than one of f32 for the same terms."""
    machine, isa = current_machine(), instruction_set()
    return has_pairs() and 2 * machine.pair_products(isa) > machine.multiply_adds(isa)


def pack_faster(
    problem: Problem,
    filter: Array | LazyTensor,  # noqa: A002 - the documents' name
    bias: Array | None,
    activation: Activation,
    *,
    adds: bool,
    scratch_bytes: int,
    packer: Any,
    pack_f32: Callable[..., ConvolutionKernel],
) -> ConvolutionKernel:
    """Pack a filter of f32 in bf16 if that is predicted to be faster; else in f32.

    `pack_f32` packs it in f32, with a `packer`; other parameters as in `pack_filter`.  The kernel
    of f32 has the reason, `why_f32`.
    """
    reason = _why_unfit(problem)
    # The choice needs a packed filter.
    kernel = pack_f32(packer=None if reason is None else packer)
    if reason is None and not (isinstance(kernel, CompiledKernel) and kernel.finite):
        reason = "the filter is not finite, or NumPy computes the layer"
    if reason is None:
        weights = whole(filter)
        if weights.size and not is_within_bf16(weights):
            reason = "a weight is beyond the numbers of bf16"
    if reason is None:
        rounded = Bf16Kernel(
            problem, weights, bias, activation, adds=adds, scratch_bytes=scratch_bytes
        )
        if is_faster(rounded, kernel):
            return rounded
        reason = "sums of f32 are predicted to be as fast on this processor"
    kernel.why_f32 = reason
    return kernel


def copies_while_chosen() -> int:
    """Count the copies of a filter that `pack_faster` makes at most: in f32, and in bf16."""
    return 2 if has_pairs() else 0


def _why_unfit(problem: Problem) -> str | None:
    """Return why a problem is not computed in bf16, for any extents; None: it may be."""
    if not has_pairs():
        return "the processor, or DECONV_IR_ISA, has no products of bf16 (AVX-512 BF16)"
    if problem.channels_in < 2:
        return "products of bf16 are those of two input channels, and a group has one"
    return None


def is_faster(kernel: ConvolutionKernel, other: ConvolutionKernel) -> bool:
    """Whether a kernel is predicted to be faster than another one of the same problem.

    The extents are typical ones: results depend neither on those of runs nor on tiles.
    """
    problem = kernel.problem
    extent = round(_POSITIONS ** (1 / problem.axes))
    longer = tuple(extent * stride for stride in problem.strides)
    shorter = (extent,) * problem.axes
    data, output = (longer, shorter) if problem.forward else (shorter, longer)
    if math.prod(longer) > _MOST_POSITIONS:
        return False
    pads = [d * (k - 1) // 2 for d, k in zip(problem.dilations, problem.kernel, strict=True)]
    shape = (1, problem.groups * problem.channels_in, *data)
    mine, others = (
        min(found.cycles for found in one.plan(shape, pads, output).candidates)
        for one in (kernel, other)
    )
    return mine < others


class Bf16Kernel(ConvolutionKernel):
    """A filter of f32, rounded to bf16, for data that are rounded when they are read.

    Parameters
    ----------
    problem, weights, bias, activation, adds, scratch_bytes
        As those of `CompiledKernel`; weights of f32, finite also when they are rounded.
    """

    precision = "bf16"

    def __init__(
        self,
        problem: Problem,
        weights: Array,
        bias: Array | None,
        activation: Activation,
        *,
        adds: bool,
        scratch_bytes: int,
    ) -> None:
        super().__init__(problem, weights.dtype, scratch_bytes, adds=adds)
        self._bias, self._activation = bias, activation
        self._shape = weights.shape
        self.sums = CompiledKernel(
            problem._replace(channels_in=-(-problem.channels_in // 2)),
            _paired_filter(problem, weights),
            bias,
            activation,
            adds=adds,
            # Budgets bound it: no other kernel could sum pairs.
            scratch_bytes=UNLIMITED.scratch_bytes,
            algorithm=Algorithm.DIRECT,
            fold=1,
            pairs=True,
        )
        self._other: NumpyKernel | None = None

    @property
    def algorithm(self) -> Algorithm:
        return self.sums.algorithm

    @property
    def packed_bytes(self) -> int:
        return self.sums.packed_bytes + (0 if self._other is None else self._other.packed_bytes)

    @property
    def adds_in_cache(self) -> bool:
        return True

    def plan_shapes(self, shapes: RunShapes, budget: ScratchpadBudget) -> ConvolutionPlan:
        return _Bf16Plan(self, shapes, budget)

    def otherwise(self) -> NumpyKernel:
        """Return the kernel for runs that the compiled one refuses: NumPy's, of rounded numbers."""
        if self._other is None:
            from deconv_ir.kernels.numpy.kernel import NumpyKernel

            self._other = NumpyKernel(
                self.problem,
                self._unpacked(),
                self._bias,
                self._activation,
                adds=self.adds,
                scratch_bytes=self.scratch_bytes,
            )
        return self._other

    def _unpacked(self) -> Array:
        """Return the rounded filter in f32."""
        problem, bits = self.problem, self.sums.unpacked().view(np.uint32)
        axis = 1
        if not problem.forward:
            bits = bits.reshape(problem.groups, -1, *bits.shape[1:])
        halves = np.stack([bits << 16, bits & np.uint32(0xFFFF0000)], axis + 1).view(np.float32)
        apart = halves.reshape(bits.shape[0], -1, *bits.shape[2:])[:, : problem.channels_in]
        return np.ascontiguousarray(apart).reshape(self._shape)


class _Bf16Plan(ConvolutionPlan):
    """Runs of a `Bf16Kernel`."""

    name = "direct sums of bf16"

    def __init__(self, kernel: Bf16Kernel, shapes: RunShapes, budget: ScratchpadBudget) -> None:
        super().__init__(kernel, shapes)
        self._kernel, groups = kernel, kernel.problem.groups
        budget = budget.within(kernel.scratch_bytes)
        self._pairs = (shapes.data[0], groups * kernel.sums.problem.channels_in, *shapes.data[2:])
        given = shapes._replace(data=self._pairs, channels_last=False)
        self._sums: ConvolutionPlan | None = None
        if all(abs(n) < _MOST_POSITION for n in (*shapes.pads, *shapes.output)):
            self._sums = kernel.sums.plan_shapes(given, budget)
        self._budget = budget

    @property
    def details(self) -> dict[str, Any]:
        return {} if self._sums is None else self._sums.details

    @property
    def algorithm(self) -> AlgorithmCandidate:
        if self.shapes.is_empty:
            return NOTHING
        if self._sums is None:
            return self._otherwise.algorithm
        return self._with_pairs(self._sums.algorithm)

    @property
    def candidates(self) -> tuple[AlgorithmCandidate, ...]:
        if self.shapes.is_empty or self._sums is None:
            return (self.algorithm,)
        return tuple(map(self._with_pairs, self._sums.candidates))

    def _with_pairs(self, sums: AlgorithmCandidate) -> AlgorithmCandidate:
        """Return the algorithm of sums and of the pairs that they need."""
        pairs = math.prod(self._pairs)
        return sums._replace(
            cycles=sums.cycles + 2 * _PAIRING_CYCLES * pairs,
            scratch_bytes=sums.scratch_bytes + 4 * pairs,
        )

    @property
    def _otherwise(self) -> ConvolutionPlan:
        return self._kernel.otherwise().plan_shapes(self.shapes, self._budget)

    def compute(self, data: Array, out: Array, addend: Array | None) -> None:
        if self._sums is None:
            self._otherwise.compute(round_to_bf16(data), out, addend)
        else:
            self._sums.compute(self._paired(data), out, addend)

    def add(self, data: Array, addend: Array) -> Array:
        return self._otherwise.add(round_to_bf16(data), addend)

    def bind(self, inputs: Sequence[Any], out: Array) -> Callable[[], object] | None:
        data, addend = self._split(inputs)
        arrays = [data, out] if addend is None else [data, addend, out]
        apart = not any(np.may_share_memory(array, out) for array in arrays[:-1])
        if self._sums is None or self.shapes.channels_last or not (out.size and apart):
            return None
        if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            return None
        if addend is not None and addend.shape != self.shapes.output:
            return None
        sums = self._sums
        return lambda: sums.compute(self._paired(data), out, addend)

    def _paired(self, data: Array) -> Array:
        return pair_channels(data, self._kernel.problem.groups)
