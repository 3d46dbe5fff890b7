"""The weights file (.bin) next to an IR, read on demand.

The file is not memory-mapped: if a mapped file is truncated or its disk fails, the process dies of
SIGBUS inside NumPy or a kernel.  A positional read returns a short count instead, and is safe from
several threads and after a fork.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ResourceError, WeightsError
from deconv_ir.formats.files import open_regular
from deconv_ir.formats.recognise import START, recognise_weights
from deconv_ir.hints import Hint

if TYPE_CHECKING:
    from typing import Protocol

    class _Readable(Protocol):
        @property
        def path(self) -> str: ...

        def __len__(self) -> int: ...

        def read(self, offset: int, size: int) -> memoryview: ...


_CHUNK = 1 << 20
_MOST_AT_ONCE = 1 << 30  # Linux reads at most 2 GiB - 4096 bytes in one call


def weights_beside(path: str | os.PathLike[str]) -> str:
    """Return the default path of the .bin file of an .xml file."""
    return os.path.splitext(path)[0] + ".bin"


class Weights:
    """Read-only bytes of a weights file, read on demand.

    The file stays open, so it may be renamed or replaced; after a truncation, the next read raises
    an error.
    """

    __slots__ = ("__weakref__", "_size", "descriptor", "path")

    descriptor: int | None
    """Descriptor of the open file; None if the bytes are in memory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            with open_regular(self.path) as stream:
                self._size = os.fstat(stream.fileno()).st_size
                self.descriptor = os.dup(stream.fileno())
        except OSError as error:
            raise self._failed(error) from error
        weakref.finalize(self, os.close, self.descriptor)

    def __len__(self) -> int:
        return self._size

    @property
    def file_bytes(self) -> int:
        """Bytes that are in the open file; constants behind them are in memory."""
        return 0 if self.descriptor is None else self._size

    @property
    def name(self) -> str:
        """Name of the file, without its folder."""
        return os.path.basename(self.path)

    def read(self, offset: int, size: int) -> memoryview:
        """Return a read-only copy of `size` bytes from `offset` on."""
        self.check(offset, size)
        try:
            data = memoryview(bytearray(size))
        except MemoryError:
            raise ResourceError(
                f"not enough memory for {size} bytes of {self.name}", rule="memory"
            ) from None
        self.read_into(offset, data)
        return data.toreadonly()

    def read_into(self, offset: int, data: memoryview) -> None:
        """Read the bytes from `offset` on that fill `data`."""
        size = len(data)
        self.check(offset, size)
        assert self.descriptor is not None, "or another method reads"
        done = 0
        while done < size:
            try:
                count = os.preadv(
                    self.descriptor, [data[done : done + _MOST_AT_ONCE]], offset + done
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

    def __deepcopy__(self, memo: object) -> Weights:
        return self  # immutable

    def __reduce__(self) -> tuple[Any, ...]:
        # The bytes are pickled, not the path: another machine may not have the same file.
        return WeightsInMemory, (b"".join(self.chunks()), self.path)

    def chunks(self) -> Iterator[memoryview]:
        """Iterate over all bytes in chunks."""
        for start in range(0, self._size, _CHUNK):
            yield self.read(start, min(_CHUNK, self._size - start))

    def check(self, offset: int, size: int) -> None:
        """Require that the file had `size` bytes from `offset` on when it was opened."""
        if offset < 0 or size < 0 or offset + size > self._size:
            raise WeightsError(
                f"offset {offset} + size {size} = {offset + size} is past the end of "
                f"{self.name}, which has {self._size} bytes",
                expected=f"<= {self._size}",
                actual=offset + size,
                rule="const-past-end",
                hint=Hint.OTHER_BIN(),
            )

    def _failed(self, error: OSError) -> WeightsError:
        return WeightsError(
            f"cannot read the weights: {error.strerror}", file=self.path, rule="weights-missing"
        )


class WeightsInMemory(Weights):
    """The contents of a weights file, named `path` in messages."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes, path: str = "weights") -> None:
        self.path = path
        self.descriptor = None
        self._size = len(data)
        self._data = memoryview(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return WeightsInMemory, (bytes(self._data), self.path)

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset` on, without a copy."""
        self.check(offset, size)
        return self._data[offset : offset + size]

    def read_into(self, offset: int, data: memoryview) -> None:
        """Copy the bytes from `offset` on that fill `data`."""
        data[:] = self.read(offset, len(data))


_ALIGNMENT = 64


class ExtendedWeights(Weights):
    """Weights with bytes appended, at a multiple of 64 bytes."""

    __slots__ = ("_appended", "_first")

    def __init__(self, first: Weights, appended: bytes) -> None:
        self.path = first.path
        self.descriptor = first.descriptor
        self._first = first
        self._appended = bytes(-len(first) % _ALIGNMENT) + appended
        self._size = len(first) + len(self._appended)

    @property
    def file_bytes(self) -> int:
        """Bytes that are in the open file."""
        return self._first.file_bytes

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset` on."""
        self.check(offset, size)
        border = len(self._first)
        if offset + size <= border:
            return self._first.read(offset, size)
        own = memoryview(self._appended)[max(0, offset - border) : offset + size - border]
        if offset >= border:
            return own
        return memoryview(bytes(self._first.read(offset, border - offset)) + bytes(own))

    def read_into(self, offset: int, data: memoryview) -> None:
        """Copy the bytes from `offset` on that fill `data`."""
        data[:] = self.read(offset, len(data))


def weights_error(weights: _Readable) -> str | None:
    """Return why a file cannot be a weights file, by its first bytes; None if it can be."""
    file_type = recognise_weights(bytes(weights.read(0, min(len(weights), START))))
    if file_type is None:
        return None
    hint = file_type.hint_for(weights.path)
    return f"it is {file_type.what}{f'; {hint}' if hint else ''}"
