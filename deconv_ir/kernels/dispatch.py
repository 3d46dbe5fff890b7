"""The prepared convolutions, on the path that was chosen for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.ir.lazy_tensor import LazyTensor, whole
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.scratchpad import UNLIMITED, AlgorithmCandidate, ScratchpadBudget
from deconv_ir.kernels.activation import Activation, ActivationKind
from deconv_ir.kernels.algorithm import NATIVE, Algorithm, choose_algorithm, wanted_algorithm
from deconv_ir.kernels.native import CompiledKernel, supports
from deconv_ir.kernels.problem import Problem, accumulator_of, check_run
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty

# The NumPy kernels are imported where they are used: most processes need none of them.
if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.kernels.numpy.nonfinite import NonFiniteOutputs
    from deconv_ir.kernels.numpy.tiled import TiledKernel

__all__ = [
    "DEFAULT_SCRATCH_BYTES",
    "Convolution",
    "Deconvolution",
]

DEFAULT_SCRATCH_BYTES = 64 << 20
# What the NumPy kernels may always use: smaller tiles cost them more than they save.
_NUMPY_SCRATCH = 1 << 20


class _Prepared:
    """What both kinds of convolution share: checked arguments, and the compiled kernel."""

    def __init__(
        self,
        weights: Array | LazyTensor,
        problem: Problem,
        bias: Array | None,
        activation: Activation | None,
        scratch_bytes: int,
        path: str,
        accuracy: Accuracy,
        *,
        forward: bool,
    ) -> None:
        wanted = wanted_algorithm(path)
        self.problem = problem
        self.element = weights.dtype
        self._forward = forward
        accumulator_of(weights.dtype)
        self.scratch_bytes = scratch_bytes
        self.activation = activation or Activation()
        if bias is not None:
            if bias.dtype != weights.dtype:
                raise TypeError(f"bias is {bias.dtype.name}, filter {weights.dtype.name}")
            channels = problem.groups * problem.channels_out
            if bias.shape != (channels,):
                raise ValueError(f"bias must have shape [{channels}], not {list(bias.shape)}")
        self._bias = bias
        self._compiled: CompiledKernel | None = None
        self._non_finite: NonFiniteOutputs | None = None
        # Kept beside the compiled kernel only where that has another.
        self._filter: Array | None = None
        self._numpy: TiledKernel | None = None
        self.path = wanted or choose_algorithm(
            problem, weights.dtype, compiled=compiled_module() is not None
        )
        if accuracy is Accuracy.DIRECT and self.path in NATIVE:
            self.path = Algorithm.DIRECT
        if self.path in NATIVE and supports(problem, weights.dtype):
            self._compiled = self._pack_compiled(weights)
            if not self._compiled.finite:
                self._filter = whole(weights)
                self._pack_non_finite(self._filter)
        else:
            self.path = Algorithm(self._pack_numpy(whole(weights)).name)

    def _pack_compiled(self, weights: Array | LazyTensor) -> CompiledKernel:
        fused = self.activation if self.element.kind not in "iu" else Activation()
        return CompiledKernel(
            self.problem,
            weights,
            self._bias,
            fused,
            forward=self._forward,
            filtering=NATIVE[self.path],
        )

    def _pack_non_finite(self, weights: Array) -> None:
        """Have the compiled kernel compute with the finite weights, and NumPy with the others."""
        from deconv_ir.kernels.numpy.nonfinite import NonFiniteOutputs, finite_part

        self._compiled = self._pack_compiled(finite_part(weights))
        self._non_finite = NonFiniteOutputs(
            self.problem, weights, self._bias, self.activation, forward=self._forward
        )

    def _pack_numpy(self, weights: Array) -> TiledKernel:
        from deconv_ir.kernels.numpy.method import grouped, pack

        by_group = grouped(self.problem, weights, forward=self._forward)
        method = "numpy" if self.path in NATIVE else self.path.value
        self._numpy = pack(
            self.problem,
            by_group,
            self._bias,
            self.activation,
            forward=self._forward,
            method=method,
        )
        return self._numpy

    def _numpy_kernel(self) -> TiledKernel:
        """Return the NumPy kernel, which is packed anew where the compiled one cannot run."""
        if self._numpy is not None:
            return self._numpy
        assert self._compiled is not None
        weights = self._filter
        return self._pack_numpy(self._compiled.unpacked() if weights is None else weights)

    def run(
        self,
        data: Array,
        pads_begin: Sequence[int],
        output: Sequence[int],
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
    ) -> Array:
        """Compute one output.

        Parameters
        ----------
        data : ndarray
            ``[N, groups * in, *X]`` of the filter's dtype, any strides; N and
            the X may be 0.
        pads_begin : sequence of int
            An axis each; may be negative or beyond the kernel.  Transposed:
            natural output position of the first output element.  Convolution:
            how many positions before the data the first window begins.
        output : sequence of int
            Extents of the output, an axis each; may exceed the natural ones.
        out : ndarray, optional
            Where the result goes, ``[N, groups * out, *output]``; may overlap `data`.
        budget : ScratchpadBudget, optional
            What the run may take for itself, within `scratch_bytes`; by
            default, what makes it fast.

        Returns
        -------
        ndarray
            The result; `out` if that was given.

        Raises
        ------
        TypeError
            `data` or `out` is not of the filter's dtype.
        ValueError
            A shape or a length does not fit.
        """
        pads, extents = check_run(self.problem, data.shape, tuple(pads_begin), tuple(output))
        budget = budget or UNLIMITED
        element = self.element
        if data.dtype != element:
            raise TypeError(f"data is {data.dtype.name}, filter {element.name}")
        shape = (data.shape[0], self.problem.groups * self.problem.channels_out, *extents)
        if not data.flags.aligned:
            data = data.copy()
        if out is None:
            out = empty(shape, element)
        elif out.shape != shape or out.dtype != element:
            raise ValueError(
                f"out must be {element.name} {list(shape)}, not {out.dtype.name} {list(out.shape)}"
            )
        elif np.may_share_memory(data, out):
            out[...] = self.run(data, pads, extents, None, budget)
            return out
        if not out.size or self._run_compiled(data, pads, out, budget):
            return out
        # Infinities and NaNs are results here, not mistakes to warn of.
        with np.errstate(all="ignore"):
            bound = self._numpy_bound(budget.scratch_bytes)
            self._numpy_kernel().run(self._by_group(data), pads, bound, self._by_group(out))
        return out

    def _by_group(self, array: Array) -> Array:
        """Return ``[N, groups * channels, *X]`` as a view ``[N, groups, channels, *X]``."""
        groups = self.problem.groups
        return array.reshape(len(array), groups, array.shape[1] // groups, *array.shape[2:])

    def bind(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        budget: ScratchpadBudget | None = None,
    ) -> Callable[[Array, Array | None], Array]:
        """Fix what `run` is given beside the arrays, and the number of threads.

        Parameters
        ----------
        data : tuple of int
            Shape of the data.
        pads_begin, output, budget
            As of `run`.

        Returns
        -------
        callable
            Takes data, and `out` or None; returns the output.

        Raises
        ------
        ValueError
            As of `run`.
        """
        pads, extents = check_run(self.problem, data, tuple(pads_begin), tuple(output))
        element = self.element
        shape = (data[0], self.problem.groups * self.problem.channels_out, *extents)
        budget = budget or UNLIMITED
        alone = self._non_finite is None and element.kind not in "iu"
        compiled = None
        if self._compiled is not None and 0 not in (*data, *shape) and alone:
            compiled = self._compiled.bind(pads, self.scratch_bytes, shape, budget)

        def run(array: Array, out: Array | None) -> Array:
            flags = array.flags
            if compiled is not None and array.shape == data and array.dtype == element:
                if out is None:
                    out = empty(shape, element)
                if flags.aligned and compiled(array, out):
                    return out
            return self.run(array, pads, extents, out, budget)

        return run

    def _numpy_bound(self, budget_bytes: int) -> int:
        return min(self.scratch_bytes, max(budget_bytes, _NUMPY_SCRATCH))

    @property
    def packed_bytes(self) -> int:
        """Bytes of filter and bias, in all forms that are kept."""
        kernels = (self._compiled, self._non_finite, self._numpy)
        packed = sum(kernel.packed_bytes for kernel in kernels if kernel is not None)
        return packed + sum(a.nbytes for a in (self._filter, self._bias) if a is not None)

    def candidates(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        budget_bytes: int,
    ) -> tuple[AlgorithmCandidate, ...]:
        """Return the algorithms that `run` can choose from with a scratchpad of this size.

        They are compared for one image on two threads, so that the choice among them
        depends on neither the batch nor the threads of a run.

        Parameters
        ----------
        data : tuple of int
            Shape of the data, of any number of images.
        pads_begin, output
            As of `run`.
        budget_bytes : int
            As of `ScratchpadBudget`.

        Returns
        -------
        tuple of AlgorithmCandidate
            The first takes no more weights; a second is there only where it
            is what `run` takes if it may.
        """
        pads, extents = check_run(self.problem, data, tuple(pads_begin), tuple(output))
        shape = (data[0], self.problem.groups * self.problem.channels_out, *extents)
        if 0 in (*data, *shape):
            return (AlgorithmCandidate(0.0, 0, 0),)
        if self._compiled is None:
            return (
                AlgorithmCandidate(0.0, self._numpy_scratch(data, pads, extents, budget_bytes), 0),
            )
        found = self._compiled.candidates(data, pads, self.scratch_bytes, shape, budget_bytes)
        least = self._non_finite_scratch(data, pads, extents, budget_bytes)
        return tuple(
            candidate._replace(scratch_bytes=max(candidate.scratch_bytes, least))
            for candidate in found
        )

    def _numpy_scratch(
        self,
        data: tuple[int, ...],
        pads: tuple[int, ...],
        output: tuple[int, ...],
        budget_bytes: int,
    ) -> int:
        bound = self._numpy_bound(budget_bytes)
        return self._numpy_kernel().scratch_bytes(data, pads, output, bound)

    def _non_finite_scratch(
        self,
        data: tuple[int, ...],
        pads: tuple[int, ...],
        output: tuple[int, ...],
        budget_bytes: int,
    ) -> int:
        if self._non_finite is None:
            return 0
        return self._non_finite.scratch_bytes(data, pads, output, self._numpy_bound(budget_bytes))

    def settle(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        budget: ScratchpadBudget = UNLIMITED,
    ) -> tuple[ScratchpadBudget, AlgorithmCandidate]:
        """Return the budget that a run needs at least, and the algorithm that it takes.

        Parameters
        ----------
        data : tuple of int
            Shape of the data.
        pads_begin, output, budget
            As of `run`.

        Returns
        -------
        ScratchpadBudget
            `budget`, or more where no tile is small enough for that.
        AlgorithmCandidate
        """
        pads, extents = check_run(self.problem, data, tuple(pads_begin), tuple(output))
        shape = (data[0], self.problem.groups * self.problem.channels_out, *extents)
        if 0 in (*data, *shape):
            return budget, AlgorithmCandidate(0.0, 0, 0)
        if self._compiled is None:
            scratch = self._numpy_scratch(data, pads, extents, budget.scratch_bytes)
            return budget, AlgorithmCandidate(0.0, scratch, 0)
        budget, chosen = self._compiled.settle(data, pads, self.scratch_bytes, shape, budget)
        least = self._non_finite_scratch(data, pads, extents, budget.scratch_bytes)
        return budget, chosen._replace(scratch_bytes=max(chosen.scratch_bytes, least))

    def _run_compiled(
        self, data: Array, pads: tuple[int, ...], out: Array, budget: ScratchpadBudget
    ) -> bool:
        if self._compiled is None or not out.flags.carray:
            return False
        if not self._compiled.run(data, pads, self.scratch_bytes, out, budget):
            return False
        if out.dtype.kind in "iu" and self.activation.kind is not ActivationKind.NONE:
            out[...] = self.activation.apply(out)
        if self._non_finite is not None:
            bound = self._numpy_bound(budget.scratch_bytes)
            with np.errstate(all="ignore"):
                self._non_finite.run(self._by_group(data), pads, bound, self._by_group(out))
        return True


class Deconvolution(_Prepared):
    """A transposed convolution with its filter packed, for any extents.

    Parameters
    ----------
    filter : ndarray or LazyTensor
        ``[groups * in, out, *K]``, at least one spatial axis.  f16, bf16, f32,
        f64, or any integer type.
    strides, dilations : sequence of int
        One entry a spatial axis, at least 1.
    groups : int
        Number of groups.
    bias : ndarray, optional
        ``[groups * out]``, of the filter's dtype; added to every output
        element, also where no tap reaches.
    activation : Activation, optional
        Applied to every output element, after the bias and before rounding.
    scratch_bytes : int
        Bound of the memory in use beside data, filter and result.
    path : str
        ``auto``, or the name of the kernel to use: ``compiled``, held to direct
        sums as ``direct`` or to Winograd as ``winograd``; ``numpy``, held to one
        of its methods as ``im2col`` or ``gemm_col2im``.  ``auto`` heeds the environment
        variable DECONV_IR_KERNEL.  A kernel
        that cannot compute the problem is replaced by the next.

    Raises
    ------
    TypeError
        The dtype has no arithmetic here (bool, complex, f8), or the bias has another.
    ValueError
        Shapes, strides, dilations or groups do not fit together, or there is
        no such kernel.

    Notes
    -----
    Computes ``full[t] = sum of data[x] * filter[k] over s*x + d*k == t`` and
    ``output[y] = full[y + pad_begin]`` where that exists, else 0: OpenVINO
    ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1, oneDNN Graph
    ConvTranspose-1 and ConvolutionBackwardData, 'Detailed description'.

    f32 and f64 are summed in their own precision; f16 and bf16 in f32, rounded
    once, after the bias; integers exactly, modulo 2^bits.
    """

    def __init__(
        self,
        filter: Array | LazyTensor,  # noqa: A002 - the documents' name
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        groups: int = 1,
        bias: Array | None = None,
        activation: Activation | None = None,
        scratch_bytes: int = DEFAULT_SCRATCH_BYTES,
        path: str = "auto",
        accuracy: Accuracy = Accuracy.FAST,
    ) -> None:
        problem = Problem.of_filter(filter.shape, strides, dilations, groups)
        super().__init__(
            filter, problem, bias, activation, scratch_bytes, path, accuracy, forward=False
        )


class Convolution(_Prepared):
    """A convolution with its filter packed, for any extents.

    Parameters
    ----------
    filter : ndarray or LazyTensor
        ``[groups * out, in, *K]``, at least one spatial axis.
    strides, dilations, groups, bias, activation, scratch_bytes, path, accuracy
        As of `Deconvolution`; every path but those of the compiled kernel is
        ``im2col`` here.

    Raises
    ------
    TypeError, ValueError
        As of `Deconvolution`.

    Notes
    -----
    Computes ``output[y] = sum of data[s*y + d*k - pad_begin] * filter[k]`` over
    the k for which the data exist: OpenVINO Convolution-1 and
    GroupConvolution-1.
    """

    def __init__(
        self,
        filter: Array | LazyTensor,  # noqa: A002 - the documents' name
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        groups: int = 1,
        bias: Array | None = None,
        activation: Activation | None = None,
        scratch_bytes: int = DEFAULT_SCRATCH_BYTES,
        path: str = "auto",
        accuracy: Accuracy = Accuracy.FAST,
    ) -> None:
        problem = Problem.of_filter(filter.shape, strides, dilations, groups, forward=True)
        super().__init__(
            filter, problem, bias, activation, scratch_bytes, path, accuracy, forward=True
        )
