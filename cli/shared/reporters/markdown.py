"""A table for people, in GitHub Flavored Markdown: for summaries of jobs and comments."""

from __future__ import annotations

import re

import click

from deconv_ir.errors import one_line
from deconv_ir.findings import Severity

from ..reporters import Report, from_here
from .text import summary
from .verdicts import reason

MAX_ROWS = 100
"""Findings in the table; a comment on GitHub has at most 65536 characters."""
_MAX_CELL = 300
_SEVERITIES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(run: Report) -> str:
    """Write a heading, the summary, and a table of the findings and one of the verdicts."""
    lines = [f"### {run.tool.name}", "", _text(summary(run))]
    findings = run.findings
    if findings:
        lines += ["", "| file | line | rule | | |", "|---|---|---|---|---|"]
    for finding in findings[:MAX_ROWS]:
        layer = f"layer {finding.layer}: " if finding.layer else ""
        cells = (
            _code(from_here(finding.file or "")),
            str(finding.line or ""),
            f"{finding.code} {finding.rule}",
            _SEVERITIES[finding.severity],
            _text(f"{layer}{finding.message}"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    if (more := len(findings) - MAX_ROWS) > 0:
        lines += ["", f"{more} more are in the log."]
    verdicts = [(r.file, verdict) for r in run.results for verdict in r.verdicts]
    if verdicts:
        lines += ["", "| file | target | verdict | |", "|---|---|---|---|"]
    for file, verdict in verdicts[:MAX_ROWS]:
        why = _text(reason(verdict.because[0])) if verdict.because else ""
        row = (_code(from_here(file)), _code(verdict.target), verdict.word, why)
        lines.append(f"| {' | '.join(row)} |")
    if (more := len(verdicts) - MAX_ROWS) > 0:
        lines += ["", f"{more} more are in the log."]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Escape what Markdown, HTML or GitHub (mentions, references) would interpret."""
    text = one_line(click.unstyle(text), _MAX_CELL)
    text = re.sub(r"[\\`*_{}\[\]()#+!|~<>&$-]", lambda m: f"&#{ord(m[0])};", text)
    return text.replace("@", "@<!-- -->").replace("://", ":<!-- -->//")


def _code(text: str) -> str:
    """Return text as code, which may have no backtick and no bar."""
    return f"<code>{_text(text)}</code>"
