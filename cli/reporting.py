"""Findings of a model that is about to run, as every run reports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .common import Mistake, warn
from .hints import as_line

if TYPE_CHECKING:
    from deconv_ir import Finding


def report_findings(findings: Sequence[Finding], strict: bool) -> None:
    """Warn of findings; with `strict`, declared dims that are wrong are mistakes."""
    wrong = [f for f in findings if f.rule.startswith("declared-")]
    if strict and wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Mistake(f"{as_line(wrong[0])}{more}")
    for finding in findings:
        warn(as_line(finding))
