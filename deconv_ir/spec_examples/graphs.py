"""Check of whole graphs in a document: oneDNN Graph files, and layers with bodies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding, GraphLocation, Severity
from deconv_ir.formats.format import ParsedFile
from deconv_ir.formats.onednn_json.kinds import KINDS, UNSUPPORTED
from deconv_ir.formats.onednn_json.reader import parse_bytes
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import format_shape
from deconv_ir.spec_examples.rules import Judgement, Verdict, file_under, undecided
from deconv_ir.spec_examples.scanner import Example
from deconv_ir.spec_examples.text import DerivedText, Document
from deconv_ir.suggestions import nearest

MAY_HAVE_GRAPHS = re.compile(r'(?:\\?"|&(?:quot|QUOT|#0*34|#[xX]0*22);|>)graph\b')
"""A text without it has no graphs."""
_GRAPH = re.compile(r'"graph"\s*:\s*\[')
_BRACE = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]')
_ELIDED = re.compile(r"\.\.\.|\u2026")
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~)|</pre>", re.MULTILINE)
_MAX_UNCLOSED = 20
"""Number of examples without an end after which the search stops."""
_MAX_CUT = 1 << 16
"""Characters of an example without an end that are read."""


class _Span(NamedTuple):
    start: int
    end: int


def find_graphs(text: str) -> Iterator[_Span]:
    """Iterate over the spans of JSON objects with a member ``graph``.

    An object of operations that is cut short ends with its block.
    """
    end = unclosed = 0
    hidden = _comments(text)
    comment = next(hidden, None)
    for match in _GRAPH.finditer(text):
        start = text.rfind("{", end, match.start())
        while comment is not None and comment.end <= match.start():
            comment = next(hidden, None)
        is_hidden = comment is not None and comment.start < match.start()
        if start < 0 or unclosed > _MAX_UNCLOSED or is_hidden:
            continue
        depth = 0
        for brace in _BRACE.finditer(text, start):
            depth += (brace[0] == "{") - (brace[0] == "}")
            if not depth and brace[0] == "}":
                end = brace.end()
                yield _Span(start, end)
                break
        else:
            unclosed += 1
            fence = _FENCE.search(text, match.end(), match.end() + _MAX_CUT)
            cut = fence.start() if fence else min(len(text), match.end() + _MAX_CUT)
            if '"kind"' in text[match.end() : cut]:
                end = cut
                yield _Span(start, cut)


def _comments(text: str) -> Iterator[_Span]:
    """Iterate over the HTML comments; one in which another opens has lost its end."""
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        close = text.find("-->", start)
        if close < 0:
            return
        at = start + 4
        if text.find("<!--", at, close) < 0:
            at = close + 3
            yield _Span(start, at)


def judge_graphs(document: Document, semantics: Semantics) -> list[Judgement]:
    """Check every oneDNN Graph file of a document, in order."""
    found: dict[int, Judgement] = {}
    # The unescaped text, if any, comes last; it is the one without markup.
    for derived in reversed(list(document.texts())):
        for start, end in find_graphs(derived.text):
            origin = derived.start(start)
            if origin not in found:
                found[origin] = _judge(_Excerpt(document, derived, start, end), semantics)
    return [found[origin] for origin in sorted(found)]


class _Excerpt(NamedTuple):
    """A part of a document, or of a text derived from it."""

    document: Document
    derived: DerivedText
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.derived.text[self.start : self.end]

    def line(self, number: int) -> int:
        """Return the document's line of a line of the excerpt, which are counted from 1."""
        at = self.start
        for _ in range(number - 1):
            at = self.derived.text.find("\n", at, self.end) + 1 or at
        return self.document.line(self.derived.start(at))

    def placed(self, found: Finding, read: ParsedFile) -> Finding:
        """Return a finding with the lines and columns of the document."""
        line = self.line(found.line or 1)
        column: int | None = None
        if isinstance(found.location, GraphLocation) and found.part.layer is not None:
            span = read.locator().span(found.location)
            first, last = self.derived.start(self.start + span.start), self.start + span.end
            line, column = self.document.line(first), self.document.column(first)
            end = column + self.derived.end(last) - first
            same = self.document.line(self.derived.end(last)) == line
            found = found._replace(end_column=end if same else None)
        return found._replace(file=self.document.name, line=line, column=column, location=None)


def _judge(excerpt: _Excerpt, semantics: Semantics) -> Judgement:
    example = Example(
        {"type": "oneDNN Graph"}, excerpt.line(1), excerpt.derived.start(excerpt.start)
    )
    text = excerpt.text
    read = parse_bytes(text.encode("utf-8", "surrogateescape"))
    findings: list[Finding] = []
    if read.graph is not None:
        for index, layer in enumerate(read.graph.layers):
            place = GraphLocation(layer=index)
            findings += (f._replace(location=place) for f in _misspelt(layer, read))
    return _verdict(excerpt, example, read, findings, semantics)


def _misspelt(layer: Layer, read: ParsedFile) -> Iterator[Finding]:
    """Report a kind or an attribute that oneDNN Graph does not have."""
    kind = layer.type
    if kind in ("Parameter", "Result"):
        return
    if kind not in KINDS and kind not in UNSUPPORTED:
        hint = nearest(kind, [*KINDS, *UNSUPPORTED])
        if hint is not None:
            message = f"{kind} is not a known operation"
            yield Finding(message, hint=hint, layer=layer.label, rule="misspelt")
        return
    known = read.known_attributes(layer)
    for name, _ in layer.attributes:
        if known is not None and name not in known:
            message = f"{kind} has no attribute {name!r}"
            hint, line = nearest(name, known), layer.line
            yield Finding(
                message, hint=hint, line=line, layer=layer.label, rule="unknown-attribute"
            )


def _verdict(
    excerpt: _Excerpt,
    example: Example,
    read: ParsedFile,
    findings: list[Finding],
    semantics: Semantics,
) -> Judgement:
    """Infer a graph that was read from an excerpt, and compare its dims."""
    document = excerpt.document
    errors: list[DeconvError] = list(read.errors)
    reasons: tuple[str, ...] = ()
    missing: list[str] = []
    if read.graph is not None and not errors:
        errors += read.graph.topology.errors
    if read.graph is not None and not errors:
        inference = infer(read.graph, Context(semantics), collect=True)
        errors += inference.errors
        findings += inference.findings
        layers = read.graph.layers
        missing = sorted({x.type for x in layers if not x.operation.implemented})
        reasons = tuple(
            f"{layer.label}: {', '.join(format_shape(info.shape) for info in infos)}"
            for layer, infos in zip(layers, inference.outputs, strict=True)
            if layer.type not in ("Parameter", "Result")
        )
    if errors and _ELIDED.search(excerpt.text):
        missing, errors = ["parts that are left out"], []
    findings += (error.finding for error in errors)
    findings = [file_under(excerpt.placed(found, read)) for found in findings]
    wrong = [f for f in findings if f.severity is Severity.ERROR]
    if wrong:
        reasons = tuple(f.message for f in wrong)
        return Judgement(example, Verdict.WRONG, reasons, tuple(findings))
    if missing:
        reason = f"no shape rule for {', '.join(missing)}"
        note = undecided(reason, document.name, example.line, example.label)
        return Judgement(example, Verdict.UNTOLD, (reason,), (*findings, file_under(note)))
    return Judgement(example, Verdict.RIGHT, reasons, tuple(findings))
