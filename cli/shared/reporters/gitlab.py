"""Code Quality reports in the format of GitLab.

Source: GitLab documentation, "Code Quality", section "Code Quality report format".
"""

from __future__ import annotations

import hashlib
from collections import Counter

from deconv_ir.errors import utf_8
from deconv_ir.findings import Severity

from ..common import to_json
from ..reporters import Report, from_here

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(run: Report) -> str:
    """Write a list of issues; the same finding at another line keeps its fingerprint."""
    issues = []
    seen: Counter[str] = Counter()
    for finding in run.findings:
        path = from_here(finding.file or "")
        identity = "\0".join((path, finding.code, finding.layer or "", finding.message))
        seen[identity] += 1
        hint = f" ({finding.hint})" if finding.hint else ""
        issues.append(
            {
                "description": f"{finding.message}{hint}",
                "check_name": finding.code,
                "fingerprint": hashlib.sha256(utf_8(f"{identity}\0{seen[identity]}")).hexdigest(),
                "severity": _SEVERITIES[finding.severity],
                "location": {"path": path, "lines": {"begin": finding.line or 1}},
            }
        )
    return to_json(issues)
