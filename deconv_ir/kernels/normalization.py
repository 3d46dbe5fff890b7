"""Compiled standardisation, sums of rows and softmax, in f32."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.copies import contiguous
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.threads import get_threads


def standardize(
    data: Array,
    out: Array,
    row: int,
    *,
    eps: float,
    inside: bool = True,
    divides: bool = True,
    scale: Array | None = None,
    bias: Array | None = None,
) -> bool:
    """Write rows minus their mean, divided by their deviation.

    Data and `out`, which is contiguous, are f32; rows of `row` elements are contiguous.
    `eps` is added to the variance, or (``inside=False``) to its root; without `divides`, only the
    mean is subtracted.  `scale` and `bias` have a number for each index of the second axis of
    `data`.  Returns False if the extension was not built, or the arrays are not of f32.
    """
    module = compiled_module()
    if module is None or data.dtype != np.float32 or not data.size:
        return False
    inner = row
    if scale is not None:
        inner = data.size // (data.shape[0] * data.shape[1])
        scale = np.ascontiguousarray(scale, np.float32)
        bias = np.ascontiguousarray(bias, np.float32)
    fields = interface.standardize_fields(
        isa=isa_number(),
        row=row,
        inner=inner,
        eps=eps,
        inside=inside,
        divides=divides,
        threads=get_threads(),
    )
    module.standardize(contiguous(data), out, scale, bias, fields)
    return True


def row_standardizer(
    row: int, *, eps: float, inside: bool, divides: bool
) -> Callable[[Array, Array], None] | None:
    """Return `standardize` with these arguments; None if the extension was not built.

    The call takes data, not empty, and a contiguous array, both of f32.  The current number of
    threads is used.
    """
    module = compiled_module()
    if module is None:
        return None
    run = module.standardize
    fields = interface.standardize_fields(
        isa=isa_number(),
        row=row,
        inner=row,
        eps=eps,
        inside=inside,
        divides=divides,
        threads=get_threads(),
    )

    def call(data: Array, out: Array) -> None:
        data = data if data.flags.c_contiguous else contiguous(data)
        run(data, out, None, None, fields)

    return call


def row_sums(*, mean: bool) -> Callable[[Array, Array], None] | None:
    """Return a function that writes sums or means of rows; None if the extension was not built.

    The call takes data, whose last axes are the rows, and a contiguous array with an element for
    each row, both of f32.  The current number of threads is used.
    """
    module = compiled_module()
    if module is None:
        return None
    sum_rows = module.sum_rows
    fields = interface.sum_rows_fields(isa=isa_number(), mean=mean, threads=get_threads())
    return lambda data, out: sum_rows(contiguous(data), out, fields)


def softmax(data: Array, axis: int, *, logarithm: bool, out: Array | None = None) -> Array | None:
    """Return ``exp(x) / sum(exp(x))`` along an axis, or its logarithm; None: left to NumPy.

    The result is written to `out`, if given: a contiguous array like the data.
    Sums are in f64, in the order of the axis: the bits do not depend on the memory layout.
    """
    module = compiled_module()
    if module is None or data.dtype != np.float32 or not data.size:
        return None
    extents = math.prod(data.shape[:axis]), data.shape[axis], -1
    out = empty(data.shape, data.dtype) if out is None else out
    fields = interface.softmax_fields(isa=isa_number(), logarithm=logarithm, threads=get_threads())
    module.softmax(contiguous(data).reshape(extents), out, fields)
    return out
