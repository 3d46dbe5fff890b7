"""Options that run a smaller selection of the tests: a part of the cases of every function."""

from __future__ import annotations

import itertools
import random
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

SMALL = 20
"""Test functions with at most this many cases are always run completely."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that bounds `make test-peers-quick` and `make test-arm64`."""
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help=f"of test functions with more than {SMALL} cases, run one of every N cases",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw one of every N neighbouring cases, the same in each run.

    Cases are ordered by their parameters, so every operation keeps some of them; a fixed step could
    always select the same element type.
    """
    step = config.getoption("--one-in", 1)
    if step == 1:
        return
    kept: list[pytest.Item] = []
    for function, group in itertools.groupby(items, lambda item: item.nodeid.partition("[")[0]):
        cases = list(group)
        draw = random.Random(function)
        if len(cases) > SMALL:
            cases = [draw.choice(cases[at : at + step]) for at in range(0, len(cases), step)]
        kept += cases
    left_out = set(items).difference(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


def _stray_files() -> set[str]:
    """Return the files of the checkout that git neither tracks nor ignores."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--others", "--exclude-standard", "-z"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return set()  # not a checkout
    return {name.decode(errors="replace") for name in listed.split(b"\0")}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember the files that exist before the tests."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[BEFORE] = _stray_files()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if tests left files in the checkout."""
    before = session.config.stash.get(BEFORE, None)
    if before is not None and (left := sorted(_stray_files() - before)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nfiles that the tests left in the checkout: {', '.join(left)}")


BEFORE = pytest.StashKey[set[str]]()
