"""Writing the computed dims into a document, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from deconv_ir.ir.findings import Severity
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import Shape, intersect_dims, static
from deconv_ir.spec_examples.check import check_document, printed_dim
from deconv_ir.spec_examples.judgement import Judgement, Verdict
from deconv_ir.spec_examples.scanner import PortText
from deconv_ir.spec_examples.text import Document


class Edit(NamedTuple):
    """Characters of a document, from `start` up to `end`, and what takes their place."""

    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """What fixing a document comes to.

    Attributes
    ----------
    data : bytes
        The document with the computed dims.
    edits : int
        How many places differ.
    left : tuple of Judgement
        Examples that are still wrong: no dims would make them right.
    """

    data: bytes
    edits: int
    left: tuple[Judgement, ...]


def fix_document(document: Document, semantics: Semantics = Semantics.SPEC) -> Fix:
    """Replace wrong output dims; whatever else there is stays, byte for byte."""
    edits: list[Edit] = []
    left: list[Judgement] = []
    for judgement in check_document(document, semantics):
        if judgement.verdict is Verdict.WRONG:
            own, whole = _edits(judgement, document)
            edits += own
            if not whole:
                left.append(judgement)
    return Fix(document.encode(apply(document.text, edits)), len(edits), tuple(left))


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with its edits, which do not overlap, made."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        parts += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join((*parts, text[at:]))


def _edits(judgement: Judgement, document: Document) -> tuple[list[Edit], bool]:
    """Return the edits for one example; also tell whether they put all of it right."""
    edits: list[Edit] = []
    errors = [f for f in judgement.findings if f.severity is Severity.ERROR]
    whole = bool(judgement.computed) and all(f.rule == "declared-dims" for f in errors)
    for port, computed in zip(judgement.example.outputs, judgement.computed, strict=False):
        if port.elided or not port.dims:
            continue
        if computed is not None and len(computed) != len(port.dims):
            try:
                edits += _resize(port, computed, document)
            except ValueError:
                whole = False
        elif computed is not None:
            for stated, dim in zip(port.dims, computed, strict=True):
                if intersect_dims(printed_dim(stated.text), dim) is not None:
                    continue
                if isinstance(dim, int):
                    edits.append(Edit(stated.start, stated.end, str(dim)))
                else:
                    whole = False
    return edits, whole


def _resize(port: PortText, computed: Shape, document: Document) -> Iterator[Edit]:
    """Print more or fewer dims: the last one's text, indentation and all, is the model.

    Raises
    ------
    ValueError
        A dim is not known, all dims would have to go, or they are no model.
    """
    dims = static(computed)
    if not all(stated.closed for stated in port.dims):
        raise ValueError("a dim has no end tag")
    kept = port.dims[: len(dims)]
    if not kept:
        raise ValueError("a scalar has no dims")
    for stated, dim in zip(kept, dims, strict=False):
        if intersect_dims(printed_dim(stated.text), dim) is None:
            yield Edit(stated.start, stated.end, str(dim))
    last = port.dims[-1]
    if len(dims) < len(port.dims):
        yield Edit(port.dims[len(dims)].unit_start, last.unit_end, "")
    else:
        before = document.text[last.unit_start : last.start]
        after = document.text[last.end : last.unit_end]
        more = "".join(f"{before}{dim}{after}" for dim in dims[len(port.dims) :])
        yield Edit(last.unit_end, last.unit_end, more)
