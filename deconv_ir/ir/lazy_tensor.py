"""Constants that are read in parts, so that a filter is not in memory twice."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from deconv_ir.ir.dtypes import Array, ElementType


class Codes(NamedTuple):
    """Elements as a file stores them, and what computes them: ``(number - zero) * scale``.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import Codes
    >>> from deconv_ir.ir.dtypes import parse_element_type
    >>> stored = np.array([0x21], np.uint8)
    >>> numbers = lambda: np.arange(16, dtype=np.float32)
    >>> u4 = parse_element_type("u4")
    >>> codes = Codes(u4, lambda start, stop: stored, numbers, (2,), scale=np.float32(2))
    >>> codes.nbytes
    5
    """

    element_type: ElementType
    """The type of the stored numbers."""
    read: Callable[[int, int], Array]
    """Called with two elements, at the borders of bytes; returns the bytes of those between."""
    numbers: Callable[[], Array]
    """Returns the numbers of all codes of up to 8 bits, in f32."""
    axes: tuple[int, ...]
    """Extents of the axes to which `zero` and `scale` are broadcast."""
    halves: bool = False
    """Whether the stored numbers are rounded to f16 first."""
    zero: Array | None = None
    """Subtracted in f32; None: 0."""
    scale: Array | None = None
    """In f16 or f32; products are rounded to this type.  None: 1."""

    @property
    def nbytes(self) -> int:
        """Bytes of the stored numbers, zeros and scales."""
        others = (array.nbytes for array in (self.zero, self.scale) if array is not None)
        return self.element_type.size_of(math.prod(self.axes)) + sum(others)


class LazyTensor:
    """A constant whose elements are read on request, in parts.

    Parameters
    ----------
    shape : tuple of int
        Extents.
    dtype : numpy.dtype
        Element type.
    read : callable
        Called with `start` and `stop`; returns these elements as an array, ``[stop - start]``.
    part_bytes : int
        Bytes that `parts` reads at once; at least one row is read.
    file : tuple of int, optional
        Descriptor of an open file that holds the elements unchanged, and their offset in it.
    codes : Codes, optional
        The elements as they are stored, if in fewer bytes.
    stays_stored : bool
        Whether a kernel should keep them so, although it is faster with unpacked ones.
    is_reread : bool
        Whether a kernel may free what it has packed, and read the elements again.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import LazyTensor
    >>> tensor = LazyTensor((2, 3), np.dtype(np.int64), np.arange)
    >>> tensor.nbytes
    48
    >>> tensor.whole()
    array([[0, 1, 2],
           [3, 4, 5]])
    """

    __slots__ = (
        "codes", "dtype", "file", "is_reread", "part_bytes", "read", "shape", "stays_stored",
    )  # fmt: skip

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        read: Callable[[int, int], Array],
        part_bytes: int = 1 << 16,
        file: tuple[int, int] | None = None,
        codes: Codes | None = None,
        *,
        stays_stored: bool = False,
        is_reread: bool = False,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.read = read
        self.part_bytes = part_bytes
        self.file = file
        self.codes = codes
        self.stays_stored = stays_stored
        self.is_reread = is_reread

    @property
    def stored_bytes(self) -> int:
        """Bytes of the elements as they are stored."""
        return self.nbytes if self.codes is None else self.codes.nbytes

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

    def reshape(self, *shape: int) -> "LazyTensor":
        """Return a lazy tensor of the same elements in another shape."""
        return LazyTensor(
            shape,
            self.dtype,
            self.read,
            self.part_bytes,
            self.file,
            self.codes,
            stays_stored=self.stays_stored,
            is_reread=self.is_reread,
        )

    def whole(self) -> Array:
        """Read all elements; in parts, since computing them may need memory."""
        if self.file is not None or self.shape[:1] == (1,) or self.nbytes <= self.part_bytes:
            return self.read(0, self.size).reshape(self.shape)
        import numpy as np

        found = np.empty(self.size, self.dtype)
        row = self.size // self.shape[0]
        for first, part in self.parts(multiple=8):  # elements of 1 to 4 bits fill bytes
            found[first * row : first * row + part.size] = part
        return found.reshape(self.shape)

    def parts(self, multiple: int = 1) -> Iterator[tuple[int, Array]]:
        """Iterate over blocks of whole rows: the index of the first row, and the elements.

        Each begins at a multiple of `multiple` rows.
        """
        rows, row = self.shape[0], math.prod(self.shape[1:])
        most = self.part_bytes // max(1, row * int(self.dtype.itemsize))
        step = max(1, most // multiple) * multiple
        for first in range(0, rows, step):
            last = min(first + step, rows)
            yield first, self.read(first * row, last * row)


Constant = Array | LazyTensor
"""A constant input: an array, or a tensor that is read when it is used."""


def joined(constant: Constant) -> Constant:
    """Merge the first two axes."""
    first, second, *rest = constant.shape
    return constant.reshape(first * second, *rest)


def rows_of(constant: Constant, first: int, last: int) -> Array:
    """Return some rows of a constant: ``[last - first, ...]``."""
    if not isinstance(constant, LazyTensor):
        return constant[first:last]
    row = math.prod(constant.shape[1:])
    return constant.read(first * row, last * row).reshape(last - first, *constant.shape[1:])


def mapped(constant: Constant, function: Callable[[Array], Array], dtype: Any) -> LazyTensor:
    """Return a function of the elements, which are read in parts; `dtype` is its type."""

    def read(start: int, stop: int) -> Array:
        if isinstance(constant, LazyTensor):
            return function(constant.read(start, stop))
        return function(constant.flat[start:stop])

    return LazyTensor(constant.shape, dtype, read)


def whole(constant: Constant) -> Array:
    """Return a constant as an array."""
    return constant.whole() if isinstance(constant, LazyTensor) else constant
