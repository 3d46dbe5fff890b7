"""Elementwise work on large arrays: a block at a time, so that what is between stays in cache.

Blocks are dealt out to as many threads as the kernels use.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..dtypes import Array

BLOCK = 1 << 15
"""Elements: a few f32 arrays of so many are in the second-level cache together."""


def in_blocks(write: Callable[..., None], inputs: Sequence[Array], out: Array) -> None:
    """Call ``write(*inputs, out)`` for blocks of the arrays.

    Parameters
    ----------
    write : callable
        Takes arrays that can be broadcast, and where the result goes, which
        may be one of them; called without NumPy's warnings.
    inputs : sequence of ndarray
        Can be broadcast to the shape of `out`.
    out : ndarray
        May be one of the inputs.
    """
    import numpy as np

    if out.size <= BLOCK:
        with np.errstate(all="ignore"):
            write(*inputs, out)
        return
    from ..kernels import get_threads
    from ..kernels.parallel import run_jobs

    arrays = [*inputs, out]
    if all(a.size == 1 or (a.shape == out.shape and a.flags.c_contiguous) for a in arrays):
        arrays = [a.reshape(()) if a.size == 1 else a.reshape(-1) for a in arrays]
    else:
        arrays = [a if a.size == 1 else np.broadcast_to(a, out.shape) for a in inputs] + [out]
    boxes = list(_boxes(arrays[-1].shape))

    def make() -> Callable[[int], None]:
        def do(job: int) -> None:
            with np.errstate(all="ignore"):
                write(*(a if a.size == 1 else a[boxes[job]] for a in arrays))

        return do

    run_jobs(make, len(boxes), get_threads())


def _boxes(shape: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Yield the indices of blocks that fill an array, each in one run as long as can be."""
    axis = len(shape) - 1
    while math.prod(shape[axis:]) <= BLOCK:
        axis -= 1
    rows = max(1, BLOCK // math.prod(shape[axis + 1 :]))
    for outer in itertools.product(*map(range, shape[:axis])):
        for start in range(0, shape[axis], rows):
            yield (*outer, slice(start, start + rows))
