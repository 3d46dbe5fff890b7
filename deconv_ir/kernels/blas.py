"""The BLAS that NumPy brings: accumulating products, and its threads.

NumPy's own functions overwrite their result; ``C += A @ B`` in one call, as
the BLAS does it, saves a buffer and a pass over it.  The routine is found in
the library that NumPy has loaded anyway, tried once, and done without where it
is not found.
"""

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

__all__ = ["accumulate", "blas_name", "single_threaded"]

Array = np.ndarray[Any, np.dtype[Any]]

_ROW_MAJOR, _NO_TRANSPOSE = 101, 111


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


Gemm = Callable[[int, int, int, int, int, int, int, int, int, float], None]


@functools.cache
def _gemm(code: str) -> Gemm | None:
    """Return ``gemm(m, n, k, a, lda, b, ldb, c, ldc, beta)`` for ``f`` or ``d``, or None."""
    letter = {"f": "s", "d": "d"}[code]
    scalar = ctypes.c_float if code == "f" else ctypes.c_double
    for name, integer in (
        (f"scipy_cblas_{letter}gemm64_", ctypes.c_int64),
        (f"cblas_{letter}gemm64_", ctypes.c_int64),
        (f"scipy_cblas_{letter}gemm", ctypes.c_int),
        (f"cblas_{letter}gemm", ctypes.c_int),
    ):
        function = _symbol(name)
        if function is None:
            continue
        pointer, order = ctypes.c_void_p, ctypes.c_int
        function.restype = None
        function.argtypes = [order, order, order, integer, integer, integer, scalar]
        function.argtypes += [pointer, integer, pointer, integer, scalar, pointer, integer]

        def gemm(
            m: int,
            n: int,
            k: int,
            a: int,
            lda: int,
            b: int,
            ldb: int,
            c: int,
            ldc: int,
            beta: float,
            function: Any = function,
        ) -> None:
            function(
                _ROW_MAJOR, _NO_TRANSPOSE, _NO_TRANSPOSE, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc
            )

        return gemm if _works(gemm, code) else None
    return None


def _works(gemm: Gemm, code: str) -> bool:
    """Whether the routine that was found does what its name says."""
    a, b = np.arange(6, dtype=code).reshape(2, 3), np.arange(12, dtype=code).reshape(3, 4)
    c = np.ones((2, 4), code)
    gemm(2, 4, 3, a.ctypes.data, 3, b.ctypes.data, 4, c.ctypes.data, 4, 1.0)
    return bool(np.array_equal(c, a @ b + 1))


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def accumulate(a: Array, b: Array, c: Array, *, add: bool) -> None:
    """Write ``a @ b`` to `c`, or add it; rows may be apart, elements of a row may not."""
    gemm = _gemm(a.dtype.char) if a.dtype.char in "fd" else None
    m, k = a.shape
    n = b.shape[1]
    if gemm is None or not (m and n and k):
        if add:
            c += a @ b
        else:
            np.matmul(a, b, out=c)
        return
    size = a.itemsize
    lda, ldb, ldc = (max(x.strides[0] // size, x.shape[1], 1) for x in (a, b, c))
    gemm(m, n, k, _address(a), lda, _address(b), ldb, _address(c), ldc, float(add))


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
