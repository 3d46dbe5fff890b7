"""The known faults that comparisons met."""

from __future__ import annotations

from typing import Any

import pytest

from .faults import add_met, met, summary


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
