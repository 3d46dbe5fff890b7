"""Objects that hold memory between runs, within the bound of the memory pool."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import WeakSet

from deconv_ir.kernels.runtime.locks import ForkSafeLock

_Item = TypeVar("_Item")
_MOST_ITEMS = 8


class Idle(Generic[_Item]):
    """A pool of objects that are not in use by a run; thread-safe."""

    limit_bytes = 192 << 20
    """Maximum bytes of each pool, of few objects; the oldest are dropped first."""

    def __init__(self) -> None:
        self._items: list[tuple[object, _Item, int]] = []
        self._lock = ForkSafeLock()
        _all.add(self)

    def take(self, key: object) -> _Item | None:
        """Remove and return an object of a key for a run; None if none is idle."""
        with self._lock:
            for place, (own, item, _) in enumerate(self._items):
                if own is key:
                    del self._items[place]
                    return item
        return None

    def give(self, key: object, item: _Item, size: int) -> None:
        """Keep an object that holds `size` bytes, within the bound."""
        with self._lock:
            self._items.append((key, item, size))
            held = size if len(self._items) == 1 else sum(size for *_, size in self._items)
            while held > self.limit_bytes or len(self._items) > _MOST_ITEMS:
                held -= self._items.pop(0)[2]

    def clear(self) -> None:
        """Release all objects."""
        with self._lock:
            self._items.clear()


_all: WeakSet[Idle[Any]] = WeakSet()


def limit_idle(limit_bytes: int) -> None:
    """Set the bound, and release all idle objects."""
    Idle.limit_bytes = limit_bytes
    clear_idle()


def clear_idle() -> None:
    """Release all idle objects."""
    for idle in list(_all):
        idle.clear()
