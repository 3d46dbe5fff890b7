"""Memory for large results is used again."""

from __future__ import annotations

import numpy as np

from deconv_ir.kernels import memory

MIB = 1 << 20


def address_of(size: int) -> int:
    """Where an array of so many bytes lay; it is gone when this returns."""
    return int(memory.empty((size,), np.dtype(np.uint8)).ctypes.data)


def test_the_last_size_is_used_again():
    """Sizes that came before it do not keep the pool full."""
    for size in (60, 61, 150, 62, 9, 63, 64, 65, 66):
        address_of(size * MIB)
    first = address_of(130 * MIB)
    assert address_of(130 * MIB) == first

