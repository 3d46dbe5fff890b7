"""For programs: one JSON object."""

from __future__ import annotations

from typing import Any

from deconv_ir.findings import plain
from deconv_ir.version import __version__

from ..common import to_json
from ..reporters import Report


def render(run: Report) -> str:
    """Write all findings, and counts by file."""
    content: dict[str, Any] = {
        "tool": run.tool.name,
        "version": __version__,
        "findings": [
            {
                "code": f.code,
                "rule": f.rule,
                "family": run.tool.rule(f.code).family,
                "severity": f.severity.value,
                "message": f.message,
                "file": f.file,
                "line": f.line,
                "column": f.column,
                "end_column": f.end_column,
                "layer": f.layer,
                "expected": plain(f.expected),
                "actual": plain(f.actual),
                "hint": f.hint,
                "fixable": f.fix is not None and not f.fix.alternatives,
            }
            for result in run.results
            for f in result.findings
        ],
        "files": [
            {
                "file": result.file,
                "layers": result.layers,
                "findings": len(result.findings),
                "suppressed": result.suppressed,
                "hidden": {severity.value: count for severity, count in result.hidden},
                "passed_over": dict(result.passed_over),
            }
            for result in run.results
        ],
        "fixed": run.fixed,
        "known": run.known,
    }
    content |= run.more
    return to_json(content)
