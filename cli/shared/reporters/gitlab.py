"""Code Quality reports in the format of GitLab.

Source: GitLab documentation, "Code Quality", section "Code Quality report format".
"""

from __future__ import annotations

from deconv_ir.findings import Severity

from ..common import to_json
from ..reporters import Fingerprints, Report, from_here

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(run: Report) -> str:
    """Write a list of issues; the same finding at another line keeps its fingerprint."""
    issues = []
    fingerprints = Fingerprints()
    for finding in run.findings:
        path = from_here(finding.file or "")
        hint = f" ({finding.hint})" if finding.hint else ""
        issues.append(
            {
                "description": f"{finding.message}{hint}",
                "check_name": finding.code,
                "fingerprint": fingerprints.of(finding),
                "severity": _SEVERITIES[finding.severity],
                "location": {"path": path, "lines": {"begin": finding.line or 1}},
            }
        )
    return to_json(issues)
