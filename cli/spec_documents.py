"""deconv-spec check and fix: from the user's paths to what is printed."""

from __future__ import annotations

import difflib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from deconv_ir.errors import DeconvError, OutputError
from deconv_ir.files import replace_file
from deconv_ir.findings import Finding, Severity
from deconv_ir.geometry import Semantics
from deconv_ir.spec_examples.check import Judgement, Verdict, check_document, no_examples
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.text import MAX_BYTES, Document, read_document

from .common import EXIT_DIFFERS, EXIT_MISTAKE, EXIT_OK, Mistake

STREAM = "-"
SUFFIXES = (".md", ".markdown", ".rst", ".txt", ".html", ".htm")

_COLOURS = {Verdict.RIGHT: "green", Verdict.WRONG: "red", Verdict.UNTOLD: "yellow"}


def expand(paths: Sequence[str]) -> Iterator[str]:
    """Yield the documents that the user named; a folder stands for those in it."""
    for path in paths:
        if path != STREAM and Path(path).is_dir():
            for folder, folders, files in os.walk(path):
                folders.sort()
                for name in sorted(files):
                    if name.lower().endswith(SUFFIXES):
                        yield str(Path(folder, name))
        else:
            yield path


def _open(path: str) -> Document:
    if path == STREAM:
        return Document(sys.stdin.buffer.read(MAX_BYTES), "<stdin>")
    return read_document(path)


def check_documents(
    paths: Sequence[str], semantics: str, *, verbose: bool = False, quiet: bool = False
) -> int:
    """Check documents, report, and return the exit code; one that is broken stops no other."""
    counts: Counter[Verdict] = Counter()
    found = broken = False
    for path in expand(paths):
        try:
            document = _open(path)
        except DeconvError as error:
            Mistake(str(error)).show()
            broken = True
            continue
        judgements = check_document(document, Semantics(semantics))
        findings = [f for j in judgements for f in j.findings]
        if not judgements:
            findings.append(no_examples(document))
        counts.update(j.verdict for j in judgements)
        found = found or any(f.severity is Severity.ERROR for f in findings)
        for judgement in judgements:
            _print(document, judgement, verbose=verbose, quiet=quiet)
        if not judgements and not quiet:
            click.echo(f"{document.name}: no XML layer example was found")
    if not quiet:
        click.echo(_summary(counts))
    if broken:
        return EXIT_MISTAKE
    return EXIT_DIFFERS if found else EXIT_OK


def _summary(counts: Counter[Verdict]) -> str:
    total = counts.total()
    parts = ", ".join(f"{counts[v]} {v.value}" for v in Verdict)
    return f"{total} example{'s' if total != 1 else ''}: {parts}"


def _print(document: Document, judgement: Judgement, *, verbose: bool, quiet: bool) -> None:
    example, verdict = judgement.example, judgement.verdict
    word = click.style(verdict.value, fg=_COLOURS[verdict], bold=True)
    if verdict is Verdict.WRONG:
        for finding in judgement.findings:
            if finding.severity is Severity.ERROR:
                click.echo(_line(finding, word))
    elif not quiet:
        reason = judgement.reason
        if verdict is Verdict.RIGHT and not verbose:
            reason = reason.partition("; ")[0]
        click.echo(f"{document.name}:{example.line}: {word}: {example.label}: {reason}")
    for finding in judgement.findings:
        if finding.rule == "profiles-differ":
            click.echo(_line(finding, click.style("note", fg="cyan", bold=True)))


def _line(finding: Finding, word: str) -> str:
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{finding.file}:{finding.line}: {word}: {finding.layer}: {finding.message}{hint}"


def fix_documents(
    paths: Sequence[str], semantics: str, *, diff: bool = False, quiet: bool = False
) -> int:
    """Fix documents in place, or show how, and return the exit code."""
    code = EXIT_OK
    for path in expand(paths):
        try:
            document = _open(path)
            changed, left = _fix(document, path, semantics, diff=diff, quiet=quiet)
        except DeconvError as error:
            Mistake(str(error)).show()
            code = EXIT_MISTAKE
            continue
        if code == EXIT_OK and (left or (diff and changed)):
            code = EXIT_DIFFERS
    return code


def _fix(
    document: Document, path: str, semantics: str, *, diff: bool, quiet: bool
) -> tuple[bool, bool]:
    """Fix one document; tell whether it changed, and whether something is left."""
    fixed = fix_document(document, Semantics(semantics))
    for judgement in fixed.left:
        where = f"{document.name}:{judgement.example.line}"
        click.echo(f"{where}: left: {judgement.example.label}: {judgement.reason}", err=True)
    if diff:
        if fixed.edits:
            click.echo(_diff(document, fixed.data), nl=False)
    elif path == STREAM:
        click.echo(fixed.data, nl=False)
    elif fixed.edits:
        _replace(Path(path), fixed.data)
        if not quiet:
            plural = "s" if fixed.edits != 1 else ""
            click.echo(f"{document.name}: {fixed.edits} place{plural} put right")
    return bool(fixed.edits), bool(fixed.left)


def _diff(document: Document, data: bytes) -> bytes:
    after = Document(data, document.name)
    lines = difflib.unified_diff(
        _lines(document.text),
        _lines(after.text),
        f"a/{document.name}",
        f"b/{document.name}",
    )
    parts = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return "".join(parts).encode("utf-8", "surrogateescape")


def _lines(text: str) -> list[str]:
    # str.splitlines would split at more than a diff does.
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _replace(path: Path, data: bytes) -> None:
    """Write a document back: through links, with the permissions that it has."""
    target = path.resolve()
    mode = target.stat().st_mode
    try:
        with replace_file(target) as stream:
            os.fchmod(stream.fileno(), mode & 0o7777)
            stream.write(data)
    except OSError as error:
        raise OutputError(
            f"can not write the document: {error.strerror or error}", file=str(path)
        ) from error
