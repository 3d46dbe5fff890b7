"""How much memory there is, and whether a run fits."""

from __future__ import annotations

import os
import re

from ..errors import ResourceError
from ..model import Graph

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def parse_bytes(text: str) -> int:
    """Read a size: ``2GiB``, ``500MB``, ``1.5 GiB``, ``4096``.

    Raises
    ------
    ValueError
        It is none.
    """
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([KMGT]I?)?B?\s*", text.upper())
    if found is None:
        raise ValueError(f"{text!r} is no size; write 2GiB, 500MB or a number of bytes")
    return int(float(found[1]) * _UNITS[found[2] or ""])


def format_bytes(count: int) -> str:
    """Write a size for a reader, in binary units."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, 6)
    if count.bit_length() > 80:
        return f"more than 2^{count.bit_length() - 1} B"
    unit = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[power - 1]
    return f"{count / 1024**power:.4g} {unit}"


def require_memory(graph: Graph, needed: int, limit: int | None) -> None:
    """Require that a run fits into memory, before it takes any.

    Parameters
    ----------
    needed : int
        Bytes that the run will hold at once.
    limit : int or None
        Bytes that it may take; None: what the system says is available.

    Raises
    ------
    ResourceError
        It does not fit.
    """
    if limit is None:
        if needed <= _surely_free():
            return
        # The exact figure, which counts memory that the system can give back.
        import psutil

        there, words = int(psutil.virtual_memory().available), "available"
    else:
        there, words = limit, "the limit"
    if needed > there:
        raise ResourceError(
            f"the model needs {format_bytes(needed)} of memory at once, "
            f"{format_bytes(there)} is {words}",
            file=graph.file,
            expected=there,
            actual=needed,
            hint="--memory-limit SIZE, or memory_limit=, overrides this",
            rule="memory",
        )


def _surely_free() -> int:
    """Return the bytes of unused pages, where the system tells without more ado; else 0."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
