"""deconv-spec check and fix: from paths to reports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.errors import DeconvError, one_line
from deconv_ir.findings import Severity
from deconv_ir.formats.files import rewrite
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import format_shape
from deconv_ir.limits import Limits
from deconv_ir.linter.engine import FileResult
from deconv_ir.spec_examples.check import check_document, no_examples
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.notebook import SUFFIXES, open_document, read_document
from deconv_ir.spec_examples.rules import RULES, Judgement, Verdict
from deconv_ir.spec_examples.text import Document

from ..shared.common import (
    EXIT_DIFFERS,
    EXIT_MISTAKE,
    EXIT_OK,
    FROM_STDIN,
    STREAM,
    counted,
    read_standard_input,
    report_error,
    unified_diff,
)
from ..shared.reporters import Report, Tool, render
from ..shared.reporters.text import show

if TYPE_CHECKING:
    from .request import CheckRequest, FixRequest

_MIME_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".rst": "text/x-rst",
    ".html": "text/html",
    ".htm": "text/html",
    ".ipynb": "application/x-ipynb+json",
}


SPEC = Tool(
    name="deconv-spec",
    rule=RULES.__getitem__,
    mime_type=lambda file: _MIME_TYPES.get(Path(file).suffix.lower(), "text/plain"),
)


def expand(paths: Sequence[str]) -> Iterator[str]:
    """Yield the documents that the user named; a folder provides the documents in it."""
    for path in paths:
        if path != STREAM and Path(path).is_dir():
            for folder, folders, files in os.walk(path):
                folders.sort()
                for name in sorted(files):
                    if name.lower().endswith(SUFFIXES):
                        yield str(Path(folder, name))
        else:
            yield path


def _open(path: str, limits: Limits) -> Document:
    if path == STREAM:
        data = read_standard_input(limits.document_bytes)
        if len(data) > limits.document_bytes:
            raise DeconvError(
                f"larger than the limit of {limits.document_bytes} bytes", file=FROM_STDIN
            )
        return open_document(data, FROM_STDIN)
    return read_document(path, limits.document_bytes)


def check_documents(request: CheckRequest) -> tuple[int, str]:
    """Check documents, continuing after invalid ones; return exit code and report."""
    checked: list[tuple[Document, list[Judgement]]] = []
    broken = False
    for path in expand(request.documents):
        try:
            document = _open(path, request.limits)
        except DeconvError as error:
            report_error(error)
            broken = True
            continue
        checked.append((document, check_document(document, Semantics(request.semantics))))
    results = [_result(document, judgements) for document, judgements in checked]
    if request.format_ == "text":
        shown = zip(checked, results, strict=True)
        lines = [line for pair in shown for line in _lines_of(*pair, request)]
        lines += [] if request.quiet else [_summary(checked)]
        report = "".join(f"{line}\n" for line in lines)
    else:
        examples = [_record(d, j) for d, judgements in checked for j in judgements]
        more = {"examples": examples}
        report = render(
            request.format_,
            Report(results=results, tool=SPEC, closing=_summary(checked), more=more),
        )
    if broken:
        return EXIT_MISTAKE, report
    least = _RANKS.index(Severity(request.severity))
    found = any(_RANKS.index(f.severity) <= least for result in results for f in result.findings)
    return (EXIT_DIFFERS if found else EXIT_OK), report


_RANKS = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def _result(document: Document, judgements: Sequence[Judgement]) -> FileResult:
    """Collect a document's findings for the formats."""
    findings = [f for j in judgements for f in j.findings] or (
        [] if judgements else [no_examples(document)]
    )
    numbers = {f.line for f in findings if f.line is not None}
    return FileResult(
        file=document.name,
        findings=findings,
        layers=len(judgements),
        lines={number: document.line_text(number) for number in numbers},
    )


def _record(document: Document, judgement: Judgement) -> dict[str, Any]:
    """Return an example as a JSON object."""
    example = judgement.example
    return {
        "file": document.name,
        "line": example.line,
        "layer": example.label,
        "type": example.type,
        "verdict": judgement.verdict.name.lower(),
        "reason": judgement.reason,
        "computed": [format_shape(shape) for shape in judgement.computed],
    }


def _summary(checked: Sequence[tuple[Document, Sequence[Judgement]]]) -> str:
    counts = Counter(j.verdict for _, judgements in checked for j in judgements)
    parts = ", ".join(f"{counts[v]} {v.value}" for v in Verdict)
    return f"{counted(counts.total(), 'example')}: {parts}"


def _lines_of(
    checked: tuple[Document, Sequence[Judgement]], result: FileResult, request: CheckRequest
) -> Iterator[str]:
    """Yield a line for each correct example, and each finding."""
    document, judgements = checked
    for judgement in judgements:
        if judgement.verdict is Verdict.RIGHT and not request.quiet:
            place = click.style(f"{one_line(document.name)}:{judgement.example.line}", bold=True)
            word = click.style("right", fg="green", bold=True)
            reason = judgement.reason if request.verbose else judgement.reason.partition("; ")[0]
            yield f"{place}: {word}: {one_line(judgement.example.label)}: {one_line(reason)}"
        for finding in judgement.findings:
            if not request.quiet or finding.severity is not Severity.INFO:
                yield show(finding, result)
    if not judgements and not request.quiet:
        yield show(result.findings[0], result)


def fix_documents(request: FixRequest) -> int:
    """Fix documents in place, or show the changes, and return the exit code."""
    code = EXIT_OK
    for path in expand(request.documents):
        try:
            document = _open(path, request.limits)
            changed, left = _fix(document, path, request)
        except DeconvError as error:
            report_error(error)
            code = EXIT_MISTAKE
            continue
        if code == EXIT_OK and (left or (request.diff and changed)):
            code = EXIT_DIFFERS
    return code


def _fix(document: Document, path: str, request: FixRequest) -> tuple[bool, bool]:
    """Fix one document; return whether it changed, and whether an example is still wrong."""
    fixed = fix_document(document, Semantics(request.semantics), unsafe=request.unsafe_fixes)
    for judgement in fixed.left:
        where = f"{document.name}:{judgement.example.line}"
        left = f"{where}: not fixed: {judgement.example.label}: {judgement.reason}"
        click.echo(one_line(left), err=True)
    if request.diff:
        if fixed.edits:
            after = Document(fixed.data, document.name).text
            text = "".join(unified_diff(document.text, after, document.name))
            click.echo(text.encode("utf-8", "surrogateescape"), nl=False)
    elif path == STREAM:
        click.echo(fixed.data, nl=False)
    elif fixed.edits:
        rewrite(Path(path), fixed.data, "the document")
        if not request.quiet:
            click.echo(f"{one_line(document.name)}: {counted(fixed.edits, 'place')} fixed")
    return bool(fixed.edits), bool(fixed.left)
