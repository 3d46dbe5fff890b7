"""deconv-lint: find mistakes in IRs and oneDNN Graph files."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import click

from ..shared.common import EXIT_OK, Mistake, run_and_leave
from ..shared.options import CONTEXT, Command, version_option
from .request import LintRequest

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
    from .run import lint

    if request.watch:
        from .watch import watch

        return watch(request, lint)
    return lint(request)


def _serve(request: LintRequest) -> int:
    from deconv_ir.hints import Hint

    try:
        from .server import serve
    except ModuleNotFoundError:
        raise Mistake(f"the language server needs pygls ({Hint.INSTALL_EXTRA('editor')})") from None
    return serve(request)


def main() -> NoReturn:
    """Run deconv-lint."""
    run_and_leave(command)
