"""For programs: one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deconv_ir.findings import plain
from deconv_ir.version import __version__

from ..common import to_json
from ..reporters import Report, Tool

if TYPE_CHECKING:
    from deconv_ir.findings import Finding


def render(run: Report) -> str:
    """Write all findings, and counts by file."""
    content: dict[str, Any] = {
        "tool": run.tool.name,
        "version": __version__,
        "findings": [as_object(f, run.tool) for f in run.findings],
        "files": [
            {
                "file": result.file,
                "layers": result.layers,
                "findings": len(result.findings),
                "suppressed": result.suppressed,
                "hidden": {severity.value: count for severity, count in result.hidden},
                "passed_over": dict(result.passed_over),
            }
            | ({"fixes": dict(result.fixes)} if result.fixes else {})
            | ({"verdicts": [v.plain() for v in result.verdicts]} if result.verdicts else {})
            for result in run.results
        ],
        "fixed": run.fixed,
        "known": run.known,
    }
    content |= run.more
    return to_json(content)


def as_object(finding: Finding, tool: Tool) -> dict[str, Any]:
    """Return a finding as JSON has it."""
    return {
        "code": finding.code,
        "rule": finding.rule,
        "family": tool.rule(finding.code).family,
        "severity": finding.severity.value,
        "message": finding.message,
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "end_column": finding.end_column,
        "layer": finding.layer,
        "expected": plain(finding.expected),
        "actual": plain(finding.actual),
        "hint": finding.hint,
        "fixable": finding.fix is not None and not finding.fix.alternatives,
    }
