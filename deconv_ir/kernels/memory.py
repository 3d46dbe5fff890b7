"""Memory for results."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from deconv_ir.kernels.compiled import compiled_module

__all__ = ["empty", "is_pooled"]

Array = np.ndarray[Any, np.dtype[Any]]

# Smaller ones the C library's allocator hands out again by itself.
_LARGE_BYTES = 8 << 20


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialised array; a large one in memory that was used before, if there is any.

    Parameters
    ----------
    shape : sequence of int
        Extents.
    dtype : dtype
        Element type.

    Returns
    -------
    ndarray
        C-contiguous.  Its memory goes back to a small pool when the array and
        all of its views are gone; without the compiled kernel it is an array
        like any other.
    """
    size = math.prod(shape) * dtype.itemsize
    module = compiled_module() if _LARGE_BYTES <= size <= sys.maxsize else None
    if module is None:
        return np.empty(shape, dtype)
    return np.frombuffer(module.Block(size), dtype).reshape(shape)


def is_pooled(owner: object) -> bool:
    """Whether an array's base is memory of the pool, which nothing but that array shows."""
    module = compiled_module()
    return module is not None and isinstance(owner, module.Block)
