"""deconv-spec: the examples of operation specifications, checked, fixed and made."""

from __future__ import annotations

from typing import Any

import click

from ..shared.common import EXIT_DIFFERS, EXIT_OK, run_command
from ..shared.options import CONTEXT, version_option
from ..shared.reporters import write
from .request import CheckRequest, FixRequest, GenerateRequest, VerifyRequest

EPILOG = """\b
Examples:
  deconv-spec check docs/*.md
  deconv-spec fix --diff docs/conv.rst
  deconv-spec generate spec.toml --out golden/
  deconv-spec verify golden/ --actual results/

\b
Exit codes: 0 clean, 1 findings (or differences), 2 could not run,
130 interrupted.

\b
Shell completion: eval "$(_DECONV_SPEC_COMPLETE=bash_source deconv-spec)", with
zsh_source or fish_source for those shells.
"""


@click.group("deconv-spec", epilog=EPILOG, context_settings=CONTEXT)
@version_option("deconv-spec")
def command() -> None:
    """Check, fix, generate and verify the examples of operation specifications."""


@command.command(context_settings=CONTEXT)
@CheckRequest.add_to
def check(**options: Any) -> int:
    """Compute the output dims of every XML layer and oneDNN Graph example in DOC, and compare.

    DOC is Markdown, reStructuredText, HTML, plain text or a notebook; a folder stands for
    the documents in it, '-' for standard input.
    """
    from .documents import check_documents, find_documents

    request = CheckRequest(**options)
    if request.output is not None:
        from ..shared.guard import Guard

        checked = ((f"{d}, which is checked", d) for d in find_documents(request.documents))
        Guard(checked).allow("--output", request.output)
    code, text = check_documents(request)
    write(text, request.format_, request.output)
    return EXIT_OK if request.exit_zero and code == EXIT_DIFFERS else code


@command.command(context_settings=CONTEXT)
@FixRequest.add_to
def fix(**options: Any) -> int:
    """Write the computed output dims into DOC, and change nothing else.

    A dim is written if the printed one is at fault for certain.  Where an
    attribute, an input or a comment may be wrong instead, the example is
    reported.

    Exit code 1: with --diff, something would change; else, an example is
    left that is still wrong.
    """
    from .documents import fix_documents

    return fix_documents(FixRequest(**options))


@command.command(context_settings=CONTEXT)
@GenerateRequest.add_to
def generate(**options: Any) -> int:
    """Make XML, networks, a page and golden arrays from SPEC.toml.

    The same SPEC.toml gives the same bytes on every run and machine.
    """
    from .golden import generate_files

    return generate_files(GenerateRequest(**options))


@command.command(context_settings=CONTEXT)
@VerifyRequest.add_to
def verify(**options: Any) -> int:
    """Recompute the golden arrays in DIR, and compare.

    Golden sums are exact in any order, so the default tolerance is 0.
    """
    from .golden import verify_files

    return verify_files(VerifyRequest(**options))


def main() -> None:
    """Run the command and exit."""
    run_command(command)
