"""Output files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast


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
    import tempfile  # takes long to import, for a linter that writes nothing

    descriptor, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:64]}.", suffix=".tmp"
    )
    try:
        with os.fdopen(descriptor, "wb") as stream:
            # mkstemp makes it private; give it what open() would have.
            os.fchmod(stream.fileno(), 0o666 & ~_umask())
            yield cast(BinaryIO, stream)
            stream.flush()
            if durable:
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
