"""Kinds of findings in documents, by code, and the verdict on an example."""

from __future__ import annotations

import enum
from typing import NamedTuple

from deconv_ir.findings import Finding, Severity
from deconv_ir.ir.shapes import Shape
from deconv_ir.spec_examples.scanner import Example


class DocumentRule(NamedTuple):
    """A kind of finding: the problem in one sentence, and why it matters."""

    code: str
    name: str
    severity: Severity
    title: str
    why: str
    family: str = "examples"


_ROWS = """
SE101 declared-dims error
An output dim that an example prints is not the computed one.
Readers implement what examples show, and test against it.

SE102 declared-type error
An output precision that an example prints is not the computed one.
Readers implement what examples show, and test against it.

SE103 example-does-not-fit error
Inputs or attributes of an example do not fit the operation, or each other.
No implementation can run such an example.

SE104 unknown-attribute error
An example has an attribute that its operation does not have.
Mostly a known one is misspelt; the dims are computed without it.

SE105 attribute-missing error
An example lacks an attribute that its operation requires.
Readers assume different values for it, or refuse the example.

SE106 misspelt error
A tag or a type is one edit away from a known one.
Readers ignore such a tag and its contents, and do not know such an operation.

SE107 not-a-number error
A dim is neither a number nor a symbol.
No reader accepts it; removing the stray character by guess may give a wrong number.

SE108 unlikely-type warning
An example of a convolution declares an output of 64-bit integers, and no input of that type.
It is the type of shapes and indices, and mostly copied from such a port.

SE201 profiles-differ info
The specification and the runtime find different pads for an example.
An implementation of the specification does not give the runtime's numbers.

SE301 example-untold info
Examples that could not be checked.
An attribute or a dim that the shape depends on is not printed, or no shape rule is known.

SE302 no-example info
A document has no XML layer example.
No output would look like a clean check.
"""

RULES: dict[str, DocumentRule] = {}
"""Code -> rule, in order."""

for _row in _ROWS.strip().split("\n\n"):
    _head, _title, _why = _row.split("\n")
    _code, _name, _severity = _head.split()
    RULES[_code] = DocumentRule(_code, _name, Severity(_severity), _title, _why)

_BY_NAME = {rule.name: rule for rule in RULES.values()}


class Verdict(enum.Enum):
    """The result of checking an example."""

    RIGHT = "right"
    WRONG = "wrong"
    UNTOLD = "undecided"


class Judgement(NamedTuple):
    """The verdict on one example.

    `reasons` explain the verdict: the computed shapes and their formulas, the mistakes, or the
    reason why the example is undecided; `computed` is empty if shapes could not be computed.
    `explanation` is a change elsewhere in the example that explains all wrong dims; `proven` are
    the wrong output dims that are at fault themselves (output port, and axis, or None for the
    number of dims).
    """

    example: Example
    verdict: Verdict
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    computed: tuple[Shape, ...] = ()
    explanation: str = ""
    proven: frozenset[tuple[int, int | None]] = frozenset()

    @property
    def reason(self) -> str:
        """All reasons in one line."""
        return "; ".join(self.reasons)


def undecided(reason: str, file: str, line: int, label: str) -> Finding:
    """Make the finding for an undecided example, with the reason."""
    message = f"undecided: {reason}"
    return Finding(message, file=file, line=line, layer=label, rule="example-untold")


def file_under(finding: Finding) -> Finding:
    """Set the code and the severity of a finding from its rule.

    The more specific names of the library's errors (such as ``channels``) are kept.
    """
    rule = _BY_NAME.get(finding.rule, RULES["SE103"])
    name = finding.rule or "example"
    return finding._replace(rule=name, code=rule.code, severity=rule.severity)
