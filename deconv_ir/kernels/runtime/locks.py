"""Locks that are released in a forked child."""

from __future__ import annotations

import threading
from types import TracebackType
from weakref import WeakSet

from deconv_ir.kernels.runtime.fork import reset_in_child


class ForkSafeLock:
    """A lock that is free in a forked child, whichever thread of the parent held it.

    For what a child may begin anew: the holder did not come along, and what it
    guards must be whole without what the holder was about to do.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    def reset(self) -> None:
        """Make it free."""
        self._lock = threading.Lock()


_all: WeakSet[ForkSafeLock] = WeakSet()


@reset_in_child
def _reset_all() -> None:
    for lock in _all:
        lock.reset()
