"""Kinds of findings in documents, by code."""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.errors import DeconvError
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
            "SE104",
            "unknown-attribute",
            Severity.ERROR,
            "An example has an attribute that its operation does not have.",
            "Mostly a known one is misspelt; the dims are computed without it.",
        ),
        Rule(
            "SE105",
            "attribute-missing",
            Severity.ERROR,
            "An example lacks an attribute that its operation requires.",
            "Readers assume different values for it, or refuse the example.",
        ),
        Rule(
            "SE106",
            "misspelt",
            Severity.ERROR,
            "A tag or a type is one edit away from a known one.",
            "Readers ignore such a tag with all it contains, and know no such operation.",
        ),
        Rule(
            "SE107",
            "not-a-number",
            Severity.ERROR,
            "A dim is neither a number nor a symbol.",
            "No reader takes it; a character too many makes another number of it.",
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


def finding_of(error: DeconvError) -> Finding:
    """Make a finding of an error of the library; file and line are still those of the error."""
    return Finding(
        error.rule or "example",
        Severity.ERROR,
        error.message,
        error.file,
        error.line,
        error.layer,
        error.expected,
        error.actual,
        error.hint,
    )


def undecided(reason: str, file: str, line: int, label: str) -> Finding:
    """Make the finding that says why an example is undecided."""
    message = f"undecided: {reason}"
    return Finding("example-untold", Severity.INFO, message, file, line, label)


def file_under(finding: Finding) -> Finding:
    """Give a finding the code, and the severity, of its rule.

    The finer names that errors of the library have (``channels``, say) stay.
    """
    rule = _BY_NAME.get(finding.rule, RULES["SE103"])
    return finding._replace(code=rule.code, severity=rule.severity)
