"""Changes of --fix and --diff, in the format of `patch`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator


def unified_diff(before: str, after: str, name: str) -> Iterator[str]:
    """Yield the lines of a diff between two texts of one file."""
    for line in difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    # str.splitlines also splits at characters that are not line ends in a diff.
    return re.findall(r"[^\n]*\n|[^\n]+", text)
