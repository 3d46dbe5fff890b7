"""One line for each finding, in the format of grep and editors."""

from __future__ import annotations

from deconv_ir.errors import one_line

from ..reporters import Report
from .text import summary


def render(run: Report) -> str:
    """Write file:line:column, code and message of each finding, and a summary."""
    lines = []
    for finding in run.findings:
        place = ":".join(str(p) for p in (finding.file, finding.line, finding.column) if p)
        hint = f" ({finding.hint})" if finding.hint else ""
        lines.append(one_line(f"{place}: {finding.code} {finding.message}{hint}"))
    return "\n".join([*lines, summary(run)]) + "\n"
