"""The weights file (.bin) beside an IR, memory-mapped."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

from ..errors import WeightsError


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
            # O_NONBLOCK: a FIFO must not hang the program before it is refused.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise WeightsError(
                f"can not read the weights: {error.strerror}",
                file=str(path),
                rule="weights-missing",
            ) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise WeightsError(
                    "the weights are no regular file", file=str(path), rule="weights-missing"
                )
            if status.st_size:
                self._view = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)

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
