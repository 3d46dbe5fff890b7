"""The choice between the compiled kernel and NumPy, when a filter is packed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.options import Accuracy
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import NATIVE, Algorithm, preferred_algorithm, wanted_algorithm
from deconv_ir.kernels.native import CompiledKernel, choose_fold, supports
from deconv_ir.kernels.plan import ConvolutionKernel
from deconv_ir.kernels.problem import Problem, accumulator_of

# The NumPy kernels are imported where they are used: most processes do not need them.
if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

DEFAULT_SCRATCH_BYTES = 64 << 20


def pack_filter(
    filter: Array | LazyTensor,  # noqa: A002 - the documents' name
    *,
    forward: bool,
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
    reads: bool = True,
) -> ConvolutionKernel:
    """Pack the filter of a convolution, or of a transposed one, for any extents.

    Parameters
    ----------
    filter : ndarray or LazyTensor
        ``[groups * in, out, *K]``, or ``[groups * out, in, *K]`` of a convolution; at least one
        spatial axis.  f16, bf16, f32, f64, or any integer type.
    forward : bool
        Whether it is a convolution; else a transposed one.
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
        ``im2col`` or ``gemm_col2im`` (a convolution has ``im2col`` alone).  ``auto`` respects the
        environment variable DECONV_IR_KERNEL.  A kernel that cannot compute the problem is replaced
        by the next.
    reads : bool
        Whether the filter is read; else the kernel can only plan.
    accuracy : Accuracy
        `Accuracy.DIRECT` excludes Winograd; `Accuracy.BF16` allows products of bf16 where they are
        faster, in which case data and filter are rounded.

    Notes
    -----
    A transposed convolution computes ``full[t] = sum of data[x] * filter[k] over s*x + d*k == t``
    and ``output[y] = full[y + pad_begin]`` where that exists, else 0: OpenVINO
    ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1, oneDNN Graph
    ConvTranspose-1 and ConvolutionBackwardData, 'Detailed description'.

    f32 and f64 are summed in their own precision; f16 and bf16 in f32, rounded
    once, after the bias; integers exactly, modulo 2^bits.

    A convolution computes ``output[y] = sum of data[s*y + d*k - pad_begin] * filter[k]`` over the k
    for which the data exist: OpenVINO Convolution-1 and GroupConvolution-1.
    """
    problem = Problem.of_filter(filter.shape, strides, dilations, groups, forward=forward)
    chosen = wanted_algorithm(algorithm) or preferred_algorithm()
    accumulator_of(filter.dtype)
    activation = activation or Activation()
    if bias is not None:
        if bias.dtype != filter.dtype:
            raise TypeError(f"bias is {bias.dtype.name}, filter {filter.dtype.name}")
        channels = problem.groups * problem.channels_out
        if bias.shape != (channels,):
            raise ValueError(f"bias must have shape [{channels}], not {list(bias.shape)}")
    stays_stored = isinstance(filter, LazyTensor) and filter.stays_stored
    if accuracy is Accuracy.BF16 and filter.dtype.name == "float32" and not stays_stored:
        from deconv_ir.kernels.bf16 import pack_faster

        return pack_faster(
            problem,
            filter,
            bias,
            activation,
            adds=adds,
            scratch_bytes=scratch_bytes,
            packer=packer,
            pack_f32=functools.partial(
                pack_filter,
                filter,
                forward=forward,
                strides=strides,
                dilations=dilations,
                groups=groups,
                bias=bias,
                activation=activation,
                adds=adds,
                scratch_bytes=scratch_bytes,
                algorithm=algorithm,
            ),
        )
    if accuracy.is_direct and chosen in NATIVE:
        chosen = Algorithm.DIRECT
    if chosen in NATIVE and supports(problem, filter.dtype):
        pack = functools.partial(
            CompiledKernel,
            problem,
            bias=bias,
            activation=activation,
            adds=adds,
            scratch_bytes=scratch_bytes,
            algorithm=chosen,
        )
        if isinstance(filter, LazyTensor) and filter.stays_stored:
            stored = _pack_codes(problem, filter, pack)
            if stored is not None:
                return stored
        compiled = pack(filter, packer=packer, reads=reads)
        if compiled.finite:
            return compiled
        del compiled  # its form of the filter is not needed
        if not adds:
            from deconv_ir.kernels.numpy.kernel import NonFiniteKernel

            return NonFiniteKernel(
                problem,
                filter,
                bias,
                activation,
                scratch_bytes=scratch_bytes,
                pack_finite=pack,
            )
    from deconv_ir.kernels.numpy.kernel import NumpyKernel

    return NumpyKernel(
        problem,
        filter,
        bias,
        activation,
        adds=adds,
        scratch_bytes=scratch_bytes,
        reads=reads,
        method="numpy" if chosen in NATIVE else chosen.value,
    )


def _pack_codes(
    problem: Problem, weights: LazyTensor, pack: Callable[..., CompiledKernel]
) -> CompiledKernel | None:
    """Pack a filter as it is stored; None if that is not possible."""
    from deconv_ir.kernels.filter_codes import filter_codes

    # Folded filters are small, and faster.
    folds = not problem.forward and choose_fold(problem) > 1
    codes = None if folds else filter_codes(problem, weights)
    if codes is None:
        return None
    with contextlib.suppress(FloatingPointError):
        return pack(weights, codes=codes)
    return None


pack_convolution = functools.partial(pack_filter, forward=True)
"""`pack_filter` for a convolution."""
pack_deconvolution = functools.partial(pack_filter, forward=False)
"""`pack_filter` for a transposed convolution."""
