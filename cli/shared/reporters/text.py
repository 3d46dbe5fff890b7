"""For people: file:line:column, the line with a caret, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import click

from deconv_ir.errors import MAX_NAME, one_line
from deconv_ir.findings import Finding, Severity
from deconv_ir.linter.engine import FileResult

from ..common import counted
from ..reporters import Report

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_WIDTH = 100


def render(run: Report) -> str:
    """Write all findings and a summary."""
    parts = [show(finding, result) for result in run.results for finding in result.findings]
    if run.show_fixes:
        parts.append(fixes(run.results))
    if any(result.verdicts for result in run.results):
        from .verdicts import describe

        parts += [line for result in run.results for line in describe(result)]
    parts.append(summary(run))
    return "\n".join(parts) + "\n"


def show(finding: Finding, result: FileResult) -> str:
    """Write one finding."""
    place = one_line(":".join(str(p) for p in (finding.file, finding.line, finding.column) if p))
    colour = COLOURS[finding.severity]
    head = (
        f"{click.style(place, bold=True)}: {click.style(finding.code, fg=colour, bold=True)} "
        f"{finding.severity.value}: {one_line(finding.message)} [{finding.rule}]"
    )
    lines = [head]
    text = result.lines.get(finding.line or 0)
    if text is not None and finding.line is not None and text.strip():
        lines += _excerpt(finding, text, colour)
    gutter = " " * (len(str(finding.line or "")) + 2)
    if finding.layer is not None:
        layer = one_line(finding.layer, MAX_NAME)
        is_edge = finding.part.edge is not None
        lines.append(f"{gutter}= {layer}" if is_edge else f"{gutter}= layer {layer}")
    if finding.hint:
        lines.append(f"{gutter}= hint: {one_line(finding.hint)}")
    return "\n".join(lines)


def _excerpt(finding: Finding, text: str, colour: str) -> list[str]:
    """Return the line, with carets under the part at fault."""
    text = text.replace("\t", " ")
    indent = len(text) - len(text.lstrip())
    column = (finding.column or 1) - 1
    end = (finding.end_column or column + 2) - 1
    start = min(indent, column)
    if column - start > _WIDTH * 2 // 3:  # a long line: show the part around
        start = column - _WIDTH // 3
    shown = text[start : start + _WIDTH].rstrip()
    number = str(finding.line)
    gutter = " " * len(number)
    lines = [f" {number} | {one_line(shown)}"]
    if finding.column is not None and column - start <= len(shown):
        # Escapes are longer than their characters.
        indent = len(one_line(shown[: column - start]))
        width = max(1, len(one_line(shown[column - start : end - start])))
        carets = click.style("^" * width, fg=colour, bold=True)
        lines.append(f" {gutter} | {' ' * indent}{carets}")
    return lines


def summary(run: Report) -> str:
    """Summarize the findings, and the files and layers that were not checked."""
    if run.closing is not None:
        return run.closing
    findings = run.findings
    counts = Counter(finding.severity for finding in findings)
    parts = []
    if findings:
        files = len({finding.file for finding in findings})
        found = _by_severity(counts)
        parts.append(f"Found {found} in {files} of {counted(run.results, 'file')}.")
        fixes = [f.fix for f in findings if f.fix is not None and not f.fix.alternatives]
        if safe := sum(fix.safe for fix in fixes):
            parts.append(f"{safe} fixable with --fix.")
        if safe < len(fixes):
            parts.append(f"{len(fixes) - safe} fixable with --unsafe-fixes, to be reviewed.")
    else:
        parts.append(f"No problem found in {counted(run.results, 'file')}.")
    if run.fixed:
        parts.append(f"Fixed {run.fixed}.")
    if run.known:
        parts.append(f"{run.known} more {_are(run.known)} in the baseline.")
    suppressed = sum(result.suppressed for result in run.results)
    if suppressed:
        parts.append(f"{suppressed} more {_are(suppressed)} suppressed by comments.")
    hidden: Counter[Severity] = Counter()
    for result in run.results:
        hidden.update(dict(result.hidden))
    if hidden:
        them = "it" if hidden.total() == 1 else "them"
        parts.append(f"Not shown: {_by_severity(hidden)}; --severity info shows {them}.")
    passed_over: Counter[str] = Counter()
    for result in run.results:
        passed_over.update(dict(result.passed_over))
    if passed_over:
        types = ", ".join(
            f"{count} {one_line(type_name, MAX_NAME)}"
            for type_name, count in passed_over.most_common(8)
        )
        more = ", ..." if len(passed_over) > 8 else ""
        parts.append(
            f"No shape rule, declared shape used: {counted(passed_over.total(), 'layer')} "
            f"({types}{more})."
        )
    if run.no_ir:
        parts.append(f"Skipped {counted(run.no_ir, 'XML file')} that {_are(run.no_ir)} not an IR.")
    return " ".join(parts)


def fixes(results: Iterable[FileResult]) -> str:
    """List the findings that were fixed, by file and rule."""
    from deconv_ir.linter.catalogue import RULES

    lines = []
    for result in results:
        if result.fixes:
            lines.append(f"{one_line(result.file)}: fixed")
            lines += [f"  {code} {RULES[code].name}: {count}" for code, count in result.fixes]
    return "\n".join(lines or ["Nothing was fixed."])


def _by_severity(counts: Counter[Severity]) -> str:
    names = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    return ", ".join(counted(counts[s], name) for s, name in names.items() if counts[s])


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
