"""Annotations on the lines of a pull request, in the format of GitHub Actions."""

from __future__ import annotations

from deconv_ir.errors import MAX_MESSAGE, one_line
from deconv_ir.findings import Severity

from ..reporters import Report, from_here
from .text import summary

_MAX_TEXT = 4 * MAX_MESSAGE
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(run: Report) -> str:
    """Write one workflow command for each finding, and a summary for the log."""
    lines = []
    for finding in run.findings:
        fields = {
            "title": f"{finding.code} {finding.rule}",
            "file": finding.file and from_here(finding.file),
            "line": finding.line,
            "col": finding.column,
            "endColumn": finding.end_column,
        }
        properties = ",".join(
            f"{name}={_property(str(value))}" for name, value in fields.items() if value is not None
        )
        layer = f"layer {finding.layer}: " if finding.layer else ""
        hint = f" ({finding.hint})" if finding.hint else ""
        message = _data(f"{layer}{finding.message}{hint}")
        lines.append(f"::{_COMMANDS[finding.severity]} {properties}::{message}")
    lines.append(_data(summary(run)))
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    return one_line(text, _MAX_TEXT).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
