"""The weights file (.bin) beside an IR, memory-mapped."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from ..errors import WeightsError
from ..files import open_regular


class Weights:
    """Read-only bytes of a weights file; pages are read when they are used.

    Parameters
    ----------
    path : path-like
        A regular file.

    Raises
    ------
    WeightsError
        The file is not there, can not be read, or is no regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._view = memoryview(b"")
        try:
            with open_regular(self.path) as stream:
                if os.fstat(stream.fileno()).st_size:
                    mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
                    self._view = memoryview(mapped)
        except OSError as error:
            raise WeightsError(
                f"can not read the weights: {error.strerror}",
                file=str(path),
                rule="weights-missing",
            ) from error

    def __len__(self) -> int:
        return len(self._view)

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset` on, as a view of the map.

        Raises
        ------
        WeightsError
            They are not all in the file.
        """
        self.check(offset, size)
        return self._view[offset : offset + size]

    def check(self, offset: int, size: int) -> None:
        """Require that the file has `size` bytes from `offset` on.

        Raises
        ------
        WeightsError
            It has not.
        """
        if offset < 0 or size < 0 or offset + size > len(self._view):
            raise WeightsError(
                f"offset {offset} + size {size} = {offset + size} is past the end of "
                f"{self.path.name}, which has {len(self._view)} bytes",
                expected=f"<= {len(self._view)}",
                actual=offset + size,
                rule="const-past-end",
                hint="the .bin does not belong to this .xml, or is cut short",
            )
