"""The measured table: what releases of OpenVINO read, and compile for the CPU.

`measured.txt` is written by `tools/check_targets.py`, which has releases read small networks.  Its
lines are ``RELEASES: KEY KEY ...``: ranges of indices in the list of releases that accept the keys
and, after ``?``, of those where the measurement does not tell.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final, NamedTuple

from deconv_ir.linter.releases import Release

FILE: Final = Path(__file__).with_name("measured.txt")


class Acceptance(NamedTuple):
    """The releases that accept something, and those of which it is not known."""

    accepted: frozenset[Release]
    unclear: frozenset[Release] = frozenset()


class Table(NamedTuple):
    """What was measured."""

    releases: tuple[Release, ...]
    """The releases that were tried, in their order."""
    sections: dict[str, dict[str, Acceptance]]
    """Operation as ``Pad-12`` -> part -> the releases that compile it; ``*``: any form of it. For
    ``read``: type and opset -> the releases that read it; for ``rules``: code -> ..."""

    def of(self, section: str) -> dict[str, Acceptance]:
        """Return a section; an empty one if nothing was measured."""
        return self.sections.get(section, {})


@functools.cache
def measured() -> Table:
    """Return the table of this installation."""
    return parse(FILE.read_text("utf-8"))


def parse(text: str) -> Table:
    """Read the table from its text."""
    releases: tuple[Release, ...] = ()
    sections: dict[str, dict[str, Acceptance]] = {}
    section: dict[str, Acceptance] = {}
    at = Acceptance(frozenset())
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("releases "):
            words = line.split()[1:]
            releases = tuple((int(w.split(".")[0]), int(w.split(".")[1])) for w in words)
            continue
        if line.startswith("["):
            section = sections.setdefault(line[1:-1], {})
            continue
        keys = line
        if not line.startswith(" "):
            ranges, _, keys = line.partition(":")
            yes, _, unclear = ranges.partition("?")
            at = Acceptance(_releases(yes, releases), _releases(unclear, releases))
        section |= dict.fromkeys(keys.split(), at)
    return Table(releases, sections)


def _releases(ranges: str, releases: tuple[Release, ...]) -> frozenset[Release]:
    found: list[Release] = []
    for part in ranges.split(",") if ranges and ranges != "-" else ():
        first, _, last = part.partition("-")
        found += releases[int(first) : int(last or first) + 1]
    return frozenset(found)


def ranges(chosen: frozenset[Release], releases: tuple[Release, ...]) -> str:
    """Write releases as ranges of indices, the inverse of reading."""
    parts: list[list[int]] = []
    for index, release in enumerate(releases):
        if release not in chosen:
            continue
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts) or "-"
