"""Reviewdog Diagnostic Format, for comments on pull requests of any service.

Source: reviewdog, proto/rdf/reviewdog.proto: columns are bytes of UTF-8, ranges exclude their end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deconv_ir.errors import utf_8
from deconv_ir.findings import Severity

from ..common import to_json
from ..reporters import LINT, Report, from_here
from .sarif import rule_uri, rules_page

if TYPE_CHECKING:
    from deconv_ir.findings import Finding

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def render(run: Report) -> str:
    """Write one DiagnosticResult."""
    page = run.docs_url or rules_page() if run.tool is LINT else None
    content = {
        "source": {"name": run.tool.name},
        "diagnostics": [
            _diagnostic(finding, result.lines.get(finding.line or 0), page)
            for result in run.results
            for finding in result.findings
        ],
    }
    return to_json(content)


def _diagnostic(finding: Finding, text: str | None, page: str | None) -> dict[str, Any]:
    layer = f"layer {finding.layer}: " if finding.layer else ""
    hint = f" ({finding.hint})" if finding.hint else ""
    location: dict[str, Any] = {"path": from_here(finding.file or "")}
    if finding.line is not None:
        location["range"] = {"start": _position(finding.line, finding.column, text)}
        if finding.end_column is not None:
            location["range"]["end"] = _position(finding.line, finding.end_column, text)
    code = {"value": finding.code}
    address = rule_uri(page, finding.code)
    if address:
        code["url"] = address
    return {
        "message": f"{layer}{finding.message}{hint}",
        "location": location,
        "severity": _SEVERITIES[finding.severity],
        "code": code,
    }


def _position(line: int, column: int | None, text: str | None) -> dict[str, int]:
    """Return a position; the column of a line that is not known, or was cut, is left out."""
    if column is None or text is None or column - 1 > len(text):
        return {"line": line}
    return {"line": line, "column": len(utf_8(text[: column - 1])) + 1}
