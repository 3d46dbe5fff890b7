"""What is found of an example in a document."""

from __future__ import annotations

import enum
from typing import NamedTuple

from deconv_ir.ir.findings import Finding
from deconv_ir.ir.shapes import Shape
from deconv_ir.spec_examples.scanner import Example


class Verdict(enum.Enum):
    """What can be said of an example."""

    RIGHT = "right"
    WRONG = "wrong"
    UNTOLD = "undecided"


class Judgement(NamedTuple):
    """What was found of one example.

    Attributes
    ----------
    example : Example
    verdict : Verdict
    reason : str
        What it rests on: the computed shapes and their formulas, what is
        wrong, or why nothing can be told.
    findings : tuple of Finding
        What is to be reported.
    computed : tuple of Shape
        Computed shapes of the outputs; empty where they could not be.
    """

    example: Example
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...] = ()
    computed: tuple[Shape, ...] = ()
