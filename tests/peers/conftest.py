"""What the peers' group says at its end."""

from __future__ import annotations

import pytest

from .faults import summary


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the known faults of OpenVINO that cases met: nothing is passed over in silence."""
    lines = summary()
    if lines:
        terminalreporter.section("known faults of OpenVINO")
        for line in lines:
            terminalreporter.line(line)
