"""Prepared convolutions, which choose between the compiled kernel and NumPy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from deconv_ir.ir.lazy_tensor import LazyTensor, whole
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.scratchpad import DIRECT, UNLIMITED, ScratchpadBudget
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import NATIVE, Algorithm, choose_algorithm, wanted_algorithm
from deconv_ir.kernels.native import CompiledKernel, supports
from deconv_ir.kernels.plan import ConvolutionKernel, ConvolutionPlan, RunShapes
from deconv_ir.kernels.problem import Problem, accumulator_of, check_run
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty

# The NumPy kernels are imported where they are used: most processes do not need them.
if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

DEFAULT_SCRATCH_BYTES = 64 << 20
# Time to transform weights for Winograd, for each byte of the result: mostly that of memory.
_TRANSFORM_CYCLES = 0.6


class _Prepared:
    """The base of both kinds of convolution: checked arguments, and the compiled kernel."""

    _forward: ClassVar[bool]

    def __init__(
        self,
        filter: Array | LazyTensor,  # noqa: A002 - the documents' name
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        groups: int = 1,
        bias: Array | None = None,
        activation: Activation | None = None,
        adds: bool = False,
        scratch_bytes: int = DEFAULT_SCRATCH_BYTES,
        algorithm: str = "auto",
        accuracy: Accuracy = Accuracy.FAST,
        packer: Any = None,
    ) -> None:
        weights = filter
        problem = Problem.of_filter(filter.shape, strides, dilations, groups, forward=self._forward)
        wanted = wanted_algorithm(algorithm)
        self.problem = problem
        self.element = weights.dtype
        accumulator_of(weights.dtype)
        activation = activation or Activation()
        if bias is not None:
            if bias.dtype != weights.dtype:
                raise TypeError(f"bias is {bias.dtype.name}, filter {weights.dtype.name}")
            channels = problem.groups * problem.channels_out
            if bias.shape != (channels,):
                raise ValueError(f"bias must have shape [{channels}], not {list(bias.shape)}")
        self.scratch_bytes = scratch_bytes
        self.algorithm = wanted or choose_algorithm(
            problem, weights.dtype, compiled=compiled_module() is not None
        )
        if accuracy.is_direct and self.algorithm in NATIVE:
            self.algorithm = Algorithm.DIRECT
        self.packed: ConvolutionKernel
        if self.algorithm in NATIVE and supports(problem, weights.dtype):
            pack = functools.partial(
                CompiledKernel,
                problem,
                bias=bias,
                activation=activation,
                adds=adds,
                scratch_bytes=scratch_bytes,
                winograd=NATIVE[self.algorithm],
            )
            self.packed = compiled = pack(weights, packer=packer)
            if compiled.finite:
                return
            if not adds:
                from deconv_ir.kernels.numpy.kernel import NonFiniteKernel

                self.packed = NonFiniteKernel(
                    problem,
                    whole(weights),
                    bias,
                    activation,
                    scratch_bytes=scratch_bytes,
                    pack_finite=pack,
                )
                return
        from deconv_ir.kernels.numpy.kernel import NumpyKernel

        method = "numpy" if self.algorithm in NATIVE else self.algorithm.value
        self.packed = by_numpy = NumpyKernel(
            problem,
            whole(weights),
            bias,
            activation,
            adds=adds,
            scratch_bytes=scratch_bytes,
            method=method,
        )
        self.algorithm = Algorithm(by_numpy.tiled.name)

    @property
    def packed_bytes(self) -> int:
        """Bytes of filter and bias, in all forms that are kept."""
        return self.packed.packed_bytes

    @property
    def adds_in_cache(self) -> bool:
        """Whether runs add another tensor while results are in cache."""
        return self.packed.adds_in_cache

    def release(self) -> None:
        """Free packed weights that the next run can read again."""
        self.packed.release()

    def plan(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        budget: ScratchpadBudget = UNLIMITED,
    ) -> ConvolutionPlan:
        """Plan runs with data of one shape, for the present number of threads.

        Weights are not packed, unless the filter was released before a first plan checked whether
        it is fit for Winograd: then it is read from its file again.

        Parameters
        ----------
        data : tuple of int
            ``[N, groups * in, *X]``; N and the X may be 0.
        pads_begin : sequence of int
            One entry for each axis; may be negative or beyond the kernel.  Transposed: natural
            output position of the first output element.  Convolution: number of positions before
            the data at which the first window begins.
        output : sequence of int
            Extents of the output, one for each axis; may exceed the natural ones.
        budget : ScratchpadBudget
            Bound on the scratchpad, within `scratch_bytes`.
        """
        pads, extents = check_run(self.problem, data, tuple(pads_begin), tuple(output))
        shape = (data[0], self.problem.groups * self.problem.channels_out, *extents)
        return self.packed.plan(RunShapes(data, pads, shape), budget)

    def run(
        self,
        data: Array,
        pads_begin: Sequence[int],
        output: Sequence[int],
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
        addend: Array | None = None,
    ) -> Array:
        """Plan and run; parameters as in `plan` and `ConvolutionPlan.run`.

        Without a budget, the filter is packed for this run alone: Winograd is used if it saves more
        time than the transform of the weights takes.
        """
        plan = self.plan(data.shape, pads_begin, output, budget or UNLIMITED)
        if budget is None and addend is None and self.algorithm is Algorithm.COMPILED:
            out = empty(plan.shapes.output, self.element) if out is None else out
            direct, *others = plan.candidates
            for other in others:
                transform = _TRANSFORM_CYCLES * other.weight_bytes
                if not other.packed and other.cycles + transform > direct.cycles:
                    plan = self.plan(data.shape, pads_begin, output, DIRECT)
        return plan.run(data, out, addend)


class Deconvolution(_Prepared):
    """A transposed convolution with its filter packed, for any extents.

    Parameters
    ----------
    filter : ndarray or LazyTensor
        ``[groups * in, out, *K]``, at least one spatial axis.  f16, bf16, f32,
        f64, or any integer type.
    strides, dilations : sequence of int
        One entry for each spatial axis, at least 1.
    groups : int
        Number of groups.
    bias : ndarray, optional
        ``[groups * out]``, of the filter's dtype; added to every output element, even if no tap
        reaches it.
    activation : Activation, optional
        Applied to every output element, after the bias and before rounding.
    adds : bool
        Whether every run adds another tensor to the output, before the activation.
    scratch_bytes : int
        Bound on memory in addition to data, filter and result.
    packer : object, optional
        Result of `background_packer`: reads a large filter from its file and packs it later.  Until
        it has finished, the filter is assumed to be finite and fit for Winograd.
    algorithm : str
        ``auto``, or the name of the kernel to use: ``compiled``, restricted to direct sums as
        ``direct`` or to Winograd as ``winograd``; ``numpy``, restricted to one of its methods as
        ``im2col`` or ``gemm_col2im``.  ``auto`` respects the environment variable
        DECONV_IR_KERNEL.  A kernel that cannot compute the problem is replaced by the next.

    Notes
    -----
    Computes ``full[t] = sum of data[x] * filter[k] over s*x + d*k == t`` and
    ``output[y] = full[y + pad_begin]`` where that exists, else 0: OpenVINO
    ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1, oneDNN Graph
    ConvTranspose-1 and ConvolutionBackwardData, 'Detailed description'.

    f32 and f64 are summed in their own precision; f16 and bf16 in f32, rounded
    once, after the bias; integers exactly, modulo 2^bits.
    """

    _forward = False


class Convolution(_Prepared):
    """A convolution with its filter packed, for any extents.

    Parameters
    ----------
    filter : ndarray or LazyTensor
        ``[groups * out, in, *K]``, at least one spatial axis.
    strides, dilations, groups, bias, activation, adds, scratch_bytes, algorithm, accuracy
        As in `Deconvolution`; every algorithm except those of the compiled kernel is ``im2col``
        here.

    Notes
    -----
    Computes ``output[y] = sum of data[s*y + d*k - pad_begin] * filter[k]`` over
    the k for which the data exist: OpenVINO Convolution-1 and
    GroupConvolution-1.
    """

    _forward = True
