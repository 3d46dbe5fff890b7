"""Matrix products: of stacks in one call, and of any arrays on the threads of the kernels.

A BLAS with threads of its own keeps these spinning after a product, and slows
down whatever runs next (docs/kernels.md, Threads).  Here it computes a part of
the result on each of our threads instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.kernels.runtime.parallel import run_jobs, single_threaded_blas
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

__all__ = ["LEAST_FOR_THREADS", "matmul", "multiply_stacks"]

# A result is cut into so many pieces at most, of so many multiply-adds and, where the cut goes
# through matrices, so many rows or columns at least.
_MOST_PIECES, _PIECE, _PIECE_ROWS = 32, 1 << 21, 32
LEAST_FOR_THREADS = 1 << 13
"""Multiply-adds below which no BLAS uses threads of its own."""


def matmul(a: Array, b: Array) -> Array:
    """Return ``a @ b``, as NumPy defines it, computed on several threads.

    Parameters
    ----------
    a : Array
        ``[..., M, K]``, or ``[K]``.
    b : Array
        ``[..., K, N]``, or ``[K]``; stacks are broadcast.

    Returns
    -------
    Array
        ``[..., M, N]``, without the axis of an operand of one axis; the same bits
        on any number of threads.

    Raises
    ------
    ValueError
        The shapes do not fit.
    """
    if a.ndim < 2 or b.ndim < 2:
        product: Array = np.matmul(a, b)
        return product
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous and a.size:
        # One product in place of a stack of them.
        rows = matmul(a.reshape(-1, a.shape[-1]), b)
        return rows.reshape(*a.shape[:-1], b.shape[-1])
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    product = np.empty(shape, np.result_type(a, b))
    # The longest axis of the result, counted from its end, is dealt out.
    axis = max(range(-product.ndim, 0), key=lambda i: product.shape[i])
    extent = product.shape[axis]
    most = extent if axis < -2 else extent // _PIECE_ROWS
    # How it is cut depends on shapes alone: a BLAS sums pieces of other sizes in another order.
    pieces = max(1, min(most, product.size * a.shape[-1] // _PIECE, _MOST_PIECES))
    with single_threaded_blas() as alone:

        def multiply(number: int) -> None:
            piece = slice(extent * number // pieces, extent * (number + 1) // pieces)
            rows = a if axis == -1 else _cut(a, axis, piece)
            columns = b if axis == -2 else _cut(b, axis, piece)
            np.matmul(rows, columns, out=_cut(product, axis, piece))

        run_jobs(lambda: multiply, pieces, get_threads() if alone else 1)
    return product


def multiply_stacks(a: Array, b: Array, out: Array) -> None:
    """Write the products of two stacks of matrices into `out`, in the caller's thread.

    Parameters
    ----------
    a, b : Array
        ``[..., M, K]`` and ``[..., K, N]``; stacks are broadcast.
    out : Array
        ``[..., M, N]``.
    """
    if a.shape[-1] == 1:
        # Depthwise: NumPy's loop for products of one term takes ten times as long.
        np.multiply(a, b, out=out)
    else:
        np.matmul(a, b, out=out)


def _cut(array: Array, axis: int, piece: slice) -> Array:
    """Take a piece of an axis, counted from the end, where it is there and not broadcast."""
    if -axis > array.ndim or array.shape[axis] == 1:
        return array
    index = [slice(None)] * array.ndim
    index[axis] = piece
    cut: Array = array[tuple(index)]
    return cut
