"""Opening files: inputs that are regular files, outputs that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from deconv_ir.errors import DeconvError, OutputError
from deconv_ir.hints import Advice, Hint
from deconv_ir.suggestions import nearest

if TYPE_CHECKING:
    from pathlib import Path


_MOST_NAMES = 1000
"""Names of a folder among which a similar one is searched."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    A FIFO or a device is an error, so that the caller does not block.
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
    """A file has more bytes than the limit."""

    def __init__(self, path: str | os.PathLike[str], size: int, limit: int) -> None:
        message = f"the file has {size} bytes, more than the limit of {limit}"
        super().__init__(errno.EFBIG, message, os.fspath(path))
        self.size = size  # the bytes found; a file that grows while it is read may have more


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > limit:
            raise OversizeError(path, size, limit)
        # `read` allocates all requested bytes: first the size of the file, then its growth.
        data = stream.read(size + 1)
        while len(data) > size:
            size = len(data)
            if size > limit:
                raise OversizeError(path, size, limit)
            data += stream.read(min(size, limit - size) + 1)
        return data


def read_input(
    path: str | os.PathLike[str],
    limit: int,
    what: str = "the file",
    error_type: type[DeconvError] = DeconvError,
    hint: Advice | None = None,
) -> bytes:
    """Return the bytes of a file that a user named; `what` is its name in messages.

    The error, of `error_type`, has the rule ``io`` or ``oversize``.
    """
    name = os.fspath(path)
    try:
        return read_regular(path, limit)
    except OversizeError as error:
        raise error_type(
            str(error.strerror),
            file=name,
            line=1,
            expected=limit,
            actual=error.size,
            rule="oversize",
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot read {what}: {reason}"
        raise error_type(message, file=name, rule="io", hint=hint) from error


def similar_file(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> Advice | None:
    """Return a hint that names a file like `path`, which does not exist; None if there is none."""
    folder, name = os.path.split(os.fspath(path))
    if os.path.lexists(path):
        return None
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [e.name for e in islice(entries, _MOST_NAMES)]
    except (OSError, ValueError):
        return None
    there = [n for n in names if n.lower().endswith(suffixes)]
    whole = next((name + suffix for suffix in suffixes if name + suffix in there), None)
    return nearest(name, there) if whole is None else Hint.DID_YOU_MEAN(whole)


def is_json(data: bytes, name: str | None = None) -> bool:
    """Whether a file begins like JSON, or is named ``.json`` and does not begin like XML."""
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return start in (b"{", b"[") or (start != b"<" and (name or "").lower().endswith(".json"))


@contextlib.contextmanager
def replace_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends well.

    The bytes go to a temporary file in the same folder, are flushed to disk
    and renamed; if the block raises, the temporary file is removed and `path`
    is untouched.  Its name is unique, so several writers can write to one
    folder or path: the last one wins.  Without `durable`, which files that can be regenerated do
    not need, the system decides when to flush the bytes.  The renaming is never flushed: after a
    power failure `path` may have its old contents, but never a part of the new ones.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode  # follows symbolic links
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
        folder = os.path.realpath(path.parent)
        # A name such as /dev/stdout refers to a file that the caller has opened.
        if not stat.S_ISREG(mode) or folder == "/dev" or folder.startswith("/proc/"):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
    # The name is chosen before the file is created, so that cleanup finds it
    # after an interruption at any point.
    start = os.fsencode(path.name)[:128].decode("utf-8", "ignore")
    temporary = path.with_name(f".{start}.{os.urandom(8).hex()}.tmp")
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


@contextlib.contextmanager
def output_errors(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn an OSError of the block into an `OutputError`: ``PATH: cannot write WHAT: ...``."""
    try:
        yield
    except OSError as error:
        message = f"cannot write {what}: {error.strerror or error}"
        raise OutputError(message, file=str(path)) from error


def rewrite(path: Path, data: bytes, what: str) -> None:
    """Replace a file, or the target of a symbolic link, and keep its permissions."""
    target = path.resolve()
    with output_errors(path, what):
        mode = target.stat().st_mode
        with replace_file(target) as stream:
            os.fchmod(stream.fileno(), mode & 0o7777)
            stream.write(data)
