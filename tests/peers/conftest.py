"""Report the known faults that comparisons met."""

from __future__ import annotations

from typing import Any

import pytest

from .faults import add_met, met, summary

# Each comparison states its semantics, and its tolerance covers the rounding of f16.
REPORTED = "ignore:.*(to f16, the OpenVINO runtime|the oneDNN library).*"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore the warnings about semantics here."""
    for item in items:
        if item.nodeid.startswith("tests/peers/"):
            item.add_marker(pytest.mark.filterwarnings(REPORTED))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the faults met by a pytest-xdist process to the process that prints them."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["faults"] = met()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the faults that a pytest-xdist process met."""
    add_met(getattr(node, "workeroutput", {}).get("faults", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the known faults of OpenVINO that cases met, so that none is passed over in silence."""
    lines = summary()
    if lines:
        terminalreporter.section("known faults of OpenVINO")
        for line in lines:
            terminalreporter.line(line)
