"""The verdict on an example of a document."""

from __future__ import annotations

import enum
from typing import NamedTuple

from deconv_ir.ir.findings import Finding
from deconv_ir.ir.shapes import Shape
from deconv_ir.spec_examples.scanner import Example


class Verdict(enum.Enum):
    """The result of checking an example."""

    RIGHT = "right"
    WRONG = "wrong"
    UNTOLD = "undecided"


class Judgement(NamedTuple):
    """The verdict on one example.

    `reason` says what the verdict rests on: the computed shapes and their formulas, what is
    wrong, or why the example is undecided; `computed` is empty where nothing could be computed.
    """

    example: Example
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...] = ()
    computed: tuple[Shape, ...] = ()
