"""What deconv-lint prints about its rules: the list, one explained, counts."""

from __future__ import annotations

import json
import textwrap
from collections import Counter

import click

from deconv_ir.linter.catalogue import RULES, find_rule, nearest_rule
from deconv_ir.linter.documentation import explain
from deconv_ir.linter.rule import FAMILIES

from .common import Mistake
from .hints import option_for
from .reporters import Run

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


def rule_table(format_: str = "text") -> str:
    """List all rules, by family."""
    if format_ == "json":
        rows = [
            {
                "code": entry.code,
                "name": entry.name,
                "family": entry.family,
                "severity": entry.severity.value,
                "fix": entry.fix or None,
                "deep": entry.deep,
                "summary": entry.summary,
            }
            for entry in RULES.values()
        ]
        return json.dumps(rows, indent=2) + "\n"
    width = max(len(entry.name) for entry in RULES.values())
    lines = []
    for family in FAMILIES.values():
        lines.append(click.style(family, bold=True))
        for entry in RULES.values():
            if entry.family == family:
                severity = entry.severity.value
                mark = "+" if entry.fix else " "
                padded = click.style(f"{severity:<8}", fg=_COLOURS[severity])
                lines.append(
                    f"  {entry.code} {mark} {entry.name:<{width}}  {padded} {_plain(entry.summary)}"
                )
        lines.append("")
    lines.append("+ : fixable with --fix.  Rules of severity info run with --severity info.")
    return "\n".join(lines) + "\n"


def explain_rule(word: str) -> str:
    """Explain one rule.

    Raises
    ------
    Mistake
        The rule is unknown.
    """
    entry = find_rule(word)
    if entry is None:
        raise Mistake(f"unknown rule {word!r} ({option_for(nearest_rule(word))})")
    told = explain(entry.code)
    notes = [f"Severity: {entry.severity.value}. Family: {entry.family}."]
    if entry.fix:
        notes.append(f"--fix {entry.fix}.")
    if entry.deep:
        notes.append("Runs with --deep only.")
    parts = [
        click.style(f"{entry.code} {entry.name}", bold=True),
        _plain(told.summary),
        _plain(told.why),
        " ".join(notes),
    ]
    for title, fragment in (("Fails:", told.fails), ("Passes:", told.passes)):
        beside = f" (with a .bin of {fragment.weights})" if fragment.weights else ""
        parts.append(f"{title}{beside}\n\n{textwrap.indent(fragment.xml, '    ')}")
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Take the marks of reStructuredText out."""
    return text.replace("``", "").replace("`", "")


def count_by_rule(run: Run, format_: str = "text") -> str:
    """Count findings by rule, most frequent first."""
    counts = Counter(finding.code for finding in run.findings)
    if format_ == "json":
        rows = [
            {"code": code, "name": RULES[code].name, "count": count}
            for code, count in counts.most_common()
        ]
        return json.dumps(rows, indent=2) + "\n"
    width = len(str(max(counts.values(), default=0)))
    return "".join(
        f"{count:>{width}}  {code}  {RULES[code].name}\n" for code, count in counts.most_common()
    )
