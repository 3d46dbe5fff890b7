"""What a package needs to declare lint rules of its own; docs/extending.md has an example."""

from __future__ import annotations

from deconv_ir.findings import Finding, GraphLocation, Severity
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.edits import attribute_fix
from deconv_ir.linter.rule import ERROR, INFO, WARNING, Rule, RuleState, rule
from deconv_ir.linter.settings import Setting, SettingForm, settings

__all__ = [
    "ERROR",
    "INFO",
    "WARNING",
    "Finding",
    "GraphLocation",
    "LintContext",
    "Rule",
    "RuleState",
    "Setting",
    "SettingForm",
    "Severity",
    "attribute_fix",
    "rule",
    "settings",
]
