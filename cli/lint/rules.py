"""Output about rules: --list-rules, --explain, --statistics."""

from __future__ import annotations

import json
import textwrap
from collections import Counter

import click

from deconv_ir.linter.catalogue import RULES, families, find_rule, nearest_rule
from deconv_ir.linter.plugins import load_rules
from deconv_ir.linter.rule import Rule, RuleState
from deconv_ir.linter.settings import SETTINGS_OF

from ..shared.common import Mistake
from ..shared.reporters import Report
from ..shared.reporters.text import COLOURS


def describe(explain: str | None, format_: str, *, schema: bool) -> str:
    """Return the schema of the settings, the explanation of a rule, or the list of all rules."""
    load_rules()
    if schema:
        from deconv_ir.linter.settings import json_schema

        return json.dumps(json_schema(), indent=2) + "\n"
    return rule_table(format_) if explain is None else explain_rule(explain)


def rule_table(format_: str = "text") -> str:
    """List all rules, by family."""
    rules = list(RULES.values())
    if format_ == "json":
        rows = [
            {
                "code": rule.code,
                "name": rule.name,
                "family": rule.family,
                "severity": rule.severity.value,
                "fix": rule.fix or None,
                "deep": rule.deep,
                "state": rule.state.value,
                "summary": rule.title,
            }
            for rule in rules
        ]
        return json.dumps(rows, indent=2) + "\n"
    width = max(len(rule.name) for rule in rules)
    lines = []
    for family in families():
        lines.append(click.style(family, bold=True))
        for rule in rules:
            if rule.family == family:
                severity = rule.severity.value
                mark = "+" if rule.fix else " "
                padded = click.style(f"{severity:<8}", fg=COLOURS[rule.severity])
                state = "" if rule.state is RuleState.STABLE else f" ({rule.state.value})"
                title = f"{_plain(rule.title)}{state}"
                lines.append(f"  {rule.code} {mark} {rule.name:<{width}}  {padded} {title}")
        lines.append("")
    lines.append("+ : fixable with --fix.  Rules of severity info run with --severity info.")
    return "\n".join(lines) + "\n"


def explain_rule(word: str) -> str:
    """Explain one rule."""
    entry = find_rule(word)
    if entry is None:
        raise Mistake(f"unknown rule {word!r} ({nearest_rule(word).command})")
    rule = RULES[entry.code]
    notes = [f"Severity: {rule.severity.value}. Family: {rule.family}."]
    if rule.fix:
        notes.append(f"--fix {rule.fix}.")
    if rule.deep:
        notes.append("Runs with --deep only.")
    if rule.state is RuleState.PREVIEW:
        notes.append("In preview: runs with --preview, or if it is named.")
    if rule.state is RuleState.DEPRECATED:
        instead = f"; use {rule.successor}" if rule.successor else ""
        notes.append(f"Deprecated: runs only if it is named{instead}.")
    beside = f" (with a .bin of {rule.weights})" if rule.weights else ""
    parts = [
        click.style(f"{rule.code} {rule.name}", bold=True),
        _plain(rule.title),
        textwrap.fill(_plain(rule.why), 79),
        " ".join(notes),
        f"Fails{beside}:\n\n{textwrap.indent(rule.fragment, '    ')}" if rule.fragment else "",
        _settings_of(rule),
        f"Documentation: {rule.docs}" if rule.docs else "",
    ]
    parts = [part for part in parts if part]
    return "\n\n".join(parts) + "\n"


def _settings_of(rule: Rule) -> str:
    """List the settings of a package's rules."""
    declared = SETTINGS_OF.get(rule.family, ())
    lines = [f"    {s.name} = {s.default!r}  # {s.text}" for s in declared]
    return "\n".join([f"Settings, in the table {rule.family}:\n", *lines]) if lines else ""


def _plain(text: str) -> str:
    """Remove the markup of reStructuredText."""
    return text.replace("``", "").replace("`", "")


def count_by_rule(run: Report, format_: str = "text") -> str:
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
