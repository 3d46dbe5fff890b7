"""deconv-spec: the examples of operation specifications, checked, fixed and made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .common import EXIT_DIFFERS, EXIT_OK, run_command
from .options import (
    CONTEXT,
    FILE,
    OF_A_DOCUMENT,
    limit_options,
    semantics_option,
    severity_option,
    tolerance_options,
    version_option,
)
from .reporters import FORMAT, OUTPUT, write

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


def document_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the arguments and options that `check` and `fix` share."""
    documents = click.argument("documents", nargs=-1, required=True, metavar="DOC...", type=FILE)
    return documents(semantics_option()(limit_options(OF_A_DOCUMENT)(command)))


@click.group("deconv-spec", epilog=EPILOG, context_settings=CONTEXT)
@version_option("deconv-spec")
def command() -> None:
    """Check, fix, generate and verify the examples of operation specifications."""


@command.command(context_settings=CONTEXT)
@document_options
@FORMAT
@OUTPUT
@severity_option("Findings of this severity and above give exit code 1.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@click.option("-v", "--verbose", is_flag=True, help="Also show the formulas of right examples.")
@click.option("-q", "--quiet", is_flag=True, help="Print only problems.")
def check(documents: tuple[str, ...], output: str | None, exit_zero: bool, **options: Any) -> int:
    """Compute the output dims of every XML layer and oneDNN Graph example in DOC, and compare.

    DOC is Markdown, reStructuredText, HTML, plain text or a notebook; a folder stands for
    the documents in it, '-' for standard input.
    """
    from .spec_documents import check_documents, expand

    if output is not None:
        from .guard import Guard

        Guard((f"{d}, which is checked", d) for d in expand(documents)).allow("--output", output)
    code, text = check_documents(documents, **options)
    write(text, options["format_"], output)
    return EXIT_OK if exit_zero and code == EXIT_DIFFERS else code


@command.command(context_settings=CONTEXT)
@document_options
@click.option("--diff", is_flag=True, help="Show the changes without making them.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the examples that are still wrong.")
def fix(documents: tuple[str, ...], **options: Any) -> int:
    """Write the computed output dims into DOC, and touch nothing else.

    Exit code 1: with --diff, something would change; else, an example is
    left that no output dims would make right.
    """
    from .spec_documents import fix_documents

    return fix_documents(documents, **options)


@command.command(context_settings=CONTEXT)
@click.argument("spec", metavar="SPEC.toml", type=FILE)
@click.option("--out", required=True, metavar="DIR", help="Directory for the files.", type=FILE)
@click.option(
    "--format",
    "page_format",
    type=click.Choice(["md", "rst", "xml"]),
    default="md",
    show_default=True,
    help="Form of the page.",
)
@click.option("--diagram", is_flag=True, help="Draw the examples (needs matplotlib).")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def generate(**options: Any) -> int:
    """Make XML, networks, a page and golden arrays from SPEC.toml.

    The same SPEC.toml gives the same bytes on every run and machine.
    """
    from .spec_golden import generate_files

    return generate_files(**options)


@command.command(context_settings=CONTEXT)
@click.argument("directory", metavar="DIR", type=FILE)
@click.option(
    "--actual",
    metavar="DIR2",
    type=FILE,
    help="Compare the outputs in DIR2 (EXAMPLE/output.npy) with those of DIR.",
)
@tolerance_options(rtol=0.0, atol=0.0)
@click.option("-q", "--quiet", is_flag=True, help="Print only differences.")
def verify(**options: Any) -> int:
    """Compute the golden arrays in DIR anew, and compare.

    Golden sums are exact whatever their order, so the default tolerance is 0.
    """
    from .spec_golden import verify_files

    return verify_files(**options)


def main() -> None:
    """Run the command and exit."""
    run_command(command)
