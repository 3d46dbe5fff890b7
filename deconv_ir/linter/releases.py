"""The releases of OpenVINO, what documents say of them, and the targets that name them.

Sources: OpenVINO documentation of 2024, "Available Operation Sets" (the release of each opset);
"OpenVINO API 2.0 Transition Guide" (IR version 11 since 2022.1); openvino pull requests 1438 and
3398 (IR versions below 10 are no longer read by 2021.1, whose package has no reader of them).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from deconv_ir.errors import InputError
from deconv_ir.hints import Hint

Release = tuple[int, int]
"""Year and number, as (2024, 6)."""

OPSETS: Final[dict[int, Release]] = {
    1: (2020, 1),
    2: (2020, 2),
    3: (2020, 4),
    4: (2021, 1),
    5: (2021, 2),
    6: (2021, 3),
    7: (2021, 4),
    8: (2022, 1),
    9: (2022, 2),
    10: (2022, 3),
    11: (2023, 0),
    12: (2023, 1),
    13: (2023, 2),
    14: (2024, 0),
    15: (2024, 5),
}
"""Opset -> the first release that the documents name for it."""

RELEASES: Final[tuple[Release, ...]] = (
    *((2020, n) for n in range(1, 5)),
    *((2021, n) for n in range(1, 5)),
    *((2022, n) for n in range(1, 4)),
    *((2023, n) for n in range(4)),
    *((2024, n) for n in range(7)),
    *((2025, n) for n in range(5)),
    *((2026, n) for n in range(5)),
)
"""All releases since IR version 10."""

LAST_OF_OLD_IRS: Final[Release] = (2020, 4)
"""The last release that reads IRs of version 2 to 7."""
FIRST_OF_IR: Final[dict[int, Release]] = {10: (2020, 1), 11: (2022, 1)}
"""IR version -> the first release that reads it."""

_TARGET: Final = re.compile(r"openvino\s*(==?|>=)\s*(\d{4})\.(\d{1,2})(?:\.\d{1,3})?")


class Target(NamedTuple):
    """The releases that a file should run on."""

    text: str
    """As ``openvino=2024.6`` or ``openvino>=2023.0``."""
    releases: tuple[Release, ...]
    """In their order."""


def parse_target(text: str) -> Target:
    """Read a target.

    Raises
    ------
    InputError
        It is not of the form, or no such release is known.

    Examples
    --------
    >>> from deconv_ir.linter.releases import parse_target
    >>> parse_target("openvino=2024.6").releases
    ((2024, 6),)
    >>> parse_target("openvino >= 2026.3").releases
    ((2026, 3), (2026, 4))
    """
    match = _TARGET.fullmatch(text.strip().lower())
    if match is None:
        raise InputError(
            f"invalid target {text!r} (expected for example openvino=2024.6 or openvino>=2023.0)"
        )
    release = int(match[2]), int(match[3])
    if release not in RELEASES:
        newest = shown(RELEASES[-1])
        if release < RELEASES[-1]:
            near = [shown(r) for r in RELEASES if r[0] == release[0]] or [shown(RELEASES[0])]
            raise InputError(
                f"there is no release {match[2]}.{int(match[3])} of OpenVINO",
                hint=Hint.DID_YOU_MEAN(near[-1]),
            )
        if match[1] == ">=":
            raise InputError(f"no release from {shown(release)} on is known; {newest} is the last")
        return Target(f"openvino={shown(release)}", (release,))
    if match[1] == ">=":
        later = tuple(r for r in RELEASES if r >= release)
        return Target(f"openvino>={shown(release)}", later)
    return Target(f"openvino={shown(release)}", (release,))


def shown(release: Release) -> str:
    """Return a release as people write it."""
    return f"{release[0]}.{release[1]}"


def release_of(text: str) -> Release:
    """Return the release of a version, as (2024, 6) of ``2024.6.0``."""
    year, number, *_ = text.split(".")
    return int(year), int(number)


def reads_ir(version: int, release: Release) -> bool:
    """Whether a release reads IRs of a version, by the documents."""
    if version < 8:
        return version >= 2 and release <= LAST_OF_OLD_IRS
    first = FIRST_OF_IR.get(version)
    return first is not None and release >= first
