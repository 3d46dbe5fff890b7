"""Issues of a run of Azure Pipelines.

Source: Azure DevOps documentation, "Logging commands", sections "LogIssue" and "Formatting".
"""

from __future__ import annotations

from deconv_ir.errors import MAX_MESSAGE, one_line
from deconv_ir.findings import Severity

from ..reporters import Report, from_here
from .text import summary

_MAX_TEXT = 4 * MAX_MESSAGE
_ESCAPES = {"%": "%AZP25", ";": "%3B", "]": "%5D", "\r": "%0D", "\n": "%0A"}


def render(run: Report) -> str:
    """Write one logging command for each finding, and a summary for the log.

    There is no type below ``warning``, so notes are warnings, too.
    """
    lines = []
    for finding in run.findings:
        fields = {
            "type": "error" if finding.severity is Severity.ERROR else "warning",
            "sourcepath": finding.file and from_here(finding.file),
            "linenumber": finding.line,
            "columnnumber": finding.column,
            "code": finding.code,
        }
        properties = "".join(
            f"{name}={_escaped(str(value))};" for name, value in fields.items() if value is not None
        )
        layer = f"layer {finding.layer}: " if finding.layer else ""
        hint = f" ({finding.hint})" if finding.hint else ""
        message = one_line(f"{layer}{finding.message}{hint}", _MAX_TEXT).replace("%", "%AZP25")
        lines.append(f"##vso[task.logissue {properties}]{message}")
    # A summary with the name of a file may not begin a command.
    lines.append(one_line(summary(run), _MAX_TEXT).replace("##", "# #"))
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in one_line(text, _MAX_TEXT))
