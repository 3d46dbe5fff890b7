"""The number of threads that the kernels use: one for the whole process."""

from __future__ import annotations

import os

from deconv_ir.errors import SettingError

# The caller and the maximum workers of the compiled kernel's pool.
_MOST_THREADS = 256
_threads = 0


def get_threads() -> int:
    """Return the number of threads that the kernels use.

    Returns
    -------
    int
        The number set by `set_threads`, else the number of cores that this process may use.

    Examples
    --------
    >>> import deconv_ir
    >>> deconv_ir.get_threads() >= 1
    True
    """
    if _threads:
        return _threads
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    return min(os.cpu_count() or 1, _MOST_THREADS)


def set_threads(count: int | None) -> None:
    """Set the number of threads that the kernels use, for the whole process.

    Parameters
    ----------
    count : int or None
        At least 1; more than 256 has the effect of 256.  None: the number of
        cores that this process may use.

    Raises
    ------
    SettingError
        `count` is less than 1.

    Examples
    --------
    >>> import deconv_ir
    >>> deconv_ir.set_threads(1)
    >>> deconv_ir.get_threads()
    1
    >>> deconv_ir.set_threads(None)
    """
    global _threads
    if count is not None and count < 1:
        raise SettingError(f"the number of threads must be at least 1, not {count}")
    _threads = min(count or 0, _MOST_THREADS)
