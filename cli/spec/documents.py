"""deconv-spec check and fix: from paths to reports."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Severity
from deconv_ir.formats.files import rewrite
from deconv_ir.ir.options import Semantics
from deconv_ir.limits import Limits
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.notebook import SUFFIXES, open_document, read_document
from deconv_ir.spec_examples.rules import Judgement
from deconv_ir.spec_examples.text import Document

from ..shared.common import (
    EXIT_DIFFERS,
    EXIT_MISTAKE,
    EXIT_OK,
    FROM_STDIN,
    STREAM,
    Mistake,
    read_standard_input,
    report_error,
    unified_diff,
)
from .report import report_fixed, report_left, report_of, result_of

if TYPE_CHECKING:
    from .request import CheckRequest, FixRequest


def find_documents(paths: Sequence[str]) -> list[str]:
    """Return the documents that the user named; a folder provides the documents in it."""
    found = list(_expand(paths))
    if not found:
        raise Mistake(f"{paths[0]}: this folder has no document ({', '.join(SUFFIXES)})")
    return found


def _expand(paths: Sequence[str]) -> Iterator[str]:
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
    for path in find_documents(request.documents):
        try:
            document = _open(path, request.limits)
        except DeconvError as error:
            report_error(error)
            broken = True
            continue
        checked.append((document, check_document(document, Semantics(request.semantics))))
    results = [result_of(document, judgements) for document, judgements in checked]
    report = report_of(checked, results, request)
    if broken:
        return EXIT_MISTAKE, report
    least = _RANKS.index(Severity(request.severity))
    found = any(_RANKS.index(f.severity) <= least for result in results for f in result.findings)
    return (EXIT_DIFFERS if found else EXIT_OK), report


_RANKS = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def fix_documents(request: FixRequest) -> int:
    """Fix documents in place, or show the changes, and return the exit code."""
    code = EXIT_OK
    for path in find_documents(request.documents):
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
    report_left(document, fixed.left)
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
            report_fixed(document, fixed.edits)
    return bool(fixed.edits), bool(fixed.left)
