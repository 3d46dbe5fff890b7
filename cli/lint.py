"""deconv-lint: find what is wrong with IRs and oneDNN Graph files."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from .common import (
    EXIT_DIFFERS,
    EXIT_MISTAKE,
    EXIT_OK,
    FROM_STDIN,
    STREAM,
    Mistake,
    read_standard_input,
    run_and_leave,
)
from .completion import complete_rule, complete_rules
from .options import (
    CONTEXT,
    FILE,
    OF_AN_IR,
    SEMANTICS,
    SEVERITIES,
    limit_options,
    version_option,
    weights_option,
)
from .reporters import FORMAT, OUTPUT, Run, render, write

if TYPE_CHECKING:
    from deconv_ir.limits import Limits
    from deconv_ir.linter.engine import Result
    from deconv_ir.linter.options import Options

    from .lint_settings import Settings

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

_Command = TypeVar("_Command", bound=Callable[..., Any])
SERVER = "server"
"""The argument that starts the language server."""
PRUNE_AT = 256
"""Runs over more files also remove old entries of the cache."""


def _rules_option(name: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(
        name, multiple=True, metavar="RULES", shell_complete=complete_rules, help=text
    )


@click.command("deconv-lint", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("paths", metavar="[PATH...]", nargs=-1)
@FORMAT
@OUTPUT
@click.option(
    "--html", metavar="FILE", type=FILE, help="Also write the page of deconv-show with them."
)
@_rules_option("--select", "Run these rules only.")
@_rules_option("--ignore", "Leave these rules out.")
@_rules_option("--extend-select", "Run these rules too.")
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    help="Run rules of this severity and above. Default: warning.",
)
@click.option(
    "--semantics",
    type=click.Choice(SEMANTICS),
    help="Rules to follow where documents and runtime differ. Default: spec.",
)
@click.option(
    "--shape",
    "--reshape",
    "shapes",
    multiple=True,
    metavar="NAME=SHAPE",
    help="Check whether the layers fit at another input shape, as in data=1,3,64,64.",
)
@weights_option()
@click.option("--deep", is_flag=True, help="Read all weights: look for NaN and infinity.")
@click.option("--fix", is_flag=True, help="Fix findings in place; the .bin is never changed.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="With --fix or --diff: also make fixes that the rest of the file does not confirm.",
)
@click.option("--diff", is_flag=True, help="Show the changes of --fix without making them.")
@click.option(
    "--baseline", metavar="FILE", type=FILE, help="Ignore the findings recorded in this file."
)
@click.option("--update-baseline", is_flag=True, help="Write the findings to the baseline.")
@click.option(
    "--config",
    metavar="FILE",
    type=FILE,
    help="Use these settings, not those found beside the files.",
)
@click.option("--isolated", is_flag=True, help="Ignore all settings files.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@click.option("--exit-zero-on-no-files", is_flag=True, help="Exit with 0 even if no file is found.")
@click.option("--statistics", is_flag=True, help="Count findings by rule.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked, and exit.")
@click.option("--show-settings", is_flag=True, help="Show the settings in effect, and exit.")
@click.option("--settings-schema", is_flag=True, help="Print the JSON schema of settings files.")
@click.option("--list-rules", is_flag=True, help="List all rules and exit.")
@click.option(
    "--explain", metavar="RULE", shell_complete=complete_rule, help="Explain a rule and exit."
)
@click.option(
    "--stdin-filename", metavar="NAME", help="File name to report for standard input ('-')."
)
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1),
    help="Number of processes. Default: all cores where that is faster.",
)
@limit_options(OF_AN_IR)
@click.option("--no-cache", is_flag=True, help="Check files even if their results are cached.")
@click.option("--cache-dir", metavar="DIR", type=FILE, help="Directory of the cache.")
@click.option("-q", "--quiet", is_flag=True, help="Print findings only: no summary, no progress.")
@click.option("--stdio", is_flag=True, hidden=True, expose_value=False)  # editors add it
@version_option("deconv-lint")
def command(
    paths: tuple[str, ...],
    format_: str,
    output: str | None,
    html: str | None,
    weights: str | None,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    baseline: str | None,
    update_baseline: bool,
    exit_zero: bool,
    exit_zero_on_no_files: bool,
    statistics: bool,
    show_files: bool,
    show_settings: bool,
    settings_schema: bool,
    list_rules: bool,
    explain: str | None,
    stdin_filename: str | None,
    jobs: int | None,
    limits: Limits,
    no_cache: bool,
    cache_dir: str | None,
    quiet: bool,
    **chosen: Any,
) -> int:
    """Find what is wrong with the models at PATH...: files, folders, patterns, or '-'.

    Models are OpenVINO IRs (.xml) and oneDNN Graph files (.json); a .bin stands for the .xml
    beside it.  Default: the current folder.
    """
    if settings_schema or list_rules or explain is not None:
        from .lint_rules import describe

        click.echo(describe(explain, format_, schema=settings_schema), nl=False)
        return EXIT_OK
    if paths == (SERVER,) and not os.path.lexists(SERVER):
        return _serve(chosen, limits)
    paths = paths or (os.curdir,)
    if fix and diff:
        raise Mistake("--fix and --diff cannot be combined")
    if unsafe_fixes and not (fix or diff):
        raise Mistake("--unsafe-fixes requires --fix or --diff")
    if (fix or diff) and chosen["shapes"]:
        raise Mistake(
            "--fix and --diff cannot be combined with --shape: the file declares its own shapes"
        )
    from .lint_paths import find_files, is_other_xml
    from .lint_settings import Settings

    settings = Settings(**chosen)
    files = [
        (file, named)
        for file, named in find_files(paths)
        if named or not settings.is_excluded(file)
    ]
    if not files:
        click.echo(
            "warning: no IR file found (folders skip what .gitignore or settings exclude)", err=True
        )
        if not exit_zero_on_no_files:
            return EXIT_MISTAKE
    if len(files) > 1:
        gc.enable()
    if weights is not None and len(files) > 1:
        raise Mistake(f"--weights requires a single IR file, found {len(files)}")
    stated = settings.config(files[0][0] if files else "")
    baseline = baseline or stated.baseline_file
    if show_files or show_settings:
        from .lint_show import list_files, list_settings

        names = [file for file, _ in files]
        text = list_files(names) if show_files else list_settings(names, settings, format_)
        write(text, format_, output)
        return EXIT_OK
    if update_baseline and baseline is None:
        raise Mistake("--update-baseline requires --baseline FILE, or a baseline in the settings")
    if html is not None:
        from .lint_html import require_one

        require_one(files)
    outputs = (output, html)
    if any(outputs) or update_baseline:
        _protect([f for f, _ in files], settings, weights, outputs, baseline, update_baseline)
    cache = None if no_cache else _cache_folder(files, cache_dir)
    if fix or diff:
        from .lint_fix import fix_files

        options = [settings.options(f) for f, _ in files]
        results, fixed, changed = fix_files(
            [f for f, _ in files], options, weights, limits, show=diff, unsafe=unsafe_fixes
        )
        if diff:
            return EXIT_DIFFERS if changed and not exit_zero else EXIT_OK
    else:
        fixed = 0
        results = _check(files, settings, weights, stdin_filename, jobs, limits, cache, quiet)
    checked = len(results)
    pairs = zip(files, results, strict=True)
    results = [r for (_, named), r in pairs if named or not is_other_xml(r)]
    if cache is not None and len(files) > PRUNE_AT:
        from deconv_ir.linter.cache import Cache

        Cache(cache).prune()
    known, no_ir = 0, checked - len(results)
    if baseline is not None:
        from .lint_baseline import apply

        results, known = apply(baseline, results, settings, update=update_baseline)
    run = Run(results=results, fixed=fixed, known=known, no_ir=no_ir, docs_url=stated.docs_url)
    _write(run, format_, output, statistics=statistics, quiet=quiet)
    if html is not None:
        from .lint_html import write_html

        (file, _), options_ = files[0], settings.options(files[0][0])
        write_html(file, run.findings, html, options_, weights, limits)
    failed = any(result.findings for result in results)
    return EXIT_DIFFERS if failed and not exit_zero else EXIT_OK


def _serve(chosen: dict[str, Any], limits: Limits) -> int:
    try:
        from .lint_server import serve
    except ModuleNotFoundError:
        raise Mistake("the language server needs pygls (pip install 'deconv-ir[editor]')") from None
    serve(chosen, limits)
    return EXIT_OK


def _protect(
    files: list[str],
    settings: Settings,
    weights: str | None,
    outputs: tuple[str | None, str | None],
    baseline: str | None,
    update_baseline: bool,
) -> None:
    """Require that the report and the baseline overwrite nothing that is checked."""
    from deconv_ir.formats.openvino_xml.weights import weights_beside

    from .guard import Guard

    guard = Guard()
    for file in files:
        if file != STREAM:
            guard.add(f"{file}, which is checked", file)
            guard.add(f"the weights of {file}", weights or weights_beside(file))
        if (config := settings.config(file).file) is not None:
            guard.add("the settings", config)
    if update_baseline and baseline is not None:
        guard.allow("--baseline", baseline)
    elif baseline is not None:
        guard.add("the baseline", baseline)
    for option, path in zip(("--output", "--html"), outputs, strict=True):
        if path is not None:
            guard.allow(option, path)


def _check(
    files: list[tuple[str, bool]],
    settings: Settings,
    weights: str | None,
    stdin_filename: str | None,
    processes: int | None,
    limits: Limits,
    cache: str | None,
    quiet: bool,
) -> list[Result]:
    from deconv_ir.linter.runner import Job, check_all

    named = [file for file, _ in files if file != STREAM]
    jobs = [Job(file, settings.options(file), weights, cache, limits) for file in named]
    checked = check_all(jobs, processes)
    if len(jobs) > 1 and not quiet and sys.stderr.isatty():
        with click.progressbar(
            checked, length=len(jobs), label="Checking", file=sys.stderr
        ) as shown:
            checked = iter(list(shown))
    results = dict(zip(named, checked, strict=True))
    if len(named) < len(files):
        options = settings.options(stdin_filename or FROM_STDIN)
        results[STREAM] = _check_stdin(options, weights, stdin_filename, limits)
    return [results[file] for file, _ in files]


def _check_stdin(options: Options, weights: str | None, name: str | None, limits: Limits) -> Result:
    from deconv_ir.formats.openvino_xml.weights import weights_beside
    from deconv_ir.linter.engine import check_bytes

    data = read_standard_input(limits.xml_bytes)
    beside = None if name is None else weights_beside(name)
    return check_bytes(data, name or FROM_STDIN, options, weights or beside, limits)


def _cache_folder(files: list[tuple[str, bool]], folder: str | None) -> str | None:
    """Return the folder of the cache; one small file is checked faster than looked up."""
    if folder is not None or len(files) < 2:
        return folder
    from deconv_ir.linter.cache import default_folder

    return str(default_folder())


def _write(run: Run, format_: str, output: str | None, *, statistics: bool, quiet: bool) -> None:
    if statistics:
        from .lint_rules import count_by_rule

        text = count_by_rule(run, format_)
    elif format_ == "text" and quiet:
        from .reporters.text import show

        shown = [show(f, result) for result in run.results for f in result.findings]
        text = "".join(f"{line}\n" for line in shown)
    else:
        text = render(format_, run)
    write(text, format_, output)


def main() -> NoReturn:
    """Run deconv-lint."""
    run_and_leave(command)
