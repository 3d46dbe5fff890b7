"""Kinds of findings in documents, by code."""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.ir.findings import Finding, Severity


class Rule(NamedTuple):
    """A kind of finding: the problem in one sentence, and why it matters."""

    code: str
    name: str
    severity: Severity
    title: str
    why: str
    family: str = "examples"


RULES: dict[str, Rule] = {
    rule.code: rule
    for rule in (
        Rule(
            "SE101",
            "declared-dims",
            Severity.ERROR,
            "An output dim that an example prints is not the computed one.",
            "Readers implement what examples show, and test against it.",
        ),
        Rule(
            "SE102",
            "declared-type",
            Severity.ERROR,
            "An output precision that an example prints is not the computed one.",
            "Readers implement what examples show, and test against it.",
        ),
        Rule(
            "SE103",
            "example-does-not-fit",
            Severity.ERROR,
            "Inputs or attributes of an example do not fit the operation, or each other.",
            "No implementation can run such an example.",
        ),
        Rule(
            "SE201",
            "profiles-differ",
            Severity.INFO,
            "The specification and the OpenVINO runtime find different pads for an example.",
            "An implementation that is compared with the runtime gives other numbers.",
        ),
        Rule(
            "SE301",
            "example-untold",
            Severity.INFO,
            "Examples that could not be checked.",
            "It is not checked: something that matters is not printed, or no shape rule is known.",
        ),
        Rule(
            "SE302",
            "no-example",
            Severity.INFO,
            "A document has no XML layer example.",
            "No output would look like a clean check.",
        ),
    )
}
"""Code -> rule, in order."""

_BY_NAME = {rule.name: rule for rule in RULES.values()}


def file_under(finding: Finding) -> Finding:
    """Give a finding the code, and the severity, of its rule.

    The finer names that errors of the library have (``channels``, say) stay.
    """
    rule = _BY_NAME.get(finding.rule, RULES["SE103"])
    return finding._replace(code=rule.code, severity=rule.severity)
