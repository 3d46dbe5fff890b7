"""Python threads for the kernels that spend their time in NumPy and the BLAS."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import numpy as np

__all__ = ["run_jobs"]


# Of one call: an interrupted one leaves nothing that the next could take for its own.
_Outcomes = SimpleQueue[BaseException | None]


class _Order:
    """Work for a worker, which whoever acquires the claim first does, or calls off."""

    def __init__(self, work: Callable[[], None], outcomes: _Outcomes) -> None:
        self.work: Callable[[], None] | None = work
        self.outcomes = outcomes
        self.claim = threading.Lock()

    def call_off(self) -> bool:
        """Take the work back, and let go of its arrays; False: a worker has begun it."""
        if not self.claim.acquire(blocking=False):
            return False
        self.work = None
        return True


class _Worker:
    """A thread that waits for work; daemonic, so that it never keeps a process alive."""

    def __init__(self) -> None:
        self.orders: SimpleQueue[_Order] = SimpleQueue()
        self.thread = threading.Thread(target=self._loop, name="deconv-ir", daemon=True)
        self.thread.start()

    def _loop(self) -> None:
        # Infinities and NaNs are results; a thread does not inherit that this is known.
        np.seterr(all="ignore")
        while True:
            order = self.orders.get()
            if not order.claim.acquire(blocking=False) or order.work is None:
                del order
                continue
            failure: BaseException | None = None
            try:
                order.work()
            except BaseException as error:
                failure = error
            # Before it is told: whoever waits may count who holds its arrays.
            order.work = None
            order.outcomes.put(failure)
            del order, failure


_workers: list[_Worker] = []
_busy = threading.Lock()
_placed = (-1, 0)


def _forget_workers() -> None:
    global _busy, _placed
    _workers.clear()
    _placed = (-1, 0)
    _busy = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


@functools.cache
def _current_core() -> Callable[[], int] | None:
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        function: Callable[[], int] = ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None
    return function


@contextlib.contextmanager
def _apart(workers: list[_Worker]) -> Iterator[None]:
    """Keep the workers off the caller's core, and the caller on it.

    The system wakes a thread where its waker runs.  Whoever waits for the interpreter lock
    is woken by whoever has it: both were on one core soon, and stayed there for milliseconds.
    """
    global _placed
    current = _current_core()
    core = current() if current else -1
    cores = os.sched_getaffinity(0) if core >= 0 else set()
    if core not in cores or len(cores) < 2:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            if (core, len(workers)) != _placed:
                for worker in workers:
                    if worker.thread.native_id is not None:
                        os.sched_setaffinity(worker.thread.native_id, cores - {core})
                _placed = core, len(workers)
            os.sched_setaffinity(0, {core})
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def _start_workers(count: int) -> None:
    """Have `count` workers, or as many as the system gives."""
    with contextlib.suppress(RuntimeError):
        while len(_workers) < count:
            _workers.append(_Worker())


def run_jobs(make: Callable[[], Callable[[int], None]], jobs: int, threads: int) -> None:
    """Do jobs 0 to jobs - 1 on several threads, this one included.

    Parameters
    ----------
    make : callable
        Called once on every thread that takes part; returns what does a job
        there, with scratch of its own.  Other threads than this one ignore
        floating-point errors.
    jobs, threads : int
        How many of each.
    """
    helpers = min(threads, jobs) - 1
    # Someone else's jobs have the workers: do not wait, the machine is busy.
    if helpers < 1 or not _busy.acquire(blocking=False):
        do = make()
        for job in range(jobs):
            do(job)
        return
    try:
        _start_workers(helpers)
        workers = _workers[:helpers]
        ticket = itertools.count()

        def take_part() -> None:
            do = make()
            while (job := next(ticket)) < jobs:
                do(job)

        outcomes: _Outcomes = SimpleQueue()
        orders = [_Order(take_part, outcomes) for _ in workers]
        failure: BaseException | None = None
        with _apart(workers):
            for worker, order in zip(workers, orders, strict=True):
                worker.orders.put(order)
            try:
                take_part()
            except BaseException as error:
                failure = error
            for order in orders:
                # Nothing is left to do for one that did not come round to it yet.
                if not order.call_off():
                    failure = outcomes.get() or failure
        if failure is not None:
            raise failure
    finally:
        _busy.release()
