"""Opening files: inputs that are regular files, outputs that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast


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
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends well.

    The bytes go to a temporary file in the same folder, are flushed to disk
    and renamed; when the block raises, the temporary file is removed and what
    stood at `path` is untouched.

    Raises
    ------
    OSError
        The folder is not there or can not be written, or the disk is full.
    """
    descriptor, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:64]}.", suffix=".tmp"
    )
    try:
        with os.fdopen(descriptor, "wb") as stream:
            # mkstemp makes it private; give it what open() would have.
            os.fchmod(stream.fileno(), 0o666 & ~_umask())
            yield cast(BinaryIO, stream)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    """Read the process's umask, which the system lets nobody read without setting it."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        # Linux tells it without the moment in which another thread would see 0.
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    mask = os.umask(0)
    os.umask(mask)
    return mask
