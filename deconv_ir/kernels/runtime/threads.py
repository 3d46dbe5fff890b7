"""How many threads the kernels use: one number for the whole process."""

from __future__ import annotations

import os

from deconv_ir.errors import SettingError

__all__ = ["get_threads", "set_threads"]

# The caller, and the workers that the compiled kernel's pool has room for.
_MOST_THREADS = 256
_threads = 0


def get_threads() -> int:
    """Return the number of threads in use: what was set, else all cores of this process."""
    if _threads:
        return _threads
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    return min(os.cpu_count() or 1, _MOST_THREADS)


def set_threads(count: int | None) -> None:
    """Use `count` threads from now on, at most 256; None: as many as this process has cores.

    Raises
    ------
    SettingError
        `count` is less than 1.
    """
    global _threads
    if count is not None and count < 1:
        raise SettingError(f"the number of threads must be at least 1, not {count}")
    _threads = min(count or 0, _MOST_THREADS)
