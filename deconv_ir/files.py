"""Opening files: inputs that are regular files, outputs that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    A FIFO or a device is refused instead of waited for.

    Raises
    ------
    OSError
        It is not there, can not be read, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
    raise OSError(errno.EINVAL, "it is no regular file", str(path))


@contextlib.contextmanager
def replace_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends well.

    The bytes go to a temporary file in the same folder, are flushed to disk
    and renamed; when the block raises, the temporary file is removed and what
    stood at `path` is untouched.  Without `durable`, flushing to disk is left
    to the system: for what can be made anew.

    Raises
    ------
    OSError
        The folder is not there or can not be written, or the disk is full.
    """
    temporary, stream = _create_beside(path)
    try:
        with stream:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _create_beside(path: Path) -> tuple[Path, BinaryIO]:
    """Create a new file in the folder of `path`, with the permissions of any new file.

    `tempfile` would make it private, and its import takes longer than a small
    model's run.
    """
    for attempt in itertools.count():
        temporary = path.with_name(f".{path.name[:64]}.{os.getpid()}.{attempt}.tmp")
        try:
            return temporary, temporary.open("xb")
        except FileExistsError:
            continue
    raise AssertionError("unreachable")
