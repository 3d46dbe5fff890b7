"""The parseable format of Pylint, which many services and editors read.

Source: Pylint documentation, "Pylint output": ``{path}:{line}: [{msg_id}({symbol}), {obj}] {msg}``.
"""

from __future__ import annotations

from deconv_ir.errors import one_line

from ..reporters import Report, from_here


def render(run: Report) -> str:
    """Write one line for each finding; a finding without a line is in line 1."""
    lines = []
    for finding in run.findings:
        hint = f" ({finding.hint})" if finding.hint else ""
        head = f"{from_here(finding.file or '')}:{finding.line or 1}"
        rule = f"{finding.code}({finding.rule}), {finding.layer or ''}"
        lines.append(one_line(f"{head}: [{rule}] {finding.message}{hint}") + "\n")
    return "".join(lines)
