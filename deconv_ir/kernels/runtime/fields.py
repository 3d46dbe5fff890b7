"""Arguments of C by name: packed in the order of a table that the extension exports."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

FieldTable = Sequence[tuple[str, str, int]]
"""Name, type (``q``: 64-bit integer, ``d``: double) and count of each field, in C's order."""


def pack_fields(table: FieldTable, **values: Any) -> bytes:
    """Pack values in the order of a table; a field of several numbers takes a sequence.

    Raises `TypeError` if names or counts differ from the table's, and `OverflowError` for an
    integer beyond 64 bits.
    """
    if values.keys() != {name for name, _, _ in table}:
        names = values.keys() ^ {name for name, _, _ in table}
        raise TypeError(f"fields differ from the extension's: {', '.join(sorted(names))}")
    numbers: list[Any] = []
    for name, _, count in table:
        given = values[name] if isinstance(values[name], tuple) else (values[name],)
        if len(given) != count:
            raise TypeError(f"{name} has {len(given)} numbers, not {count}")
        numbers += given
    try:
        return struct.pack("=" + "".join(kind * count for _, kind, count in table), *numbers)
    except struct.error as error:
        raise OverflowError(str(error)) from error
