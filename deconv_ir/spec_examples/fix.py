"""Replacement of the dims in a document by the computed ones, without other changes."""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.edits import Edit, apply_edits
from deconv_ir.ir.options import Semantics
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.corrections import corrections
from deconv_ir.spec_examples.rules import Judgement, Verdict
from deconv_ir.spec_examples.text import Document

MAX_PASSES = 8
"""Maximum number of passes over a document, in which fixed examples confirm others."""


class FixedDocument(NamedTuple):
    """The result of fixing a document."""

    data: bytes  # the document with the computed dims
    edits: int  # number of changed places
    left: tuple[Judgement, ...]  # examples that are still wrong


def fix_document(
    document: Document, semantics: Semantics = Semantics.SPEC, *, unsafe: bool = False
) -> FixedDocument:
    """Replace output dims that are wrong themselves; all other bytes are unchanged.

    With `unsafe`, dims are replaced too where an attribute, an input or a comment may be wrong.
    """
    count = 0
    left: list[Judgement] = []
    data = document.encode(document.text)
    for _ in range(MAX_PASSES):
        edits: list[Edit] = []
        left = []
        for judgement in check_document(document, semantics):
            if judgement.verdict is Verdict.WRONG:
                own, whole = corrections(judgement, document, unsafe=unsafe)
                edits += own
                if not whole:
                    left.append(judgement)
        if not edits:
            break
        count += len(edits)
        data = document.encode(apply_edits(document.text, edits))
        # An example that is right now may confirm others.
        document = type(document)(data, document.name)
    return FixedDocument(data, count, tuple(left))
