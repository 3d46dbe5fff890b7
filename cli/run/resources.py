"""Threads and memory of a process that runs a model."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deconv_ir import Plan

# mallopt(3); malloc.h of glibc
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_SMALLEST = 32 << 10
_LARGEST = 2 << 20
# Pages of smaller tensors are mapped within a fraction of a millisecond.
_LEAST_REUSED = 1 << 20


@contextlib.contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Bound the threads of kernels and BLAS within the block; None: no bound."""
    if threads is None:
        yield
        return
    import numpy as np
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from deconv_ir.kernels import get_threads, set_threads

    np.ones((1, 1)) @ np.ones((1, 1))  # the BLAS must be loaded to be bounded
    set_threads(threads)
    try:
        with threadpool_limits(get_threads()):  # kernels bound it
            yield
    finally:
        set_threads(None)


def hand_back(plan: Plan | None = None) -> None:
    """Return the memory of freed large arrays to the system, as a plan assumes.

    The library keeps the memory of large results, and the C library, for each thread, that of
    arrays smaller than the largest one freed.  A process that runs a model once does not need this
    memory, except for the largest tensors of the plan.
    """
    from deconv_ir.kernels import reuse_within

    bound_bytes = 0 if plan is None else plan.bound_bytes
    tensor_bytes = 0 if plan is None else bound_bytes - plan.constant_bytes
    reuse_within(tensor_bytes if tensor_bytes >= _LEAST_REUSED else 0)
    if sys.platform != "linux":
        return
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    # The system clears pages before it reuses them: large models keep more of them.
    for option, share in ((_M_MMAP_THRESHOLD, 64), (_M_TRIM_THRESHOLD, 16)):
        mallopt(option, min(_LARGEST, max(_SMALLEST, bound_bytes // share)))
    mallopt(_M_TOP_PAD, 1 << 14)
    mallopt(_M_ARENA_MAX, 1)
