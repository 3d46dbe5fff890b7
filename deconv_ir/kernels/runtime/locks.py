"""Locks that are released in a forked child."""

from __future__ import annotations

import threading
from types import TracebackType
from weakref import WeakSet

from deconv_ir.kernels.runtime.fork import reset_in_child


class ForkSafeLock:
    """A lock that is free in a forked child, even if a thread of the parent held it.

    The holder does not exist in the child, so the guarded state must be consistent even if the
    holder did not finish.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        exception: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    def reset(self) -> None:
        """Replace the lock by a free one."""
        self._lock = threading.Lock()


_all: WeakSet[ForkSafeLock] = WeakSet()


@reset_in_child
def _reset_all() -> None:
    for lock in _all:
        lock.reset()
