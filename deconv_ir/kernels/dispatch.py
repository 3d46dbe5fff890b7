"""Prepared convolutions, which choose between the compiled kernel and NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deconv_ir.ir.lazy_tensor import LazyTensor, whole
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.scratchpad import DIRECT, UNLIMITED, AlgorithmCandidate, ScratchpadBudget, Whole
from deconv_ir.kernels.activation import Activation, ActivationKind
from deconv_ir.kernels.algorithm import NATIVE, Algorithm, choose_algorithm, wanted_algorithm
from deconv_ir.kernels.native import CompiledKernel, CompiledPlan, supports
from deconv_ir.kernels.problem import Problem, accumulator_of, check_run
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty

# The NumPy kernels are imported where they are used: most processes do not need them.
if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.kernels.numpy.nonfinite import NonFiniteOutputs
    from deconv_ir.kernels.numpy.tiled import TiledKernel

DEFAULT_SCRATCH_BYTES = 64 << 20
# Scratch that NumPy's kernels may always use: smaller tiles cost more than they save.
_NUMPY_SCRATCH = 1 << 20
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
        self.scratch_bytes = scratch_bytes
        self.activation = activation or Activation()
        self._adds = adds
        if bias is not None:
            if bias.dtype != weights.dtype:
                raise TypeError(f"bias is {bias.dtype.name}, filter {weights.dtype.name}")
            channels = problem.groups * problem.channels_out
            if bias.shape != (channels,):
                raise ValueError(f"bias must have shape [{channels}], not {list(bias.shape)}")
        self._bias = bias
        self.compiled: CompiledKernel | None = None
        self.non_finite: NonFiniteOutputs | None = None
        # Kept only if the compiled kernel has other weights.
        self.filter: Array | None = None
        self._numpy: TiledKernel | None = None
        self.algorithm = wanted or choose_algorithm(
            problem, weights.dtype, compiled=compiled_module() is not None
        )
        if accuracy is Accuracy.DIRECT and self.algorithm in NATIVE:
            self.algorithm = Algorithm.DIRECT
        if self.algorithm in NATIVE and supports(problem, weights.dtype):
            self.compiled = self._pack_compiled(weights, packer)
            if not self.compiled.finite:
                self.filter = whole(weights)
                self._pack_non_finite(self.filter)
        else:
            self.algorithm = Algorithm(self._pack_numpy(whole(weights)).name)

    def _pack_compiled(self, weights: Array | LazyTensor, packer: Any = None) -> CompiledKernel:
        fused = self.activation if self.element.kind not in "iu" else Activation()
        winograd = NATIVE[self.algorithm]
        return CompiledKernel(
            self.problem, weights, self._bias, fused, winograd=winograd, packer=packer
        )

    def _pack_non_finite(self, weights: Array) -> None:
        """Pack the finite weights for the compiled kernel, and the others for NumPy."""
        from deconv_ir.kernels.numpy.nonfinite import NonFiniteOutputs, finite_part

        self.compiled = self._pack_compiled(finite_part(weights))
        self.non_finite = NonFiniteOutputs(self.problem, weights, self._bias, self.activation)

    def _pack_numpy(self, weights: Array) -> TiledKernel:
        from deconv_ir.kernels.numpy.method import grouped, pack

        by_group = grouped(self.problem, weights)
        method = "numpy" if self.algorithm in NATIVE else self.algorithm.value
        activation = Activation() if self._adds else self.activation
        self._numpy = pack(self.problem, by_group, self._bias, activation, method)
        return self._numpy

    def numpy_kernel(self) -> TiledKernel:
        """Return the NumPy kernel, packed on first use if the compiled kernel cannot run."""
        if self._numpy is not None:
            return self._numpy
        assert self.compiled is not None
        weights = self.filter
        return self._pack_numpy(self.compiled.unpacked() if weights is None else weights)

    @property
    def adds_in_cache(self) -> bool:
        """Whether runs add another tensor while results are in cache."""
        return self.compiled is not None and not self.non_finite and self.element == np.float32

    def plan(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        budget: ScratchpadBudget = UNLIMITED,
    ) -> KernelPlan:
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
        return KernelPlan(self, data, pads, shape, budget)

    def run(
        self,
        data: Array,
        pads_begin: Sequence[int],
        output: Sequence[int],
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
        addend: Array | None = None,
    ) -> Array:
        """Plan and run; parameters as in `plan` and `KernelPlan.run`.

        Without a budget, the filter is packed for this run alone: Winograd is used if it saves more
        time than the transform of the weights takes.
        """
        plan = self.plan(data.shape, pads_begin, output, budget or UNLIMITED)
        if budget is None and addend is None and self.algorithm is Algorithm.COMPILED:
            out = empty(plan.output, self.element) if out is None else out
            direct, *others = plan.candidates
            for other in others:
                transform = _TRANSFORM_CYCLES * other.weight_bytes
                if not other.packed and other.cycles + transform > direct.cycles:
                    plan = self.plan(data.shape, pads_begin, output, DIRECT)
        return plan.run(data, out, addend)

    def release(self) -> None:
        """Free packed weights that the next run can read again."""
        if self.compiled is not None:
            self.compiled.release()

    @property
    def packed_bytes(self) -> int:
        """Bytes of filter and bias, in all forms that are kept."""
        kernels = (self.compiled, self.non_finite, self._numpy)
        packed = sum(kernel.packed_bytes for kernel in kernels if kernel is not None)
        return packed + sum(a.nbytes for a in (self.filter, self._bias) if a is not None)


class KernelPlan:
    """A prepared convolution and the shapes of its data and output, made by `plan`."""

    def __init__(
        self,
        kernel: _Prepared,
        data: tuple[int, ...],
        pads: tuple[int, ...],
        output: tuple[int, ...],
        budget: ScratchpadBudget,
    ) -> None:
        self.data, self.output = data, output
        self._kernel, self._pads, self._budget = kernel, pads, budget
        self._compiled: CompiledPlan | None = None
        if kernel.compiled is not None and 0 not in output:
            bound = kernel.scratch_bytes
            self._compiled = CompiledPlan(kernel.compiled, data, pads, output, bound, budget)

    def __str__(self) -> str:
        details = self.details
        name = "direct sums" if self._compiled is not None else "NumPy"
        if details.get("depthwise"):
            name = "depthwise sums"
        if "winograd" in details:
            name = "Winograd " + " x ".join(f"F({m},{r})" for m, r in details["winograd"])
        text = f"{name}, scratchpad {self.scratchpad_bytes} B"
        if not details:
            return text
        tile = "x".join(map(str, details["tile"]))
        return f"{text}, tiles of {tile} positions on {details['threads']} threads"

    @functools.cached_property
    def algorithm(self) -> AlgorithmCandidate:
        """The algorithm of runs; the budget is raised if no tile fits."""
        chosen = AlgorithmCandidate(0.0, 0, 0)
        if 0 in (*self.data, *self.output):
            return chosen
        if self._compiled is not None:
            chosen = self._compiled.algorithm
        return self._with_numpy(chosen, self._numpy_bound)

    @property
    def scratchpad_bytes(self) -> int:
        """Scratchpad bytes of a run."""
        return self.algorithm.scratch_bytes

    @property
    def candidates(self) -> tuple[AlgorithmCandidate, ...]:
        """The algorithms that a run within this scratchpad can choose from.

        They are compared for one image on two threads, so that the choice depends on neither the
        batch nor the threads of a run.  The first packs no further weights; a second one is listed
        if a run uses it within a sufficient budget.
        """
        if self._compiled is None or 0 in self.data:
            return (self.algorithm,)
        bound = self._bound_numpy(self._budget)
        return tuple(self._with_numpy(found, bound) for found in self._compiled.candidates)

    @property
    def details(self) -> dict[str, Any]:
        """The tiling of the compiled kernel; empty if NumPy computes."""
        return {} if self._compiled is None else self._compiled.describe()

    @property
    def whole(self) -> Whole | None:
        """The extents that the bits of tiles depend on; None: each element is summed separately."""
        if not self.scratchpad_bytes or "winograd" not in self.details:
            return None
        spatial = len(self._pads)
        problem = self._kernel.problem
        # Windows of one tap read only the data of their outputs; others may overlap, or read more.
        margins = tuple(
            int(r > 1 and (not problem.forward or k % r > 0))
            for k, (_, r) in zip(problem.kernel, self.details["winograd"][-spatial:], strict=True)
        )
        steps = self.details["steps"][-spatial:]
        return Whole(self.data, self._pads, self.output[2:], steps, margins)

    def run(self, data: Array, out: Array | None = None, addend: Array | None = None) -> Array:
        """Compute the output, into `out` if given; missing weights are packed first.

        The data are of the planned shape and the filter's dtype, any strides; `out` may overlap
        them.  Raises `TypeError` or `ValueError` for an array of another dtype or shape. For a
        kernel that `adds`, the result equals NumPy's addition of `addend`, activated.
        """
        kernel, element = self._kernel, self._kernel.element
        if data.dtype != element:
            raise TypeError(f"data is {data.dtype.name}, filter {element.name}")
        if data.shape != self.data:
            raise ValueError(f"data must be {list(self.data)}, not {list(data.shape)}")
        if not data.flags.aligned:
            data = data.copy()
        if addend is not None and addend.dtype != element:
            raise TypeError(f"addend is {addend.dtype.name}, filter {element.name}")
        if addend is not None and (addend.shape != self.output or not kernel.adds_in_cache):
            return self._add(data, addend, out)
        if out is None:
            out = empty(self.output, element)
        elif out.shape != self.output or out.dtype != element:
            raise ValueError(
                f"out must be {element.name} {list(self.output)}, "
                f"not {out.dtype.name} {list(out.shape)}"
            )
        elif np.may_share_memory(data, out) or (
            addend is not None and np.may_share_memory(addend, out)
        ):
            out[...] = self.run(data, None, addend)
            return out
        if addend is not None and not (addend.flags.c_contiguous and addend.flags.aligned):
            addend = addend.copy()
        if out.size and not self._run_compiled(data, out, addend):
            if addend is not None:
                return self._add(data, addend, out)
            self._run_numpy(kernel.numpy_kernel(), data, out)
        return out

    def bind(self, data: Array, out: Array, addend: Array | None = None) -> Callable[[], object]:
        """Return a call for these arrays, whose memory must not move; parameters as in `run`."""
        run = functools.partial(self.run, data, out, addend)
        kernel, others = self._kernel, [data] if addend is None else [data, addend]
        is_direct = (
            self._compiled is not None
            and kernel.non_finite is None
            and kernel.element.kind not in "iu"
            and all(a.dtype == kernel.element and a.flags.aligned for a in (*others, out))
            and (data.shape, out.shape) == (self.data, self.output)
            and out.flags.carray
            and not any(np.may_share_memory(array, out) for array in others)
        )
        if addend is not None:
            fits = addend.shape == self.output and addend.flags.c_contiguous
            is_direct = is_direct and kernel.adds_in_cache and fits
        if not is_direct or self._compiled is None:
            return run
        return self._compiled.bind(data, out, addend, run)

    def _add(self, data: Array, addend: Array, out: Array | None) -> Array:
        """Compute with NumPy, and add another tensor, broadcast."""
        sums = empty(self.output, self._kernel.element)
        if sums.size:
            self._run_numpy(self._kernel.numpy_kernel(), data, sums)
        result = self._kernel.activation.apply(np.add(sums, addend))
        if out is None:
            return result
        out[...] = result
        return out

    def _run_compiled(self, data: Array, out: Array, addend: Array | None) -> bool:
        if self._compiled is None or not out.flags.carray:
            return False
        if not self._compiled.run(data, out, addend):
            return False
        kernel = self._kernel
        if out.dtype.kind in "iu" and kernel.activation.kind is not ActivationKind.NONE:
            out[...] = kernel.activation.apply(out)
        if kernel.non_finite is not None:
            self._run_numpy(kernel.non_finite, data, out)
        return True

    def _run_numpy(self, kernel: TiledKernel | NonFiniteOutputs, data: Array, out: Array) -> None:
        # Infinities and NaNs are valid results here, so warnings are off.
        with np.errstate(all="ignore"):
            kernel.run(self._by_group(data), self._pads, self._numpy_bound, self._by_group(out))

    def _with_numpy(self, chosen: AlgorithmCandidate, bound: int) -> AlgorithmCandidate:
        """Include the scratchpad of the NumPy kernel if it computes all or a part."""
        kernel: TiledKernel | NonFiniteOutputs | None = self._kernel.non_finite
        if self._compiled is None:
            kernel = self._kernel.numpy_kernel()
        if kernel is None:
            return chosen
        needed = kernel.scratch_bytes(self.data, self._pads, self.output[2:], bound)
        return chosen._replace(scratch_bytes=max(chosen.scratch_bytes, needed))

    @property
    def _numpy_bound(self) -> int:
        return self._bound_numpy(self._budget if self._compiled is None else self._compiled.budget)

    def _bound_numpy(self, budget: ScratchpadBudget) -> int:
        return min(self._kernel.scratch_bytes, max(budget.scratch_bytes, _NUMPY_SCRATCH))

    def _by_group(self, array: Array) -> Array:
        """Return ``[N, groups * channels, *X]`` as a view ``[N, groups, channels, *X]``."""
        groups = self._kernel.problem.groups
        return array.reshape(len(array), groups, array.shape[1] // groups, *array.shape[2:])


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
