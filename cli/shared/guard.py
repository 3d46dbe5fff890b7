"""Protection of the files that a command reads from being overwritten by it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from .common import STREAM, Mistake

_Identity = tuple[int, int] | str


class Guard:
    """The files of one run: those that it reads, and those that it is about to write.

    Files are compared by device and inode, which covers links, other spellings and file systems
    that ignore case.
    """

    def __init__(self, read: Iterable[tuple[str, str | os.PathLike[str]]] = ()) -> None:
        self._read: dict[_Identity, str] = {}
        self._written: dict[_Identity, str] = {}
        for what, path in read:
            self.add(what, path)

    def add(self, what: str, path: str | os.PathLike[str]) -> None:
        """Protect a file, with a description such as ``the model``; a missing file is ignored."""
        identity = _identity(path)
        if isinstance(identity, tuple):
            self._read.setdefault(identity, what)

    def allow(self, option: str, path: str | os.PathLike[str] | None) -> None:
        """Require that a file may be written; None: standard output."""
        identity = STREAM if path is None else _identity(path)
        if identity is None:
            return
        shown = STREAM if path is None else os.fspath(path)
        if identity in self._read:
            raise Mistake(
                f"{option} {shown} would overwrite {self._read[identity]} (choose another name)"
            )
        if identity in self._written:
            raise Mistake(
                f"{option} {shown} is also written by {self._written[identity]} "
                "(choose another name)"
            )
        self._written[identity] = option


def _identity(path: str | os.PathLike[str]) -> _Identity | None:
    """Return the identity of a file; its path if it does not exist yet."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return os.path.realpath(path)
    # Devices may be written to, and folders cannot be overwritten by files.
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
