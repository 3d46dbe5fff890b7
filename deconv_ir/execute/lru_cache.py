"""A thread-safe LRU cache."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from deconv_ir.kernels.runtime.locks import ForkSafeLock

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LRUCache(Generic[_Key, _Value]):
    """Keeps the most recently used values; threads that need the same value compute it once."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: dict[_Key, _Value] = {}
        self._latest: tuple[_Key, _Value] | None = None
        self._lock = ForkSafeLock()

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """Return the value of a key, computing it if it is missing."""
        latest = self._latest
        if latest is not None and latest[0] == key:
            return latest[1]
        with self._lock:
            value = self._values.pop(key, None)
            if value is None:
                value = make()
            self._values[key] = value
            while len(self._values) > self._size:
                del self._values[next(iter(self._values))]
            self._latest = key, value
            return value
