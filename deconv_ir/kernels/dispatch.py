"""The prepared transposed convolution, and which kernel computes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deconv_ir.kernels.arithmetic import arithmetic_of
from deconv_ir.kernels.col2im import Col2im
from deconv_ir.kernels.problem import Problem, check_run, spans

__all__ = ["DEFAULT_SCRATCH_BYTES", "Deconvolution"]

Array = np.ndarray[Any, np.dtype[Any]]

DEFAULT_SCRATCH_BYTES = 64 << 20


class Deconvolution:
    """A transposed convolution with its filter packed, for any extents.

    Parameters
    ----------
    filter : ndarray
        ``[groups * in, out, *K]``, at least one spatial axis.  f16, bf16, f32,
        f64, or any integer type.
    strides, dilations : sequence of int
        One entry a spatial axis, at least 1.
    groups : int
        Number of groups.
    bias : ndarray, optional
        ``[groups * out]``, of the filter's dtype; added to every output
        element, also where no tap reaches.
    scratch_bytes : int
        Bound of the memory in use beside data, filter and result.
    path : str
        ``auto``, or the name of the kernel to use: ``col2im``.

    Raises
    ------
    TypeError
        The dtype has no arithmetic here (bool, complex, f8), or the bias has another.
    ValueError
        Shapes, strides, dilations or groups do not fit together.

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
        filter: Array,  # noqa: A002 - the documents' name
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        groups: int = 1,
        bias: Array | None = None,
        scratch_bytes: int = DEFAULT_SCRATCH_BYTES,
        path: str = "auto",
    ) -> None:
        if path not in ("auto", "col2im"):
            raise ValueError(f"unknown kernel {path!r}")
        self.problem = Problem.of_filter(filter.shape, strides, dilations, groups)
        self.arithmetic = arithmetic_of(filter.dtype, self.problem.channels_in)
        self.scratch_bytes = scratch_bytes
        self._bias: Array | None = None
        if bias is not None:
            if bias.dtype != filter.dtype:
                raise TypeError(f"bias is {bias.dtype.name}, filter {filter.dtype.name}")
            channels = self.problem.groups * self.problem.channels_out
            if bias.shape != (channels,):
                raise ValueError(f"bias must have shape [{channels}], not {list(bias.shape)}")
            self._bias = bias.astype(self.arithmetic.accumulator)
        self._kernel = Col2im(self.problem, self.arithmetic, filter)

    def run(
        self,
        data: Array,
        pads_begin: Sequence[int],
        output: Sequence[int],
        out: Array | None = None,
    ) -> Array:
        """Compute one output.

        Parameters
        ----------
        data : ndarray
            ``[N, groups * in, *X]`` of the filter's dtype, any strides; N and
            the X may be 0.
        pads_begin : sequence of int
            Natural output position of the first output element, an axis each;
            may be negative or beyond the kernel.
        output : sequence of int
            Extents of the output, an axis each; may exceed the natural ones.
        out : ndarray, optional
            Where the result goes, ``[N, groups * out, *output]``.

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
        pads, extents = check_run(self.problem, data, pads_begin, output)
        element = self.arithmetic.element
        if data.dtype != element:
            raise TypeError(f"data is {data.dtype.name}, filter {element.name}")
        shape = (data.shape[0], self.problem.groups * self.problem.channels_out, *extents)
        if out is None:
            out = np.empty(shape, element)
        elif out.shape != shape or out.dtype != element:
            raise ValueError(
                f"out must be {element.name} {list(shape)}, not {out.dtype.name} {list(out.shape)}"
            )
        if out.size:
            axes = spans(self.problem, data.shape[2:], pads, extents)
            # Infinities and NaNs are results here, not mistakes to warn of.
            with np.errstate(all="ignore"):
                self._kernel.run(data, axes, self._bias, self.scratch_bytes, out)
        return out
