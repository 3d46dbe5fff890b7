"""Available memory, and the check that a run fits into it."""

import functools
import os
import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

from deconv_ir.errors import ResourceError
from deconv_ir.hints import Advice, Hint

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


# Querying the available memory takes as long as a small network.
_LITTLE = 1 << 20


def parse_bytes(text: str) -> int:
    """Parse a size, or raise a ValueError: ``2GiB``, ``500MB``, ``1.5 GiB``, ``4096``."""
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([KMGT]I?)?B?\s*", text.upper())
    if found is None:
        raise ValueError(f"invalid size {text!r} (expected for example 512MiB)")
    return int(float(found[1]) * _UNITS[found[2] or ""])


def format_bytes(count: int) -> str:
    """Format a size in binary units."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, 6)
    if count.bit_length() > 80:
        return f"more than 2^{count.bit_length() - 1} B"
    unit = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[power - 1]
    return f"{count / 1024**power:.4g} {unit}"


def format_count(count: int) -> str:
    """Format a number of elements or operations: exactly, or as a power of two if it is huge."""
    if count.bit_length() <= 60:
        return f"{count:,}"
    return f"more than 2^{count.bit_length() - 1}"


_OTHER_LIMIT: Final = Hint.MEMORY_LIMIT()


def require_memory(
    needed: int,
    limit: int | None = None,
    *,
    held: int = 0,
    subject: str = "the model",
    file: str | None = None,
    hint: Advice | None = _OTHER_LIMIT,
) -> None:
    """Require that a run fits into memory before it starts.

    The run needs `needed` bytes at once, including `held` bytes that are already allocated; without
    a limit, it may use the available memory.  The message names `subject` and `file`, and ends with
    `hint`.
    """
    if fits(needed, limit, held=held):
        return
    there, words = limit, "but the limit is {}"
    if there is None:
        there, words = available_bytes() + held, "but only {} is available"
    figures = format_bytes(needed), format_bytes(there)
    if figures[0] == figures[1]:
        figures = f"{needed} B", f"{there} B"
    message = f"{subject} needs {figures[0]} of memory, {words.format(figures[1])}"
    raise ResourceError(message, file=file, expected=there, actual=needed, hint=hint, rule="memory")


def fits(needed: int, limit: int | None = None, *, held: int = 0) -> bool:
    """Whether a run fits into memory; parameters as in `require_memory`."""
    if limit is not None:
        return needed <= limit
    more = needed - held
    return more < _LITTLE or more <= surely_free() or more <= available_bytes()


def out_of_memory(
    needed: int, error: MemoryError, *, subject: str, file: str | None = None
) -> ResourceError:
    """Return the error for a failed allocation, with needed and available bytes."""
    there = available_bytes()
    detail = f": {error}" if str(error) else ""
    message = (
        f"{subject} needs {format_bytes(needed)} of memory, and an allocation failed; "
        f"{format_bytes(there)} is available{detail}"
    )
    return ResourceError(message, file=file, expected=there, actual=needed, rule="memory")


def available_bytes() -> int:
    """Return the bytes that system, container and ``ulimit`` leave to this process."""
    # Includes memory that the system can reclaim, which `surely_free` does not.
    import psutil

    there = int(psutil.virtual_memory().available)
    return min([there, _address_space(), *(group.free() for group in limited_groups())])


def surely_free() -> int:
    """Return the bytes of unused pages if the system reports them cheaply, else 0."""
    try:
        pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
    free = min(pages, _address_space())
    for group in limited_groups():
        free = min(free, group.free())
    return free


def _address_space() -> int:
    """Return the bytes of address space left by ``ulimit -v``; a huge number without a limit."""
    try:
        import resource
    except ImportError:  # not available on this system
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    pages = _text(Path("/proc/self/statm")).split()
    used = int(pages[0]) * resource.getpagesize() if pages else 0
    return max(0, limit - used)


class MemoryGroup(NamedTuple):
    """A control group that limits the memory of this process."""

    limit: Path
    usage: Path
    statistics: Path
    """Files with the limit, the usage and its statistics."""
    reclaimable: str
    """The statistic of file pages, which the system can reclaim."""

    def free(self) -> int:
        """Return the bytes that the group can still use; a huge number if unknown."""
        limit = _number(self.limit)
        usage = _number(self.usage)
        if limit is None or usage is None:
            return sys.maxsize
        found = re.search(rf"^{self.reclaimable} (\d+)$", _text(self.statistics), re.MULTILINE)
        return max(0, limit - usage + (int(found[1]) if found else 0))


@functools.cache
def limited_groups(root: Path = Path("/")) -> tuple[MemoryGroup, ...]:
    """Find the control groups that limit this process's memory, versions 1 and 2.

    Source: Linux kernel documentation, 'Memory Resource Controller' and 'Control Group v2'.
    """
    groups = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            top, names = root / "sys/fs/cgroup", _NAMES_2
        elif "memory" in controllers.split(","):
            top, names = root / "sys/fs/cgroup/memory", _NAMES_1
        else:
            continue
        inner = top / path.lstrip("/")
        # In a container the path may be the host's; the container's own group is the root.
        folder = inner if inner.is_dir() else top
        for at in (folder, *folder.parents):
            limit, usage, statistics, reclaimable = names
            group = MemoryGroup(at / limit, at / usage, at / statistics, reclaimable)
            if (_number(group.limit) or _NO_LIMIT) < _NO_LIMIT:
                groups.append(group)
            if at == top:
                break
    return tuple(groups)


_NAMES_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file"
_NAMES_2 = "memory.max", "memory.current", "memory.stat", "inactive_file"
# Version 1 reports about 2^63 without a limit.
_NO_LIMIT = 1 << 62


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    """Return the number in a file; None for other text, such as ``max``."""
    text = _text(path).strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None
