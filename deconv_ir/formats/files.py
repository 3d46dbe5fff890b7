"""Opening files: inputs that are regular files, outputs that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    A FIFO or a device is refused instead of waited for.

    Raises
    ------
    OSError
        It does not exist, cannot be read, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


class OversizeError(OSError):
    """A file has more bytes than the limit.

    Attributes
    ----------
    size : int
        The bytes found; a file that grows while it is read may have more.
    """

    def __init__(self, path: str | os.PathLike[str], size: int, limit: int) -> None:
        message = f"the file has {size} bytes, more than the limit of {limit}"
        super().__init__(errno.EFBIG, message, os.fspath(path))
        self.size = size


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes.

    Raises
    ------
    OversizeError
        There are more bytes.
    OSError
        As by `open_regular`.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > limit:
            raise OversizeError(path, size, limit)
        # `read` allocates all the bytes asked for: the size, then what the file grows by.
        data = stream.read(size + 1)
        while len(data) > size:
            size = len(data)
            if size > limit:
                raise OversizeError(path, size, limit)
            data += stream.read(min(size, limit - size) + 1)
        return data


def is_json(data: bytes) -> bool:
    """Tell whether a file begins as JSON does, and XML does not."""
    return data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _require_replaceable(path: Path) -> None:
    """Require that a path is not a device, a FIFO or a name such as /dev/stdout."""
    try:
        mode = path.stat().st_mode  # follows links
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
    folder = os.path.realpath(path.parent)
    if not stat.S_ISREG(mode) or folder == "/dev" or folder.startswith("/proc/"):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


@contextlib.contextmanager
def replace_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends well.

    The bytes go to a temporary file in the same folder, are flushed to disk
    and renamed; if the block raises, the temporary file is removed and `path`
    is untouched.  Its name is unique, so several writers can write to one
    folder or path: the last one wins.  Without `durable`, flushing to disk is
    left to the system, for files that can be regenerated.

    Raises
    ------
    OSError
        The folder does not exist or cannot be written, the disk is full, or
        `path` is not a regular file.
    """
    _require_replaceable(path)
    # The name is chosen before the file is created, so that cleanup finds it
    # after an interruption at any point.
    temporary = _beside(path)
    try:
        # `tempfile` would make it private, and importing it takes longer than
        # running a small model.
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        _sync_folder(path.parent)


def _beside(path: Path) -> Path:
    """Return a unique name in the folder of `path`."""
    start = os.fsencode(path.name)[:128].decode("utf-8", "ignore")
    return path.with_name(f".{start}.{os.urandom(8).hex()}.tmp")


def _sync_folder(folder: Path) -> None:
    """Flush the renaming to disk, where the system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
