"""Check of the oneDNN Graph files that are examples in a document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding, Severity
from deconv_ir.formats.onednn_json.reader import parse_bytes
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import format_shape
from deconv_ir.spec_examples.rules import Judgement, Verdict, file_under, undecided
from deconv_ir.spec_examples.scanner import Example
from deconv_ir.spec_examples.text import Document

_GRAPH = re.compile(r'"graph"\s*:\s*\[')
_BRACE = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]')
_ELIDED = re.compile(r"\.\.\.|\u2026")
_MAX_UNCLOSED = 20
"""Number of examples without an end after which the search stops."""


def find_graphs(text: str) -> Iterator[tuple[int, int]]:
    """Iterate over the spans of JSON objects with a member ``graph``."""
    end = unclosed = 0
    for match in _GRAPH.finditer(text):
        start = text.rfind("{", end, match.start())
        if start < 0 or unclosed > _MAX_UNCLOSED:
            continue
        depth = 0
        for brace in _BRACE.finditer(text, start):
            depth += (brace[0] == "{") - (brace[0] == "}")
            if not depth and brace[0] == "}":
                end = brace.end()
                yield start, end
                break
        else:
            unclosed += 1


def judge_graphs(document: Document, semantics: Semantics) -> list[Judgement]:
    """Check every oneDNN Graph file of a document, in order."""
    return [_judge(document, start, end, semantics) for start, end in find_graphs(document.text)]


def _judge(document: Document, start: int, end: int, semantics: Semantics) -> Judgement:
    text = document.text[start:end]
    first = document.text.count("\n", 0, start)
    example = Example({"type": "oneDNN Graph"}, first + 1, start)
    read = parse_bytes(text.encode("utf-8", "surrogateescape"))
    errors: list[DeconvError] = list(read.errors)
    findings: list[Finding] = []
    reason, missing = "", []
    if read.graph is not None and not errors:
        errors += read.graph.topology.errors
    if read.graph is not None and not errors:
        inference = infer(read.graph, Context(semantics), collect=True)
        errors += inference.errors
        findings += inference.findings
        layers = read.graph.layers
        missing = sorted({x.type for x in layers if not x.operation.implemented})
        reason = "; ".join(
            f"{layer.label}: {', '.join(format_shape(info.shape) for info in infos)}"
            for layer, infos in zip(layers, inference.outputs, strict=True)
            if layer.type not in ("Parameter", "Result")
        )
    if errors and _ELIDED.search(text):
        missing, errors = ["parts that are left out"], []
    findings += (error.finding for error in errors)
    findings = [
        file_under(
            f._replace(file=document.name, line=(f.line or 1) + first, column=None, location=None)
        )
        for f in findings
    ]
    wrong = [f for f in findings if f.severity is Severity.ERROR]
    if wrong:
        return Judgement(
            example, Verdict.WRONG, "; ".join(f.message for f in wrong), tuple(findings)
        )
    if missing:
        reason = f"no shape rule for {', '.join(missing)}"
        note = undecided(reason, document.name, first + 1, example.label)
        return Judgement(example, Verdict.UNTOLD, reason, (*findings, file_under(note)))
    return Judgement(example, Verdict.RIGHT, reason, tuple(findings))
