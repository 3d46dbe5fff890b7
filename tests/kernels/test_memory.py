"""Memory for large results is used again."""

from __future__ import annotations

import numpy as np

from deconv_ir.kernels import memory

MIB = 1 << 20


def address_of(size: int) -> int:
    """Where an array of so many bytes lay; it is gone when this returns."""
    return int(memory.empty((size,), np.dtype(np.uint8)).ctypes.data)


def test_the_last_size_is_used_again():
    """Those of other sizes, which fill the pool, make room for it."""
    others = [memory.empty((45 * MIB,), np.dtype(np.uint8)) for _ in range(4)]
    del others
    first = address_of(130 * MIB)
    taken = memory.empty((131 * MIB,), np.dtype(np.uint8))  # what the system would give again
    assert taken.ctypes.data != first
    assert address_of(130 * MIB) == first
