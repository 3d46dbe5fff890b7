"""Copies of arrays whose axes are transposed."""

from __future__ import annotations

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.runtime.cpu import INSTRUCTION_SETS, instruction_set
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.threads import get_threads

# Elements, and neighbouring ones of a column, from which the compiled copy is faster.
_LEAST_COPIED, _LEAST_ROWS = 1 << 12, 8
_MOST_DIMS = 10


def contiguous(array: Array) -> Array:
    """Return an array, or a copy of it, whose elements lie one after the other.

    In f32, where the elements of columns are neighbours in memory, blocks are transposed.
    """
    copy = in_order(array)
    return np.ascontiguousarray(array) if copy is None else copy


def in_order(array: Array) -> Array | None:
    """Return a contiguous array as it is, a compiled copy of a transposed one, or None."""
    if array.flags.c_contiguous:
        return array
    module = compiled_module()
    if (
        module is None
        or array.dtype != np.float32
        or array.size < _LEAST_COPIED
        or not array.flags.aligned
    ):
        return None
    shape = _joined(array)
    if not 2 <= len(shape) <= _MOST_DIMS or shape[-2] < _LEAST_ROWS:
        return None
    joined = array.reshape(shape)
    if joined.strides[-2] != joined.itemsize or 0 in joined.strides:
        return None
    out = empty(array.shape, array.dtype)
    isa = INSTRUCTION_SETS.index(instruction_set())
    module.copy_matrices(isa, joined, out, get_threads())
    return out


def _joined(array: Array) -> tuple[int, ...]:
    """Return a shape in which axes that follow each other in memory are one; a view has it."""
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
