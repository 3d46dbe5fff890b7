"""The BLAS that NumPy brings: its name, and its threads."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["blas_name", "single_threaded"]


@functools.cache
def _library() -> ctypes.CDLL | None:
    """Return the loaded library through which NumPy's BLAS can be reached."""
    try:
        module = importlib.import_module("numpy._core._multiarray_umath")
        return ctypes.CDLL(str(module.__file__))
    except (ImportError, OSError):
        return None


def _symbol(*names: str) -> Any:
    library = _library()
    for name in names:
        with contextlib.suppress(AttributeError):
            return getattr(library, name)
    return None


@functools.cache
def _thread_functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    get = _symbol("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads")
    set_ = _symbol("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads")
    if get is None or set_ is None:
        get, set_ = _symbol("openblas_get_num_threads"), _symbol("openblas_set_num_threads")
    return None if get is None or set_ is None else (get, set_)


_regime = threading.Lock()
_depth = 0
_before = 0


@contextlib.contextmanager
def single_threaded() -> Iterator[bool]:
    """Hold the BLAS to one thread, for callers that call it from several of theirs.

    Yields
    ------
    bool
        Whether it could be done.  If not, the caller should use one thread.
    """
    global _depth, _before
    functions = _thread_functions()
    if functions is None:
        yield False
        return
    get, set_ = functions
    with _regime:
        if _depth == 0:
            _before = get()
            if _before != 1:
                set_(1)
        _depth += 1
    try:
        yield True
    finally:
        with _regime:
            _depth -= 1
            if _depth == 0 and _before != 1:
                set_(_before)


def _leave_callers_behind() -> None:
    """In a forked child, where the threads are not that asked for one thread."""
    global _regime, _depth
    _regime = threading.Lock()
    if _depth and (functions := _thread_functions()) is not None:
        functions[1](_before)
    _depth = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_callers_behind)


def blas_name() -> str:
    """Name NumPy's BLAS and its version, as far as NumPy knows."""
    with contextlib.suppress(Exception):
        config: Any = np.show_config(mode="dicts")
        blas = config["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas['version']}"
    return "unknown"
