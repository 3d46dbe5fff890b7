"""deconv-spec: the examples of operation specifications, checked, fixed and made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .common import EXIT_DIFFERS, EXIT_OK, run_command
from .options import (
    CONTEXT,
    FILE,
    OF_A_DOCUMENT,
    Options,
    argument,
    flag,
    given,
    limit_options,
    option,
    semantics,
    severity,
    tolerance,
    version_option,
)
from .reporters import FORMAT, OUTPUT, write

if TYPE_CHECKING:
    from deconv_ir.limits import Limits

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


class DocumentOptions(Options):
    """The options that `check` and `fix` share."""

    documents: tuple[str, ...] = argument("DOC...", nargs=-1, required=True)
    semantics: str = semantics()
    limits: Limits = given(limit_options(OF_A_DOCUMENT))


class FixRequest(DocumentOptions):
    """The options of deconv-spec fix."""

    diff: bool = flag("Show the changes without making them.")
    quiet: bool = flag("Print only the examples that are still wrong.", "-q", "--quiet")


class CheckRequest(DocumentOptions):
    """The options of deconv-spec check."""

    format_: str = given(FORMAT)
    output: str | None = given(OUTPUT)
    severity: str = severity("Findings of this severity and above give exit code 1.")
    exit_zero: bool = flag("Exit with 0 even if there are findings.")
    verbose: bool = flag("Also show the formulas of right examples.", "-v", "--verbose")
    quiet: bool = flag("Print only problems.", "-q", "--quiet")


class GenerateRequest(Options):
    """The options of deconv-spec generate."""

    spec: str = argument("SPEC.toml")
    out: str = option("DIR", "Directory for the files.", required=True, type=FILE)
    page_format: str = option(
        None,
        "Form of the page.",
        "--format",
        type=click.Choice(["md", "rst", "xml"]),
        default="md",
        show_default=True,
    )
    diagram: bool = flag("Draw the examples (needs matplotlib).")
    quiet: bool = flag("Print nothing.", "-q", "--quiet")


class VerifyRequest(Options):
    """The options of deconv-spec verify."""

    directory: str = argument("DIR")
    actual: str | None = option(
        "DIR2",
        "Compare the outputs in DIR2 (EXAMPLE/output.npy) with those of DIR.",
        type=FILE,
    )
    rtol: float = tolerance(0.0)
    atol: float = tolerance(0.0)
    quiet: bool = flag("Print only differences.", "-q", "--quiet")


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
    from .spec_documents import check_documents, expand

    request = CheckRequest(**options)
    if request.output is not None:
        from .guard import Guard

        checked = ((f"{d}, which is checked", d) for d in expand(request.documents))
        Guard(checked).allow("--output", request.output)
    code, text = check_documents(request)
    write(text, request.format_, request.output)
    return EXIT_OK if request.exit_zero and code == EXIT_DIFFERS else code


@command.command(context_settings=CONTEXT)
@FixRequest.add_to
def fix(**options: Any) -> int:
    """Write the computed output dims into DOC, and touch nothing else.

    Exit code 1: with --diff, something would change; else, an example is
    left that no output dims would make right.
    """
    from .spec_documents import fix_documents

    return fix_documents(FixRequest(**options))


@command.command(context_settings=CONTEXT)
@GenerateRequest.add_to
def generate(**options: Any) -> int:
    """Make XML, networks, a page and golden arrays from SPEC.toml.

    The same SPEC.toml gives the same bytes on every run and machine.
    """
    from .spec_golden import generate_files

    return generate_files(GenerateRequest(**options))


@command.command(context_settings=CONTEXT)
@VerifyRequest.add_to
def verify(**options: Any) -> int:
    """Compute the golden arrays in DIR anew, and compare.

    Golden sums are exact whatever their order, so the default tolerance is 0.
    """
    from .spec_golden import verify_files

    return verify_files(VerifyRequest(**options))


def main() -> None:
    """Run the command and exit."""
    run_command(command)
