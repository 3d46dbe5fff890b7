"""Entry points of installed packages, by which these add operations and lint rules."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_METADATA = (".dist-info", ".egg-info")
"""Endings of the folders of installed packages."""
_FILE = "entry_points.txt"


@functools.cache
def installed(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, in the order of their names."""
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group), key=lambda found: (found.name, found.value)))


def is_mentioned(group: str) -> bool:
    """Whether a package may have entry points of a group.

    Commands start faster without `importlib.metadata`, which parses the metadata of all packages.
    """
    wanted = group.encode()
    for folder in dict.fromkeys(sys.path):
        if os.path.isfile(folder):
            return True  # a zip file: importlib looks into it
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith(_METADATA):
                try:
                    file = os.open(os.path.join(folder, name, _FILE), os.O_RDONLY)
                except OSError:
                    continue
                try:
                    if wanted in os.read(file, os.fstat(file).st_size):
                        return True
                finally:
                    os.close(file)
    return False
