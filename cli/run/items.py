"""The runs on many files: what each reads and writes, and how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .manifest import Stamp

if TYPE_CHECKING:
    from .compare import Comparison
    from .manifest import Stamped


class Item(NamedTuple):
    """One run."""

    number: int
    files: dict[str, Path]  # input with many files -> the file of this run
    targets: dict[str, Path]  # output -> file to write; empty if outputs are only compared
    # Output -> file to compare with.
    references: dict[str, Path] = {}  # noqa: RUF012 - never changed

    @property
    def label(self) -> str:
        """The name of the item in messages."""
        return ", ".join(map(str, self.files.values()))

    def stamped(self) -> Stamped:
        """Return the files with their current stamps."""
        return {name: (path, Stamp.of(path)) for name, path in self.files.items()}


class Outcome(NamedTuple):
    """The end of an item: ``done``, ``differs``, ``skipped``, ``failed`` or ``not run``."""

    item: Item
    status: str
    error: str | None = None
    comparisons: tuple[Comparison, ...] = ()
