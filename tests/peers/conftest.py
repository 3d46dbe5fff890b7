"""A smaller selection of the comparisons, and the known faults that they met."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from .faults import add_met, met, summary

SMALL = 20
"""Test functions with at most as many cases are always run whole."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which `make test-peers-quick` is bounded."""
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help=f"of test functions with more than {SMALL} cases, run every Nth case",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select every Nth case: cases stand in the order of operations, so that all have their share.

    The first is drawn with the function's name as the seed, the same in each run.
    """
    step = config.getoption("--one-in", 1)
    if step == 1:
        return
    kept: list[pytest.Item] = []
    for function, group in itertools.groupby(items, lambda item: item.nodeid.partition("[")[0]):
        cases = list(group)
        first = random.Random(function).randrange(step) if len(cases) > SMALL else 0
        kept += cases[first :: step if len(cases) > SMALL else 1]
    left_out = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a process of pytest-xdist met to the one that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["faults"] = met()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a process of pytest-xdist met."""
    add_met(getattr(node, "workeroutput", {}).get("faults", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the known faults of OpenVINO that cases met: nothing is passed over in silence."""
    lines = summary()
    if lines:
        terminalreporter.section("known faults of OpenVINO")
        for line in lines:
            terminalreporter.line(line)
