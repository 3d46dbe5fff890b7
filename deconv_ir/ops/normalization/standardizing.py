"""Standardisation of arrays by mean and deviation, block by block."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.numeric import np, widened_bytes, working_dtype

# Elements that a thread processes at once, and the minimum that it squares at once.
_BLOCK = 1 << 16
_LEAST_SQUARED = 1 << 11


class EpsMode(enum.Enum):
    """The position of eps in the formula."""

    INSIDE_SQRT = "inside_sqrt"
    OUTSIDE_SQRT = "outside_sqrt"


class Standardizing(NamedTuple):
    """The axes of mean and variance, the epsilon, and whether to divide by the deviation."""

    axes: tuple[int, ...]
    eps: float
    mode: EpsMode = EpsMode.INSIDE_SQRT
    variance: bool = True

    def factor(self, variance: Array) -> Array:
        """Return the factor of deviations from the mean, in f64."""
        if not self.variance:
            return np.ones_like(variance)
        if self.mode is EpsMode.INSIDE_SQRT:
            return 1 / np.sqrt(variance + self.eps)
        return 1 / (np.sqrt(variance) + self.eps)


def standardizer(
    shape: tuple[int, ...], dtype: Any, how: Standardizing, scratch_bytes: int
) -> Callable[[Array, Array | None], Array]:
    """Return a function that standardizes arrays of one shape, of f32 or f64.

    `scratch_bytes` bounds the temporary array of squares.  The function is called without NumPy's
    warnings, with the data and a contiguous array for the result (or None), which may be the data.
    """
    kept = len(shape) - len(how.axes)
    last = tuple(range(kept, len(shape)))
    if min(how.axes, default=kept) < kept:
        before = tuple(i for i in range(len(shape)) if i not in how.axes)
        moved = tuple(shape[i] for i in (*before, *how.axes))
        inner = standardizer(moved, dtype, how._replace(axes=last), scratch_bytes)

        def run_moved(data: Array, out: Array | None) -> Array:
            result = np.moveaxis(inner(np.moveaxis(data, how.axes, last), None), last, how.axes)
            if out is None:
                return result
            out[...] = result
            return out

        return run_moved
    flat = math.prod(shape[:kept]), math.prod(shape[kept:])
    compiled = _compiled(flat[1], how) if dtype == np.float32 and math.prod(flat) else None
    if compiled is not None:
        return compiled
    count, small = dtype.type(flat[1]), dtype.type(how.eps)
    block = max(1, _BLOCK // max(1, flat[1]))
    squared = _squared_elements(scratch_bytes, dtype.itemsize)

    def one_block(rows: Array, target: Array) -> None:
        np.subtract(rows, np.add.reduce(rows, 1, keepdims=True) / count, out=target)
        if not how.variance:
            return
        deviation = _sum_of_squares(target, squared)
        deviation /= count
        if how.mode is EpsMode.INSIDE_SQRT:
            deviation += small
        np.sqrt(deviation, out=deviation)
        if how.mode is EpsMode.OUTSIDE_SQRT:
            deviation += small
        np.divide(target, deviation, out=target)

    def run(data: Array, out: Array | None) -> Array:
        rows = data.reshape(flat)
        result = np.empty(flat, dtype) if out is None else out.reshape(flat)
        if len(rows) <= block:
            one_block(rows, result)
            return result.reshape(shape)
        from deconv_ir.kernels import get_threads
        from deconv_ir.kernels.runtime.parallel import run_jobs

        def do(job: int) -> None:
            part = slice(job * block, (job + 1) * block)
            one_block(rows[part], result[part])

        run_jobs(lambda: do, -(-len(rows) // block), get_threads())
        return result.reshape(shape)

    return run


def _compiled(row: int, how: Standardizing) -> Callable[[Array, Array | None], Array] | None:
    from deconv_ir.kernels import empty
    from deconv_ir.kernels.normalization import row_standardizer

    inside = how.mode is EpsMode.INSIDE_SQRT
    standardize = row_standardizer(row, eps=how.eps, inside=inside, divides=how.variance)
    if standardize is None:
        return None

    def run(data: Array, out: Array | None) -> Array:
        out = empty(data.shape, data.dtype) if out is None else out
        standardize(data, out)
        return out

    return run


def _squared_elements(scratch_bytes: int, width: int) -> int:
    """Return the number of elements that a thread squares at once."""
    from deconv_ir.kernels import get_threads

    return max(_LEAST_SQUARED, min(_BLOCK, scratch_bytes // (get_threads() * width)))


def _sum_of_squares(rows: Array, at_once: int) -> Any:
    """Return the sums of the squares of rows, ``[rows, 1]``."""
    columns = max(1, at_once // max(1, len(rows)))
    if columns >= rows.shape[1]:
        return np.add.reduce(np.square(rows), 1, keepdims=True)
    starts = range(0, rows.shape[1], columns)
    parts = [np.add.reduce(np.square(rows[:, i : i + columns]), 1) for i in starts]
    return np.add.reduce(np.stack(parts, 1), 1, keepdims=True)


def standardizer_bytes(data: TensorInfo, context: Context) -> int:
    """Return the bytes of temporary arrays, including copies in f32 of narrow floats."""
    from deconv_ir.kernels import get_threads

    if data.element_type is None:
        return 0
    count = element_count(static(data.shape))
    width = int(working_dtype(data.element_type.numpy()).itemsize)
    squared = _squared_elements(context.scratch_bytes, width)
    return min(count, get_threads() * squared) * width + widened_bytes(data)
