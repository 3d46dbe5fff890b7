"""The choice between the two NumPy methods: a pure function of the layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.numpy.filter_parts import FilterPart
from deconv_ir.kernels.numpy.gemm_col2im import GemmCol2im
from deconv_ir.kernels.numpy.im2col import Im2col
from deconv_ir.kernels.numpy.subconvolution import sub_convolutions
from deconv_ir.kernels.numpy.tiled import TiledKernel
from deconv_ir.kernels.problem import Problem

# Times of copying an element, and of adding a product to a sum, in multiply-adds.
_COPY, _ADD = 24, 40
# Share of extra products of im2col on each axis, because of the zeros around the data.
_ZEROS = 1 / 48


def choose_method(problem: Problem, element: np.dtype[Any]) -> type[Im2col] | type[GemmCol2im]:
    """Choose the method with less work in addition to the common products."""
    if problem.forward or element.kind in "iu" or not GemmCol2im.fits(problem):
        return Im2col
    parts = sub_convolutions(problem)
    # im2col copies an input position for each tap; col2im adds a product for each tap except the
    # first of each sub-convolution.
    copied = problem.channels_in * sum(part.taps for part in parts)
    added = problem.channels_out * (problem.taps - sum(part.number for part in parts))
    products = problem.channels_in * problem.channels_out * problem.taps
    zeros = products * problem.axes * _ZEROS
    return GemmCol2im if _ADD * added <= _COPY * copied + zeros else Im2col


def pack(
    problem: Problem,
    parts: Iterable[FilterPart],
    element: np.dtype[Any],
    bias: Array | None,
    activation: Activation,
    method: str = "numpy",
) -> TiledKernel:
    """Pack a filter for the faster method, or for the named one, if possible.

    The parts are those of a filter of this type, the bias is ``[groups * out]``; `method` is
    ``numpy`` (choose), ``im2col`` or ``gemm_col2im``.
    """
    chosen = choose_method(problem, element)
    possible = not problem.forward and element.kind not in "iu" and GemmCol2im.fits(problem)
    if method == "im2col":
        chosen = Im2col
    elif method == "gemm_col2im" and possible:
        chosen = GemmCol2im
    return chosen(problem, parts, element, bias, activation)
