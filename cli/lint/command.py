"""deconv-lint: find mistakes in IRs and oneDNN Graph files."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..shared.common import (
    EXIT_DIFFERS,
    EXIT_MISTAKE,
    EXIT_OK,
    FROM_STDIN,
    STREAM,
    Mistake,
    read_standard_input,
    run_and_leave,
)
from ..shared.options import CONTEXT, Command, version_option
from ..shared.reporters import Run, render, write
from .request import LintRequest

if TYPE_CHECKING:
    from deconv_ir.linter.engine import Result

    from .settings import Settings

EPILOG = """\b
Examples:
  deconv-lint model.xml
  deconv-lint models/ --format sarif --output lint.sarif
  deconv-lint 'models/**/*.xml' --select IR4,weights --ignore IR506
  deconv-lint model.xml --shape data=1,3,64,64 --severity info
  deconv-lint models/ --fix
  deconv-lint graph.json
  deconv-lint --explain IR401
  deconv-lint server                 # for editors (LSP)

\b
Rules are named by code (IR401), beginning of a code (IR4), name
(declared-dims-differ) or family (file, graph, attributes, shapes, weights,
portability, onednn, decoders, redundancy).
<!-- deconv-lint: ignore=IR401 --> before a layer silences a rule for it.

\b
Exit codes: 0 clean, 1 something was found, 2 it could not run, 130 interrupted.

\b
Shell completion: eval "$(_DECONV_LINT_COMPLETE=bash_source deconv-lint)", with
zsh_source or fish_source for those shells.
"""

SERVER = "server"
"""The argument that starts the language server."""
PRUNE_AT = 256
"""Minimum number of files of runs that also remove old entries of the cache."""


@click.command("deconv-lint", cls=Command, epilog=EPILOG, context_settings=CONTEXT)
@LintRequest.add_to
@version_option("deconv-lint")
def command(**options: Any) -> int:
    """Check the models at PATH...: files, folders, patterns, or '-'.

    Models are OpenVINO IRs (.xml) and oneDNN Graph files (.json); a .bin selects the .xml
    next to it.  Default: the current folder.
    """
    request = LintRequest(**options)
    if request.settings_schema or request.list_rules or request.explain is not None:
        from .rules import describe

        text = describe(request.explain, request.format_, schema=request.settings_schema)
        click.echo(text, nl=False)
        return EXIT_OK
    if request.paths == (SERVER,) and not os.path.lexists(SERVER):
        return _serve(request)
    request.require_consistent()
    return _lint(request)


def _lint(request: LintRequest) -> int:
    from .paths import explain_none, find_files, is_other_xml
    from .settings import Settings

    settings = Settings(request)
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
        from .html import require_one

        require_one(files)
    if request.output or request.html or request.update_baseline:
        _protect(files, settings, request)
    cache = None if request.no_cache else _cache_folder(files, request.cache_dir)
    fixed = 0
    if request.fix or request.diff:
        from .fix import fix_files

        results, fixed, changed = fix_files(files, settings, request)
        if request.diff:
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
        from .baseline import apply

        results, known = apply(request.baseline, results, settings, update=request.update_baseline)
    run = Run(results=results, fixed=fixed, known=known, no_ir=no_ir, docs_url=stated.docs_url)
    _write(run, request)
    if request.html is not None:
        from .html import write_html

        write_html(files[0], run.findings, settings.options(files[0]), request)
    failed = any(result.findings for result in results)
    return EXIT_DIFFERS if failed and not request.exit_zero else EXIT_OK


def _serve(request: LintRequest) -> int:
    from deconv_ir.hints import Hint

    try:
        from .server import serve
    except ModuleNotFoundError:
        raise Mistake(f"the language server needs pygls ({Hint.INSTALL_EXTRA('editor')})") from None
    return serve(request)


def _protect(files: list[str], settings: Settings, request: LintRequest) -> None:
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
    files: list[str], settings: Settings, request: LintRequest, cache: str | None
) -> list[Result]:
    from deconv_ir.linter.runner import Job, check_all

    named = [file for file in files if file != STREAM]
    jobs = [
        Job(
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


def _check_stdin(settings: Settings, request: LintRequest) -> Result:
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


def _write(run: Run, request: LintRequest) -> None:
    if request.statistics:
        from .rules import count_by_rule

        text = count_by_rule(run, request.format_)
    elif request.format_ == "text" and request.quiet:
        from ..shared.reporters.text import show

        shown = [show(f, result) for result in run.results for f in result.findings]
        text = "".join(f"{line}\n" for line in shown)
    else:
        text = render(request.format_, run)
    write(text, request.format_, request.output)


def main() -> NoReturn:
    """Run deconv-lint."""
    run_and_leave(command)
