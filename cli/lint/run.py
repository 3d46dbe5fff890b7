"""A run of deconv-lint: from paths to findings and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import click

from ..shared.common import (
    EXIT_DIFFERS,
    EXIT_MISTAKE,
    EXIT_OK,
    FROM_STDIN,
    STREAM,
    Mistake,
    read_standard_input,
)
from ..shared.reporters import Report, write
from ..shared.reporters.text import fixes
from .paths import explain_none, find_files, is_other_xml
from .report import report, require_one, write_html
from .settings import LintSettings

if TYPE_CHECKING:
    from deconv_ir.linter.engine import FileResult

    from .request import LintRequest

PRUNE_AT = 256
"""Minimum number of files of runs that also remove old entries of the cache."""


def lint(request: LintRequest) -> int:
    """Check the files, report the findings, and return the exit code."""
    settings = LintSettings(request)
    found = find_files(request.paths or (os.curdir,))
    pairs = [(file, named) for file, named in found if named or not settings.is_excluded(file)]
    files = [file for file, _ in pairs]
    if not files:
        click.echo(f"warning: no IR file found ({explain_none(request.paths)})", err=True)
        if not request.exit_zero_on_no_files:
            return EXIT_MISTAKE
    if len(files) > 1:
        gc.enable()
    if request.weights is not None and len(files) > 1:
        raise Mistake(f"--weights requires a single IR file, found {len(files)}")
    stated = settings.config(files[0] if files else "")
    request = request.replace(baseline=request.baseline or stated.baseline_file)
    if request.show_files or request.show_settings:
        from .show import list_files, list_settings

        form = request.format_
        text = list_files(files) if request.show_files else list_settings(files, settings, form)
        write(text, form, request.output)
        return EXIT_OK
    if request.update_baseline and request.baseline is None:
        raise Mistake("--update-baseline requires --baseline FILE, or a baseline in the settings")
    if request.html is not None:
        require_one(files)
    if request.output or request.html or request.update_baseline:
        _protect(files, settings, request)
    cache = None if request.no_cache else _cache_folder(files, request.cache_dir)
    fixed = 0
    if request.fix or request.diff:
        from .fix import fix_files

        results, fixed, changed = fix_files(files, settings, request)
        if request.diff:
            if request.show_fixes:
                click.echo(fixes(results), err=True)
            return EXIT_DIFFERS if changed and not request.exit_zero else EXIT_OK
    else:
        results = _check(files, settings, request, cache)
    checked = len(results)
    results = [
        r for (_, named), r in zip(pairs, results, strict=True) if named or not is_other_xml(r)
    ]
    if cache is not None and len(files) > PRUNE_AT:
        from deconv_ir.linter.cache import Cache

        Cache(cache).prune()
    known, no_ir = 0, checked - len(results)
    if request.baseline is not None:
        results, known = _without_known(
            request.baseline, results, settings, update=request.update_baseline
        )
    if request.verify:
        from .targets import verify

        results = verify(results, request)
    if request.needs:
        from .targets import needs

        write(needs(results, request.format_), request.format_, request.output)
        return EXIT_OK
    run = Report(
        results=results,
        fixed=fixed,
        known=known,
        no_ir=no_ir,
        docs_url=stated.docs_url,
        show_fixes=request.show_fixes,
    )
    report(run, request)
    if request.html is not None:
        write_html(files[0], run.findings, settings.options(files[0]), request)
    failed = any(result.findings or result.is_blocked for result in results)
    return EXIT_DIFFERS if failed and not request.exit_zero else EXIT_OK


def _protect(files: list[str], settings: LintSettings, request: LintRequest) -> None:
    """Require that the report and the baseline do not overwrite a checked file."""
    from deconv_ir.formats.openvino_xml.weights import weights_beside

    from ..shared.guard import Guard

    guard = Guard()
    for file in files:
        if file != STREAM:
            guard.add(f"{file}, which is checked", file)
            guard.add(f"the weights of {file}", request.weights or weights_beside(file))
        if (config := settings.config(file).file) is not None:
            guard.add("the settings", config)
    if request.baseline is not None:
        if request.update_baseline:
            guard.allow("--baseline", request.baseline)
        else:
            guard.add("the baseline", request.baseline)
    for option, path in (("--output", request.output), ("--html", request.html)):
        if path is not None:
            guard.allow(option, path)


def _check(
    files: list[str], settings: LintSettings, request: LintRequest, cache: str | None
) -> list[FileResult]:
    from deconv_ir.linter.runner import FileCheck, check_all

    named = [file for file in files if file != STREAM]
    jobs = [
        FileCheck(
            file=file,
            options=settings.options(file),
            weights=request.weights,
            cache=cache,
            limits=request.limits,
        )
        for file in named
    ]
    checked = check_all(jobs, request.jobs)
    if len(jobs) > 1 and not request.quiet and sys.stderr.isatty():
        with click.progressbar(
            checked, length=len(jobs), label="Checking", file=sys.stderr
        ) as shown:
            checked = iter(list(shown))
    results = dict(zip(named, checked, strict=True))
    if len(named) < len(files):
        results[STREAM] = _check_stdin(settings, request)
    return [results[file] for file in files]


def _check_stdin(settings: LintSettings, request: LintRequest) -> FileResult:
    from deconv_ir.formats.openvino_xml.weights import weights_beside
    from deconv_ir.linter.engine import check_bytes

    name = request.stdin_filename
    weights = request.weights or (None if name is None else weights_beside(name))
    name = name or FROM_STDIN
    options = settings.options(name)
    data = read_standard_input(request.limits.xml_bytes)
    return check_bytes(data, name, options, weights, request.limits)


def _cache_folder(files: list[str], folder: str | None) -> str | None:
    """Return the folder of the cache; None for one small file, which is faster without it."""
    if folder is not None or len(files) < 2:
        return folder
    from deconv_ir.linter.cache import default_folder

    return str(default_folder())


def _without_known(
    file: str, results: list[FileResult], settings: LintSettings, *, update: bool
) -> tuple[list[FileResult], int]:
    """Remove the findings of a baseline from the results; also return their number.

    With `update`, the findings of the checked files are written to the baseline first.
    """
    from pathlib import Path

    from deconv_ir.linter.baseline import Baseline

    stated = settings.config(results[0].file if results else "")
    path, root = Path(file), Path(stated.folder) if stated.file else None
    if update:
        exists = path.exists()
        baseline = Baseline.read(path, root) if exists else Baseline(path, root)
        checked = {result.file: settings.options(result.file).rules for result in results}
        baseline.update(checked, (f for result in results for f in result.findings))
    else:
        baseline = Baseline.read(path, root)
    left = []
    known = 0
    for result in results:
        fresh = baseline.new(result.findings)
        known += len(result.findings) - len(fresh)
        left.append(result._replace(findings=fresh))
    return left, known
