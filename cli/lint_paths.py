"""From what the user names to the files to check."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .common import Mistake

STDIN = "-"


def find_files(paths: Iterable[str]) -> list[tuple[str, bool]]:
    """Resolve files, folders and patterns.

    Returns
    -------
    list of (str, bool)
        Each file once, in order, and whether the user named it (rather than
        a folder that it is in).

    Raises
    ------
    Mistake
        A path does not exist, or a pattern matches nothing.
    """
    found: dict[str, bool] = {}
    for path in paths:
        if path != STDIN and not os.path.lexists(path):
            for match in _matches(path):
                _add(match, found)
        else:
            _add(path, found)
    return list(found.items())


def _add(path: str, found: dict[str, bool]) -> None:
    if path != STDIN and os.path.isdir(path):
        from .lint_folders import walk

        for file in walk(path):
            found.setdefault(file, False)
    else:
        found[path] = True  # of what is no regular file the reader says so


def _matches(pattern: str) -> list[str]:
    if not any(c in pattern for c in "*?["):
        raise Mistake(f"{pattern}: no such file or folder")
    import glob

    matches = sorted(glob.glob(pattern, recursive=True))
    if not matches:
        raise Mistake(f"{pattern}: no file matches")
    return matches
