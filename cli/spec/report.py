"""The report of deconv-spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.errors import one_line
from deconv_ir.findings import Severity
from deconv_ir.ir.shapes import format_shape
from deconv_ir.linter.engine import FileResult
from deconv_ir.spec_examples.check import no_examples
from deconv_ir.spec_examples.rules import RULES, Judgement, Verdict
from deconv_ir.spec_examples.text import Document

from ..shared.common import counted
from ..shared.reporters import Report, Tool, render
from ..shared.reporters.text import show

if TYPE_CHECKING:
    from deconv_ir.spec_examples.verify import Verification

    from .request import CheckRequest

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


def report_of(
    checked: Sequence[tuple[Document, Sequence[Judgement]]],
    results: list[FileResult],
    request: CheckRequest,
) -> str:
    """Return the report of checked documents, in the format of the request."""
    if request.format_ == "text":
        shown = zip(checked, results, strict=True)
        lines = [line for pair in shown for line in _lines_of(*pair, request)]
        lines += [] if request.quiet else [_summary(checked)]
        return "".join(f"{line}\n" for line in lines)
    examples = [_record(d, j) for d, judgements in checked for j in judgements]
    more = {"examples": examples}
    report = Report(results=results, tool=SPEC, closing=_summary(checked), more=more)
    return render(request.format_, report)


def result_of(document: Document, judgements: Sequence[Judgement]) -> FileResult:
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
            reason = judgement.reason if request.verbose else "".join(judgement.reasons[:1])
            yield f"{place}: {word}: {one_line(judgement.example.label)}: {one_line(reason)}"
        for finding in judgement.findings:
            if not request.quiet or finding.severity is not Severity.INFO:
                yield show(finding, result)
    if not judgements and not request.quiet:
        yield show(result.findings[0], result)


def report_left(document: Document, left: Sequence[Judgement]) -> None:
    """Print the examples that are still wrong."""
    for judgement in left:
        where = f"{document.name}:{judgement.example.line}"
        line = f"{where}: not fixed: {judgement.example.label}: {judgement.reason}"
        click.echo(one_line(line), err=True)


def report_fixed(document: Document, places: int) -> None:
    """Print how many places of a document were fixed."""
    click.echo(f"{one_line(document.name)}: {counted(places, 'place')} fixed")


def report_generated(folder: str, examples: Sequence[Any], files: Mapping[str, bytes]) -> None:
    """Print the contents of a golden directory."""
    size = sum(map(len, files.values()))
    counts = f"{counted(examples, 'example')}, {len(files)} files, {size} bytes"
    click.echo(f"{one_line(folder)}: {counts}")


def report_verified(result: Verification, *, quiet: bool) -> None:
    """Print the findings about a golden directory, and their number."""
    for finding in result.findings:
        click.echo(str(finding))
    if not quiet:
        found = counted(result.findings, "finding") if result.findings else "no findings"
        click.echo(f"{counted(result.compared, 'output')} compared, {found}")
