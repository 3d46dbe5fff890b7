"""Replacement of the dims in a document by the computed ones, without other changes."""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.edits import Edit, apply_edits
from deconv_ir.ir.options import Semantics
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.corrections import corrections
from deconv_ir.spec_examples.rules import Judgement, Verdict
from deconv_ir.spec_examples.text import Document


class FixedDocument(NamedTuple):
    """The result of fixing a document."""

    data: bytes  # the document with the computed dims
    edits: int  # number of changed places
    left: tuple[Judgement, ...]  # examples that are still wrong, since other dims do not fix them


def fix_document(document: Document, semantics: Semantics = Semantics.SPEC) -> FixedDocument:
    """Replace wrong output dims; all other bytes are unchanged."""
    edits: list[Edit] = []
    left: list[Judgement] = []
    for judgement in check_document(document, semantics):
        if judgement.verdict is Verdict.WRONG:
            own, whole = corrections(judgement, document)
            edits += own
            if not whole:
                left.append(judgement)
    return FixedDocument(
        document.encode(apply_edits(document.text, edits)), len(edits), tuple(left)
    )
