"""Mean and deviation taken off arrays, block by block."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any

from ..model import Context, TensorInfo
from ..shapes import element_count, static
from .numeric import widened_bytes, working_dtype

if TYPE_CHECKING:
    from ..dtypes import Array

# Elements that a thread works on at once, and the least that are squared at once.
_BLOCK = 1 << 16
_LEAST_SQUARED = 1 << 11


class EpsMode(enum.Enum):
    """Where eps is added."""

    INSIDE_SQRT = "inside_sqrt"
    OUTSIDE_SQRT = "outside_sqrt"


def standardize(
    np: Any,
    data: Array,
    axes: tuple[int, ...],
    eps: float,
    mode: EpsMode,
    *,
    variance: bool,
    scratch_bytes: int,
) -> Any:
    """Subtract the mean along axes and, with `variance`, divide by the deviation."""
    kept = data.ndim - len(axes)
    if min(axes, default=kept) < kept:
        moved = np.moveaxis(data, axes, range(kept, data.ndim))
        last = tuple(range(kept, data.ndim))
        found = standardize(
            np, moved, last, eps, mode, variance=variance, scratch_bytes=scratch_bytes
        )
        return np.moveaxis(found, range(kept, data.ndim), axes)
    rows = data.reshape(math.prod(data.shape[:kept]), -1)
    result = np.empty_like(rows)
    count, small = data.dtype.type(rows.shape[1]), data.dtype.type(eps)
    block = max(1, _BLOCK // max(1, rows.shape[1]))
    squared = _squared_elements(scratch_bytes, data.itemsize)

    def do(job: int) -> None:
        part = slice(job * block, (job + 1) * block)
        target = result[part]
        with np.errstate(all="ignore"):
            np.subtract(rows[part], np.add.reduce(rows[part], 1, keepdims=True) / count, out=target)
            if variance:
                spread = _sum_of_squares(np, target, squared) / count
                if mode is EpsMode.INSIDE_SQRT:
                    np.divide(target, np.sqrt(spread + small), out=target)
                else:
                    np.divide(target, np.sqrt(spread) + small, out=target)

    if len(rows) <= block:
        do(0)
    else:
        from ..kernels import get_threads
        from ..kernels.parallel import run_jobs

        run_jobs(lambda: do, -(-len(rows) // block), get_threads())
    return result.reshape(data.shape)


def _squared_elements(scratch_bytes: int, width: int) -> int:
    """Return how many elements a thread squares at once."""
    from ..kernels import get_threads

    return max(_LEAST_SQUARED, min(_BLOCK, scratch_bytes // (get_threads() * width)))


def _sum_of_squares(np: Any, rows: Array, at_once: int) -> Any:
    """Return the sums of the squares of rows, ``[rows, 1]``."""
    columns = max(1, at_once // max(1, len(rows)))
    if columns >= rows.shape[1]:
        return np.add.reduce(np.square(rows), 1, keepdims=True)
    starts = range(0, rows.shape[1], columns)
    parts = [np.add.reduce(np.square(rows[:, i : i + columns]), 1) for i in starts]
    return np.add.reduce(np.stack(parts, 1), 1, keepdims=True)


def standardize_bytes(data: TensorInfo, context: Context) -> int:
    """Return the bytes that `standardize` takes, with copies in f32 of narrow floats."""
    from ..kernels import get_threads

    if data.element_type is None:
        return 0
    count = element_count(static(data.shape))
    width = int(working_dtype(data.element_type.numpy()).itemsize)
    squared = _squared_elements(context.scratch_bytes, width)
    return min(count, get_threads() * squared) * width + widened_bytes(data)
