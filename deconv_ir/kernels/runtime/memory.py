"""Memory for large results, reused after the last array that uses it is freed."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deconv_ir.errors import SettingError
from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.idle import limit_idle

# The C library's allocator reuses smaller blocks by itself.  It returns larger ones to the system,
# and mapping a page again takes as long as computing its contents.
_LARGE_BYTES = 256 << 10
# From this size on huge pages are faster, even if no memory is kept.
_HUGE_BYTES = 8 << 20
# The same bound as in _native/runtime/memory.c, which replaces this pool if it was built.
_kept_bytes = 192 << 20

# Keyed by address, oldest first.  Without a lock: any deallocation may return a block.
_kept: dict[int, Array] = {}


class _Block:
    """Memory that returns to the pool when the last array that uses it is freed."""

    def __init__(self, memory: Array, size: int) -> None:
        self.memory = memory
        self.__array_interface__ = self.memory[:size].__array_interface__

    def __del__(self) -> None:
        _give_back(self.memory)


def _take(size: int) -> Array:
    for address, memory in reversed(list(_kept.items())):
        if size <= len(memory) <= 2 * size and _kept.pop(address, None) is not None:
            return memory
    return np.empty(size, np.uint8)


def _give_back(memory: Array) -> None:
    if len(memory) > _kept_bytes:
        return
    _kept[id(memory)] = memory
    for address in list(_kept):
        if sum(map(len, list(_kept.values()))) <= _kept_bytes:
            break
        _kept.pop(address, None)


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialised array; a large one reuses pooled memory if possible.

    The memory of a large array returns to a bounded pool when it and its views are freed.
    """
    size = math.prod(shape) * dtype.itemsize
    small = not (_LARGE_BYTES if _kept_bytes else _HUGE_BYTES) <= size <= sys.maxsize
    if small or dtype.hasobject:
        return np.empty(shape, dtype)
    module = compiled_module()
    if module is None:
        return np.asarray(_Block(_take(size), size)).view(dtype).reshape(shape)
    return np.frombuffer(module.Block(size), dtype).reshape(shape)


def allocator(shape: Sequence[int], dtype: np.dtype[Any]) -> Callable[[], Array]:
    """Return a function that calls `empty` for a fixed shape."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE_BYTES or dtype.hasobject:
        return functools.partial(np.empty, shape, dtype)
    module = compiled_module()
    if module is None or size > sys.maxsize:
        return functools.partial(empty, shape, dtype)
    block, shape = module.Block, tuple(shape)

    def allocate() -> Array:
        if not _kept_bytes and size < _HUGE_BYTES:
            return np.empty(shape, dtype)
        return np.frombuffer(block(size), dtype).reshape(shape)

    return allocate


def set_memory_pool_limit(limit_bytes: int) -> None:
    """Bound the memory of freed results that is kept for later results.

    The memory of a result of 256 KiB or more returns to a pool when its last view is freed.
    The memory in the pool is released, and so are the arenas that models keep between runs, each
    within the same bound.

    Parameters
    ----------
    limit_bytes : int
        Bytes that the pool may hold, by default 192 MiB; 0 disables it.

    Raises
    ------
    SettingError
        `limit_bytes` is negative.

    Examples
    --------
    >>> import deconv_ir
    >>> deconv_ir.set_memory_pool_limit(0)  # release all, and keep nothing from now on
    """
    if limit_bytes < 0:
        raise SettingError(f"the memory pool's limit must be at least 0, not {limit_bytes}")
    _limit_pool(limit_bytes, sys.maxsize)
    limit_idle(limit_bytes)


def reuse_within(total_bytes: int) -> None:
    """Keep memory of freed results only as long as all results stay within a bound.

    For a process that runs a model once: the peak of its results does not grow.  The memory in the
    pool and in idle models is released.
    """
    # Without the extension, the pool does not know the memory of results.
    _limit_pool(0 if compiled_module() is None else total_bytes, total_bytes)
    limit_idle(0)


def _limit_pool(kept_bytes: int, total_bytes: int) -> None:
    global _kept_bytes
    _kept_bytes = kept_bytes
    _kept.clear()
    module = compiled_module()
    if module is not None:
        module.keep(kept_bytes, total_bytes)


def is_pooled(owner: object) -> bool:
    """Whether an array's base is memory of the pool that only this array uses."""
    module = compiled_module()
    return isinstance(owner, _Block if module is None else module.Block)
