"""A constant that is read a part at a time: a filter, while it is packed, is not there twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
    Constant: TypeAlias = Array | "LazyTensor"


class LazyTensor:
    """What can be asked for the elements of an array, in their order.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    read : callable
        Takes the first element and the one behind the last; returns them,
        ``[stop - start]``.
    """

    __slots__ = ("dtype", "read", "shape")

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, read: Callable[[int, int], Array]
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.read = read

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * int(self.dtype.itemsize)

    def reshape(self, *shape: int) -> LazyTensor:
        """Return the same elements in another shape."""
        return LazyTensor(shape, self.dtype, self.read)

    def whole(self) -> Array:
        """Read all of it."""
        return self.read(0, self.size).reshape(self.shape)


def joined(constant: Constant) -> Constant:
    """Make one axis of the first two."""
    first, second, *rest = constant.shape
    return constant.reshape(first * second, *rest)


def whole(constant: Constant) -> Array:
    """Return a constant as an array."""
    return constant.whole() if isinstance(constant, LazyTensor) else constant
