"""The options of the deconv-spec commands, one record for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..shared.options import (
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
)
from ..shared.reporters import FORMAT, OUTPUT

if TYPE_CHECKING:
    from deconv_ir.limits import Limits


class DocumentOptions(Options):
    """The options that `check` and `fix` share."""

    documents: tuple[str, ...] = argument("DOC...", nargs=-1, required=True)
    semantics: str = semantics()
    limits: Limits = given(limit_options(OF_A_DOCUMENT))


class FixRequest(DocumentOptions):
    """The options of deconv-spec fix."""

    unsafe_fixes: bool = flag(
        "Also write dims where an attribute, an input or a comment may be wrong."
    )
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
    diagram: bool = flag("Draw the examples.")
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
