"""How the memory of a process that runs a model once is handed back."""

from __future__ import annotations

import sys

# mallopt(3); malloc.h of glibc
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_LARGE = 64 << 10


def hand_back() -> None:
    """Let large arrays go back to the system when they die, as a plan counts on.

    The library keeps the memory of large results, the C library that of arrays
    smaller than the largest that has been freed, for each thread by itself.
    That spares a process that runs a model again and again the pages; one that
    runs it once would only be larger.
    """
    from deconv_ir import set_memory_pool_limit

    set_memory_pool_limit(0)
    if sys.platform != "linux":
        return
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGE)
    mallopt(_M_TRIM_THRESHOLD, _LARGE)
    mallopt(_M_TOP_PAD, 1 << 14)
    mallopt(_M_ARENA_MAX, 1)
