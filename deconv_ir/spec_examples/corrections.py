"""The edits of a document that replace the dims of an example by the computed ones."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.edits import Edit
from deconv_ir.findings import Severity
from deconv_ir.ir.shapes import Shape, intersect_dims, static
from deconv_ir.spec_examples.dims import is_malformed, printed_dim
from deconv_ir.spec_examples.rules import Judgement, Verdict
from deconv_ir.spec_examples.scanner import PortText
from deconv_ir.spec_examples.text import Document

_DIMS = ("declared-dims", "not-a-number")
_DOUBTFUL = frozenset({"unknown-attribute", "attribute-missing", "misspelt"})
"""Findings with which the computed dims may be those of an unintended layer."""


def corrections(
    judgement: Judgement, document: Document, *, unsafe: bool = False
) -> tuple[list[Edit], bool]:
    """Return the edits for one example, and whether they fix it completely.

    With `unsafe`, they also replace dims that may be right, since another number may be wrong.
    """
    edits: list[Edit] = []
    errors = [f for f in judgement.findings if f.severity is Severity.ERROR]
    if judgement.verdict is not Verdict.WRONG:
        return [], True
    if judgement.explanation:
        unsafe = False  # only dims that are wrong themselves
    if _DOUBTFUL.intersection(f.rule for f in errors) or any(
        is_malformed(dim.text) for port in judgement.example.inputs for dim in port.dims
    ):
        return [], False
    whole = bool(judgement.computed) and all(f.rule in _DIMS for f in errors)
    pairs = zip(judgement.example.outputs, judgement.computed, strict=False)
    for index, (port, computed) in enumerate(pairs):
        if port.elided or not port.dims:
            continue
        if computed is not None and len(computed) != len(port.dims):
            if not unsafe and (index, None) not in judgement.proven:
                whole = False
                continue
            try:
                edits += _resize(port, computed, document)
            except ValueError:
                whole = False
        elif computed is not None:
            for axis, (stated, dim) in enumerate(zip(port.dims, computed, strict=True)):
                if not is_malformed(stated.text) and (
                    intersect_dims(printed_dim(stated.text), dim) is not None
                ):
                    continue
                if isinstance(dim, int) and (unsafe or (index, axis) in judgement.proven):
                    edits.append((stated.start, stated.end, str(dim)))
                else:
                    whole = False
    return edits, whole


def _resize(port: PortText, computed: Shape, document: Document) -> Iterator[Edit]:
    """Add or remove dims, in the format of the last one, including its indentation."""
    dims = static(computed)
    if not all(stated.closed for stated in port.dims):
        raise ValueError("a dim has no end tag")
    kept = port.dims[: len(dims)]
    if not kept:
        raise ValueError("a scalar has no dims")
    for stated, dim in zip(kept, dims, strict=False):
        if intersect_dims(printed_dim(stated.text), dim) is None:
            yield stated.start, stated.end, str(dim)
    last = port.dims[-1]
    if len(dims) < len(port.dims):
        yield port.dims[len(dims)].unit_start, last.unit_end, ""
    else:
        before = document.text[last.unit_start : last.start]
        after = document.text[last.end : last.unit_end]
        more = "".join(f"{before}{dim}{after}" for dim in dims[len(port.dims) :])
        yield last.unit_end, last.unit_end, more
