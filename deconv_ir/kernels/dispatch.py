"""The prepared convolutions, on the path that was chosen for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.ir.lazy_tensor import LazyTensor, whole
from deconv_ir.ir.scratchpad import UNLIMITED, AlgorithmCandidate, ScratchpadBudget
from deconv_ir.kernels.activation import Activation, ActivationKind
from deconv_ir.kernels.algorithm import NATIVE, Algorithm, choose_algorithm, wanted_algorithm
from deconv_ir.kernels.arithmetic import Arithmetic, arithmetic_of
from deconv_ir.kernels.native import CompiledKernel, supports
from deconv_ir.kernels.problem import Problem, check_run, spans
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.spread import Spread

# The NumPy paths are imported where they are taken: most processes need none of them.
if TYPE_CHECKING:
    from deconv_ir.kernels.col2im import Col2im
    from deconv_ir.kernels.im2col import Im2col
    from deconv_ir.kernels.phases import Phases

__all__ = [
    "DEFAULT_SCRATCH_BYTES",
    "Convolution",
    "Deconvolution",
]

Array = np.ndarray[Any, np.dtype[Any]]

DEFAULT_SCRATCH_BYTES = 64 << 20
# What the NumPy kernels may always take: tiles that are smaller cost them more than they save.
_NUMPY_SCRATCH = 8 << 20
# Dilations from which on distances between taps may be beyond NumPy's strides.
_FARTHEST = 1 << 40


def _all_finite(weights: Array) -> bool:
    return bool(np.isfinite(weights).all())


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
        *,
        forward: bool,
    ) -> None:
        wanted = wanted_algorithm(path)
        self.problem = problem
        self.arithmetic: Arithmetic = arithmetic_of(weights.dtype, problem.channels_in)
        self.scratch_bytes = scratch_bytes
        self.activation = activation or Activation()
        if bias is not None:
            if bias.dtype != weights.dtype:
                raise TypeError(f"bias is {bias.dtype.name}, filter {weights.dtype.name}")
            channels = problem.groups * problem.channels_out
            if bias.shape != (channels,):
                raise ValueError(f"bias must have shape [{channels}], not {list(bias.shape)}")
        self._filter: Array | None = None
        self._bias = bias
        self._compiled: CompiledKernel | None = None
        self.path = wanted or choose_algorithm(
            problem, weights.dtype, compiled=compiled_module() is not None
        )
        if self.path in NATIVE and supports(problem, weights.dtype):
            fused = self.activation if weights.dtype.kind not in "iu" else Activation()
            kernel = CompiledKernel(
                problem, weights, bias, fused, forward=forward, filtering=NATIVE[self.path]
            )
            if kernel.finite:
                self._compiled = kernel
        if self._compiled is None:
            self._filter = whole(weights)

    def _unpacked(self) -> Array:
        """Return the filter, of which the compiled kernel keeps its packing only."""
        if self._filter is not None:
            return self._filter
        assert self._compiled is not None
        return self._compiled.unpacked()

    def run(
        self,
        data: Array,
        pads_begin: Sequence[int],
        output: Sequence[int],
        out: Array | None = None,
        room: ScratchpadBudget | None = None,
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
        room : ScratchpadBudget, optional
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
        room = room or UNLIMITED
        element = self.arithmetic.element
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
            out[...] = self.run(data, pads, extents, None, room)
            return out
        if not out.size or self._run_compiled(data, pads, out, room):
            return out
        # Infinities and NaNs are results here, not mistakes to warn of.
        with np.errstate(all="ignore"):
            self._run_numpy(data, pads, self._numpy_scratch(room.scratch_bytes), out)
        return out

    def bind(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        room: ScratchpadBudget | None = None,
    ) -> Callable[[Array, Array | None], Array]:
        """Fix what `run` is given beside the arrays, and the number of threads.

        Parameters
        ----------
        data : tuple of int
            Shape of the data.
        pads_begin, output, room
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
        element = self.arithmetic.element
        shape = (data[0], self.problem.groups * self.problem.channels_out, *extents)
        room = room or UNLIMITED
        integer = element.kind in "iu"
        compiled = None
        if self._compiled is not None and 0 not in (*data, *shape) and not integer:
            compiled = self._compiled.bind(pads, self.scratch_bytes, shape, room)

        def run(array: Array, out: Array | None) -> Array:
            flags = array.flags
            if compiled is not None and array.shape == data and array.dtype == element:
                if out is None:
                    out = empty(shape, element)
                if flags.aligned and compiled(array, out):
                    return out
            return self.run(array, pads, extents, out, room)

        return run

    def _numpy_scratch(self, room_bytes: int) -> int:
        return min(self.scratch_bytes, max(room_bytes, _NUMPY_SCRATCH))

    @property
    def packed_bytes(self) -> int:
        """Bytes of filter and bias; what the NumPy paths pack in their runs is not counted."""
        bias = 0 if self._bias is None else self._bias.nbytes
        if self._compiled is not None:
            return self._compiled.packed_bytes + bias
        assert self._filter is not None, "only the compiled kernel can give it back"
        return self._filter.nbytes + bias

    def ways(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        room_bytes: int,
    ) -> tuple[AlgorithmCandidate, ...]:
        """Return the ways that `run` has with so much room for scratch.

        Parameters
        ----------
        data : tuple of int
            Shape of the data.
        pads_begin, output
            As of `run`.
        room_bytes : int
            As of `ScratchpadBudget`.

        Returns
        -------
        tuple of AlgorithmCandidate
            The first takes no more weights.
        """
        pads, extents = check_run(self.problem, data, tuple(pads_begin), tuple(output))
        shape = (data[0], self.problem.groups * self.problem.channels_out, *extents)
        if 0 in (*data, *shape):
            return (AlgorithmCandidate(0.0, 0, 0),)
        if self._compiled is None:
            return (AlgorithmCandidate(0.0, self._numpy_scratch(room_bytes), 0),)
        return self._compiled.ways(data, pads, self.scratch_bytes, shape, room_bytes)

    def scratch(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        room: ScratchpadBudget | None = None,
    ) -> int:
        """Return the bytes that `run` takes beside data, filter and result; pack what it needs.

        Parameters
        ----------
        data : tuple of int
            Shape of the data.
        pads_begin, output, room
            As of `run`.

        Returns
        -------
        int
            For the NumPy kernels, what they may take.
        """
        pads, extents = check_run(self.problem, data, tuple(pads_begin), tuple(output))
        shape = (data[0], self.problem.groups * self.problem.channels_out, *extents)
        if 0 in (*data, *shape):
            return 0
        if self._compiled is None:
            return self._numpy_scratch((room or UNLIMITED).scratch_bytes)
        return self._compiled.scratch(data, pads, self.scratch_bytes, shape, room or UNLIMITED)

    def _run_compiled(
        self, data: Array, pads: tuple[int, ...], out: Array, room: ScratchpadBudget
    ) -> bool:
        if self._compiled is None or not out.flags.carray:
            return False
        if not self._compiled.run(data, pads, self.scratch_bytes, out, room):
            return False
        if out.dtype.kind in "iu" and self.activation.kind is not ActivationKind.NONE:
            out[...] = self.activation.apply(out)
        return True

    def _run_numpy(
        self, data: Array, pads: tuple[int, ...], scratch_bytes: int, out: Array
    ) -> None:
        raise NotImplementedError


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
        sums as ``direct`` or to minimal filtering as ``winograd``; ``phases``,
        ``col2im``.  ``auto`` heeds the environment variable DECONV_IR_KERNEL.  A kernel
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
    ) -> None:
        problem = Problem.of_filter(filter.shape, strides, dilations, groups)
        super().__init__(filter, problem, bias, activation, scratch_bytes, path, forward=False)
        self._col2im: Col2im | None = None
        self._phases: Phases | None = None
        self._spread = None if self._compiled is not None else Spread.of(problem)
        if self._compiled is not None:
            return
        if self._spread is not None:
            self._without_gaps = Deconvolution(
                self._unpacked(),
                strides=self._spread.strides,
                dilations=self._spread.dilations,
                groups=groups,
                bias=bias,
                activation=activation,
                scratch_bytes=scratch_bytes,
                path=path,
            )
            return
        near = max(problem.dilations) < _FARTHEST and filter.dtype.kind not in "iu"
        if self.path is not Algorithm.COL2IM and near and _all_finite(self._unpacked()):
            from deconv_ir.kernels.phases import Phases

            self.path = Algorithm.PHASES
            self._phases = Phases(problem, self.arithmetic, self._unpacked(), bias, self.activation)
        else:
            self.path = Algorithm.COL2IM
            self._pack_col2im()

    def _pack_col2im(self) -> Col2im:
        if self._col2im is None:
            from deconv_ir.kernels.col2im import Col2im

            self._col2im = Col2im(
                self.problem, self.arithmetic, self._unpacked(), self._bias, self.activation
            )
        return self._col2im

    def _run_numpy(
        self, data: Array, pads: tuple[int, ...], scratch_bytes: int, out: Array
    ) -> None:
        if self._spread is not None:
            self._spread.run(self._without_gaps.run, data, pads, out)
            return
        axes = spans(self.problem, data.shape[2:], pads, out.shape[2:])
        if self._phases is not None and self._phases.run(data, axes, scratch_bytes, out):
            return
        self._pack_col2im().run(data, axes, scratch_bytes, out)


class Convolution(_Prepared):
    """A convolution with its filter packed, for any extents.

    Parameters
    ----------
    filter : ndarray or LazyTensor
        ``[groups * out, in, *K]``, at least one spatial axis.
    strides, dilations, groups, bias, activation, scratch_bytes, path
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
    ) -> None:
        problem = Problem.of_filter(filter.shape, strides, dilations, groups, forward=True)
        super().__init__(filter, problem, bias, activation, scratch_bytes, path, forward=True)
        self._im2col: Im2col | None = None
        if self._compiled is None:
            self.path = Algorithm.IM2COL

    def _run_numpy(
        self, data: Array, pads: tuple[int, ...], scratch_bytes: int, out: Array
    ) -> None:
        if self._im2col is None:
            from deconv_ir.kernels.im2col import Im2col

            self._im2col = Im2col(
                self.problem, self.arithmetic, self._unpacked(), self._bias, self.activation
            )
        self._im2col.run(data, pads, scratch_bytes, out)
