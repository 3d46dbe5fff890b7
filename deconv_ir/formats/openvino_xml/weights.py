"""The weights file (.bin) beside an IR: read where a constant asks for it.

It is not memory-mapped.  A map of a file that someone cuts short, or of a file
on a disk that fails, ends the process with SIGBUS at the first touch of a
missing page, inside NumPy or a kernel, where nothing can be caught.  A
positional read gives a short count instead, which is an error like any other.
Memory is taken for the constants in use, as with a map; a descriptor without a
shared file offset is safe to use from threads and after a fork.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import Any

from deconv_ir.errors import ResourceError, WeightsError
from deconv_ir.formats.files import open_regular

_CHUNK = 1 << 20
_MOST_AT_ONCE = 1 << 30  # Linux reads at most 2 GiB - 4096 bytes in one call


def weights_beside(path: str | os.PathLike[str]) -> str:
    """Return where the .bin of an .xml is, unless the user says otherwise."""
    return os.path.splitext(path)[0] + ".bin"


class Weights:
    """Read-only bytes of a weights file; what is not asked for is not read.

    The file stays open, so that one that is renamed or replaced meanwhile does
    not matter; one that is cut short is an error when it is read.

    Parameters
    ----------
    path : path-like
        A regular file.

    Raises
    ------
    WeightsError
        The file is not there, can not be read, or is no regular file.
    """

    __slots__ = ("__weakref__", "_descriptor", "_size", "path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            with open_regular(self.path) as stream:
                self._size = os.fstat(stream.fileno()).st_size
                self._descriptor = os.dup(stream.fileno())
        except OSError as error:
            raise self._failed(error) from error
        weakref.finalize(self, os.close, self._descriptor)

    def __len__(self) -> int:
        return self._size

    @property
    def name(self) -> str:
        """Name of the file, without its folder."""
        return os.path.basename(self.path)

    def read(self, offset: int, size: int) -> memoryview:
        """Return a read-only copy of `size` bytes from `offset` on.

        Raises
        ------
        WeightsError
            They are not all in the file, or no longer.
        ResourceError
            There is no memory for them.
        """
        self.check(offset, size)
        try:
            data = memoryview(bytearray(size))
        except MemoryError:
            raise ResourceError(
                f"there is no memory for {size} bytes of {self.name}", rule="memory"
            ) from None
        done = 0
        while done < size:
            try:
                count = os.preadv(
                    self._descriptor, [data[done : done + _MOST_AT_ONCE]], offset + done
                )
            except OSError as error:
                raise self._failed(error) from error
            if not count:
                raise WeightsError(
                    f"{self.name} was cut short while it was in use: it had {self._size} "
                    f"bytes, now it ends at {offset + done}",
                    file=self.path,
                    expected=self._size,
                    actual=offset + done,
                    rule="const-past-end",
                )
            done += count
        return data.toreadonly()

    def __deepcopy__(self, memo: object) -> Weights:
        return self  # it is never changed

    def __reduce__(self) -> tuple[Any, ...]:
        # The bytes: another process or machine may not have the file, or another one of its name.
        return WeightsInMemory, (b"".join(self.chunks()), self.path)

    def chunks(self) -> Iterator[memoryview]:
        """Iterate over all bytes, a few at a time.

        Raises
        ------
        WeightsError
            The file was cut short.
        """
        for start in range(0, self._size, _CHUNK):
            yield self.read(start, min(_CHUNK, self._size - start))

    def check(self, offset: int, size: int) -> None:
        """Require that the file had `size` bytes from `offset` on when it was opened.

        Raises
        ------
        WeightsError
            It had not.
        """
        if offset < 0 or size < 0 or offset + size > self._size:
            raise WeightsError(
                f"offset {offset} + size {size} = {offset + size} is past the end of "
                f"{self.name}, which has {self._size} bytes",
                expected=f"<= {self._size}",
                actual=offset + size,
                rule="const-past-end",
                hint="the .bin does not belong to this .xml, or is cut short",
            )

    def _failed(self, error: OSError) -> WeightsError:
        return WeightsError(
            f"can not read the weights: {error.strerror}",
            file=self.path,
            rule="weights-missing",
        )


class WeightsInMemory(Weights):
    """The contents of a weights file.

    Parameters
    ----------
    data : bytes
    path : str, optional
        What messages call it.
    """

    __slots__ = ("_data",)

    def __init__(self, data: bytes, path: str = "weights") -> None:
        self.path = path
        self._size = len(data)
        self._data = memoryview(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return WeightsInMemory, (bytes(self._data), self.path)

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset` on, without a copy.

        Raises
        ------
        WeightsError
            They are not all there.
        """
        self.check(offset, size)
        return self._data[offset : offset + size]
