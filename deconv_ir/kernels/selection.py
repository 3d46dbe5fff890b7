"""The k greatest or smallest elements along an axis, the first of equal ones first."""

from __future__ import annotations

from typing import Any

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.copies import contiguous
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.threads import get_threads

_MOST_COMPILED = 32
"""Elements selected by insertion; in C: MOST_SELECTED."""
_LEAST_POSITIONS = 8
"""Neighbouring positions that are selected from in one vector."""
_MOST_RANKED = 1 << 31
_NAN_RANK = 0x7FFFFF00


def select(
    data: Array, axis: int, count: int, *, smallest: bool, by_index: bool, index_type: np.dtype[Any]
) -> tuple[Array, Array]:
    """Return the elements that are selected along an axis, and their indices.

    `data` has a native type.  NaN is considered greater than any number.  The elements are in the
    order of their values, or of their indices.
    """
    module = compiled_module()
    if (
        module is None
        or data.dtype != np.float32
        or not (0 < count <= _MOST_COMPILED and data.size)
        or data.shape[axis] >= _MOST_RANKED
    ):
        order = _select_indices(data, axis, count, smallest=smallest, by_index=by_index)
        return np.take_along_axis(data, order, axis), order.astype(index_type)
    inner = data.size // max(1, int(np.prod(data.shape[: axis + 1])))
    if 1 < inner < _LEAST_POSITIONS:
        moved = np.moveaxis(data, axis, -1)
        values, indices = select(
            moved, data.ndim - 1, count,
            smallest=smallest, by_index=by_index, index_type=index_type,
        )  # fmt: skip
        return np.moveaxis(values, -1, axis), np.moveaxis(indices, -1, axis)
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    # C writes indices of 32 or 64 bits.
    written = index_type if index_type in (np.int32, np.int64) else np.dtype(np.int64)
    values, indices = empty(shape, data.dtype), empty(shape, written)
    module.select(
        contiguous(data).reshape(-1, data.shape[axis], inner),
        values.reshape(-1, count, inner),
        indices.reshape(-1, count, inner),
        interface.select_fields(
            isa=isa_number(), smallest=smallest, by_index=by_index, threads=get_threads()
        ),
    )
    return values, indices.astype(index_type, copy=False)


def _select_indices(data: Array, axis: int, count: int, *, smallest: bool, by_index: bool) -> Array:
    keys = np.moveaxis(data, axis, -1)
    extent = keys.shape[-1]
    if keys.dtype.itemsize <= 4 and extent < _MOST_RANKED:
        order = _select_ranked(keys, count, smallest=smallest)
    elif smallest:
        order = np.argsort(keys, axis=-1, kind="stable")[..., :count]
    else:
        # Sorted backwards, so that the first of equal elements comes first.
        backwards = np.argsort(keys[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        order = (extent - 1 - backwards)[..., :count]
    if by_index:
        order = np.sort(order, axis=-1)
    return np.moveaxis(order, -1, axis)


def _select_ranked(keys: Array, count: int, *, smallest: bool) -> Array:
    """Select by numbers that hold rank and index, which are unique and so need no stable sort."""
    extent = keys.shape[-1]
    ranks = _ranks(keys)
    if not smallest:
        np.invert(ranks, out=ranks)
    ranks <<= 32
    ranks |= np.arange(extent)
    if 0 < count < extent:
        ranks.partition(count - 1, axis=-1)
    chosen = ranks[..., :count]
    chosen.sort(axis=-1)
    return chosen & 0xFFFFFFFF


def _ranks(keys: Array) -> Array:
    """Return integers of 64 bits, of 32 bits or fewer, in the order of the elements."""
    if keys.dtype.kind in "iub":
        ranks = keys.astype(np.int64)
        return ranks - (1 << 31) if keys.dtype == np.uint32 else ranks
    # Zeros of both signs are equal.
    plain = keys + np.float32(0)
    bits = plain.view(np.int32)
    bits ^= (bits >> 31) & 0x7FFFFFFF
    ranks = bits.astype(np.int64)
    ranks[keys != keys] = _NAN_RANK
    return ranks
