"""Code Quality reports in the format of GitLab.

Source: GitLab documentation, "Code Quality", section "Code Quality report format".
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from deconv_ir.ir.findings import Severity

from . import Run, from_here

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(run: Run) -> str:
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
                "fingerprint": hashlib.sha256(f"{identity}\0{seen[identity]}".encode()).hexdigest(),
                "severity": _SEVERITIES[finding.severity],
                "location": {"path": path, "lines": {"begin": finding.line or 1}},
            }
        )
    return json.dumps(issues, indent=2) + "\n"
