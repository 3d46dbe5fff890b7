"""Elementwise work on large arrays, in blocks whose intermediate results stay in cache.

Blocks are distributed to the kernels' threads.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays
from deconv_ir.ops.numeric import np

BLOCK = 1 << 15
"""Elements of a block: a few f32 arrays of this size fit into the second-level cache."""

# Smallest blocks: below the first number call overhead dominates, below the second the overhead of
# threads.
_LEAST = 1 << 12
_LEAST_SHARED = 1 << 13
# Results of narrow types are computed in f32, too.
_WIDTH = 4


class Blocks(NamedTuple):
    """The division of elementwise work: elements of a block, and number of threads."""

    elements: int
    threads: int


def is_small(count: int) -> bool:
    """Whether call overhead dominates elementwise work on this number of elements."""
    return count <= _LEAST


def cut(count: int, element_bytes: int, scratch_bytes: int) -> Blocks:
    """Divide the work on an array of `count` elements into blocks.

    `element_bytes` is the temporary memory of an element.  The total is bound by `scratch_bytes`,
    which is exceeded if blocks would become too small.
    """
    if is_small(count):
        return Blocks(_LEAST, 1)
    from deconv_ir.kernels import get_threads

    threads, most = get_threads(), scratch_bytes // max(1, element_bytes)
    if count <= BLOCK or most < threads * _LEAST_SHARED:
        return Blocks(max(_LEAST, min(BLOCK, most)), 1)
    return Blocks(min(BLOCK, most // threads), threads)


def element_bytes(temporaries: int, width: int) -> int:
    """Return the bytes of one element of each temporary array, in the working precision."""
    # Narrow operands are widened, and the result is narrowed.
    return temporaries * width if width >= _WIDTH else (temporaries + 2) * _WIDTH


def in_blocks(write: Callable[..., None], inputs: Arrays, out: Array, blocks: Blocks) -> None:
    """Call ``write(*inputs, out)`` for blocks of the arrays, without NumPy's warnings.

    The inputs can be broadcast to the shape of `out`, which may be one of them.
    """
    if out.size <= blocks.elements:
        with np.errstate(all="ignore"):
            write(*inputs, out)
        return
    from deconv_ir.kernels.runtime.parallel import run_jobs

    arrays = [*inputs, out]
    if all(a.size == 1 or (a.shape == out.shape and a.flags.c_contiguous) for a in arrays):
        arrays = [a.reshape(()) if a.size == 1 else a.reshape(-1) for a in arrays]
    else:
        arrays = [a.reshape(()) if a.size == 1 else np.broadcast_to(a, out.shape) for a in inputs]
        arrays.append(out)
    boxes = list(_boxes(arrays[-1].shape, blocks.elements))

    def make() -> Callable[[int], None]:
        def do(job: int) -> None:
            with np.errstate(all="ignore"):
                write(*(a if a.size == 1 else a[boxes[job]] for a in arrays))

        return do

    run_jobs(make, len(boxes), blocks.threads)


def _boxes(shape: Sequence[int], block: int) -> Iterator[tuple[Any, ...]]:
    """Yield the indices of blocks that cover an array, each as contiguous as possible."""
    axis = len(shape) - 1
    while math.prod(shape[axis:]) <= block:
        axis -= 1
    rows = max(1, block // math.prod(shape[axis + 1 :]))
    for outer in itertools.product(*map(range, shape[:axis])):
        for start in range(0, shape[axis], rows):
            yield (*outer, slice(start, start + rows))
