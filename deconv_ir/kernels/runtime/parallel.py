"""Python threads for the kernels that spend their time in NumPy and the BLAS."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.kernels.runtime.fork import reset_in_child

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_MOST_WORKERS = 255
_lock = threading.Lock()
_workers: ThreadPoolExecutor | None = None
# Number of callers that limit the BLAS to one thread, and previous threads of each library.
_holders = 0
_before: list[int] = []


def _pool() -> ThreadPoolExecutor:
    """Return the workers, which are started on demand."""
    global _workers
    with _lock:
        if _workers is None:
            from concurrent.futures import ThreadPoolExecutor

            # Infinities and NaNs are valid results; NumPy's error state is not inherited by
            # threads.
            ignore = functools.partial(np.seterr, all="ignore")
            _workers = ThreadPoolExecutor(_MOST_WORKERS, "deconv-ir", initializer=ignore)
        return _workers


class _ThreadWork:
    """The work of one thread, done once.

    References to arrays are dropped before `run_jobs` returns: callers check reference counts.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.work: Callable[[], None] | None = work

    def __call__(self) -> None:
        work, self.work = self.work, None
        try:
            if work is not None:
                work()
        finally:
            del work


def run_jobs(make: Callable[[], Callable[[int], None]], jobs: int, threads: int) -> None:
    """Run jobs 0 to jobs - 1 on several threads, including the current one.

    `make` is called once on every thread that takes part, and returns a function that runs a job
    with its own scratch.  Threads other than the current one ignore floating-point errors.
    """
    ticket = itertools.count()
    ended = False

    def take_part() -> None:
        if not ended:
            do = make()
            while not ended and (job := next(ticket)) < jobs:
                do(job)

    parts = [_ThreadWork(take_part) for _ in range(min(threads, jobs) - 1)]
    helpers: list[Future[None]] = []
    try:
        # If the system refuses more threads, or the interpreter is shutting down, this thread does
        # all the work.
        with contextlib.suppress(RuntimeError):
            for part in parts:
                helpers.append(_pool().submit(part))
        take_part()
    finally:
        # Do not wait for workers that have not begun.
        ended = True
        begun = [helper for helper in helpers if not helper.cancel()]
        for part in parts:
            part.work = None
        failures = [helper.exception() for helper in begun]
    for failure in failures:
        if failure is not None:
            raise failure


def _blas_has_one_thread() -> bool:
    """Whether the environment gave the BLAS one thread; querying it takes an import of 10 ms.

    A program that has imported threadpoolctl may have given it more since.
    """
    given = os.environ.get("OPENBLAS_NUM_THREADS") == "1" and "threadpoolctl" not in sys.modules
    return given and _is_openblas()


@functools.cache
def _is_openblas() -> bool:
    built = np.show_config(mode="dicts") or {}
    return "openblas" in built.get("Build Dependencies", {}).get("blas", {}).get("name", "")


@functools.cache
def _blas() -> list[Any]:
    """Return the controllers of the threads of each loaded BLAS; empty if there are none."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_blas_threads(counts: list[int]) -> None:
    for library, count in zip(_blas(), counts, strict=True):
        library.set_num_threads(count)


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[bool]:
    """Limit the BLAS to one thread, for callers that call it from several threads.

    Yields whether the limit was set.  If not, the caller should use one thread.
    """
    global _holders, _before
    if _blas_has_one_thread():
        yield True
        return
    libraries = _blas()
    if not libraries:
        yield False
        return
    with _lock:
        if not _holders:
            _before = [library.get_num_threads() for library in libraries]
            _set_blas_threads([1] * len(libraries))
        _holders += 1
    try:
        yield True
    finally:
        with _lock:
            _holders -= 1
            if not _holders:
                _set_blas_threads(_before)


@reset_in_child
def forget_threads() -> None:
    """Reset the state in a forked child, which has neither the workers nor other callers."""
    global _lock, _workers, _holders
    _lock, _workers = threading.Lock(), None
    if _holders:
        _set_blas_threads(_before)
    _holders = 0
