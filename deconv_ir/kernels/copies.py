"""Copies of arrays whose axes are transposed."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.threads import get_threads

# Minimum elements, and contiguous elements of a column, for which the compiled copy is faster.
_LEAST_COPIED, _LEAST_ROWS = 1 << 12, 8
_MOST_DIMS = 10
# A last axis of so few elements is copied along the others: NumPy is 6× slower if its innermost
# loop is over two elements.
_FEW = 16


def contiguous(array: Array) -> Array:
    """Return an array if it is contiguous, otherwise a contiguous copy.

    f32 arrays whose columns are contiguous in memory are transposed in blocks.
    """
    if array.flags.c_contiguous:
        return array
    out = empty(array.shape, array.dtype)
    copy_into(array, out)
    return out


def is_turned(array: Array) -> bool:
    """Whether `in_order` copies an array."""
    return not array.flags.c_contiguous and _matrices(array) is not None


def in_order(array: Array) -> Array | None:
    """Return a contiguous array itself, a compiled copy of a transposed one, or None for others."""
    if array.flags.c_contiguous:
        return array
    matrices = _matrices(array)
    if matrices is None:
        return None
    out = empty(array.shape, array.dtype)
    _copy_matrices(matrices, out)
    return out


def bind_copy(array: Array, out: Array) -> Callable[[], object]:
    """Return the call of `copy_into`, for arrays whose memory does not move."""
    matrices = None
    if not array.flags.c_contiguous and out.flags.c_contiguous:
        matrices = _matrices(array)
    if matrices is not None:
        return functools.partial(_copy_matrices, matrices, out)
    return functools.partial(_copy_by_numpy, array, out)


def copy_into(array: Array, out: Array) -> None:
    """Copy an array, transposed or not, into another one of its shape and element type."""
    bind_copy(array, out)()


def _copy_by_numpy(array: Array, out: Array) -> None:
    if array.ndim and array.strides[-1] != array.itemsize and 1 < array.shape[-1] <= _FEW:
        for i in range(array.shape[-1]):
            out[..., i] = array[..., i]
    else:
        out[...] = array


def reshape_into(array: Array, out: Array) -> None:
    """Copy the elements of an array, transposed or not, in order into an array of any shape."""
    if out.flags.c_contiguous:
        copy_into(array, out.reshape(array.shape))
    else:
        out[...] = array.reshape(out.shape)


def _matrices(array: Array) -> Array | None:
    """Return a view as a stack of matrices with contiguous columns; None: NumPy copies it."""
    if (
        compiled_module() is None
        or array.dtype != np.float32
        or array.size < _LEAST_COPIED
        or not array.flags.aligned
    ):
        return None
    shape = _joined(array)
    if not 2 <= len(shape) <= _MOST_DIMS or shape[-2] < _LEAST_ROWS:
        return None
    joined = array.reshape(shape)
    return None if joined.strides[-2] != joined.itemsize or 0 in joined.strides else joined


def _copy_matrices(matrices: Array, out: Array) -> None:
    module = compiled_module()
    assert module is not None, "without, there are no matrices"
    fields = interface.copy_matrices_fields(isa=isa_number(), threads=get_threads())
    module.copy_matrices(matrices, out, fields)


def _joined(array: Array) -> tuple[int, ...]:
    """Return the shape with axes merged that are contiguous in memory; a view can have it."""
    shape: list[int] = []
    steps: list[int] = []
    for extent, step in zip(array.shape, array.strides, strict=True):
        if extent == 1:
            continue
        if shape and steps[-1] == extent * step:
            shape[-1], steps[-1] = shape[-1] * extent, step
        else:
            shape.append(extent)
            steps.append(step)
    return tuple(shape)
