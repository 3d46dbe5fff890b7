"""Ways to write findings down: one file each, imported when it is asked for."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.ir.record import Record, field

from ..common import FILE, Mistake

if TYPE_CHECKING:
    from deconv_ir.ir.findings import Finding, Severity
    from deconv_ir.linter.engine import Result

FORMATS = ("text", "json", "sarif", "github", "junit")

FORMAT = click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Format of the findings.",
)
OUTPUT = click.option("--output", metavar="FILE", type=FILE, help="Write the findings to a file.")


class RuleInfo(Record):
    """What a format tells of a rule."""

    name: str = field()
    family: str = field()
    severity: Severity = field()
    summary: str = field()
    why: str = field()


class Tool(Record):
    """The command that reports.

    Attributes
    ----------
    name : str
    rule : callable
        Takes a code to what is told of its rule.
    mime_type : callable
        Takes the path of a file to its media type.
    """

    name: str = field()
    rule: Callable[[str], RuleInfo] = field()
    mime_type: Callable[[str], str] = field()


@functools.cache
def _lint_rule(code: str) -> RuleInfo:
    from deconv_ir.linter.catalogue import load_rule

    rule = load_rule(code)
    return RuleInfo(
        name=rule.name,
        family=rule.family,
        severity=rule.severity,
        summary=rule.title,
        why=rule.why,
    )


LINT = Tool(name="deconv-lint", rule=_lint_rule, mime_type=lambda _: "application/xml")


class Run(Record):
    """What one run of a command found.

    Attributes
    ----------
    results : list of Result
        In the order of the files.
    fixed : int
        Findings that `--fix` fixed.
    known : int
        Findings that the baseline holds.
    no_ir : int
        XML files in folders that are no IR, and were passed over.
    colour : bool
        Whether it is shown on a terminal.
    tool : Tool
    closing : str or None
        Last words for people, in place of a summary of the findings.
    more : mapping
        What the JSON object has beside.
    """

    results: list[Result] = field()
    fixed: int = field(default=0)
    known: int = field(default=0)
    no_ir: int = field(default=0)
    colour: bool = field(default=False)
    tool: Tool = field(default=LINT)
    closing: str | None = field(default=None)
    more: Mapping[str, Any] = field(default=MappingProxyType({}))

    @property
    def findings(self) -> list[Finding]:
        """All findings, in order."""
        return [finding for result in self.results for finding in result.findings]


def from_here(file: str) -> str:
    """Return a path relative to the working directory where the file is below it.

    Services that show findings beside the code know no other paths.
    """
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir + os.sep) else relative


def render(name: str, run: Run) -> str:
    """Write a run in one of the formats."""
    module = importlib.import_module(f".{name}", __name__)
    text: str = module.render(run)
    return text


def write(text: str, name: str, output: str | None) -> None:
    """Print a report, or write it to a file, which appears whole or not at all.

    Raises
    ------
    Mistake
        The file cannot be written.
    """
    if output is None:
        click.echo(text, nl=False)
        return
    from pathlib import Path

    from deconv_ir.formats.files import replace_file

    try:
        with replace_file(Path(output)) as stream:
            stream.write(click.unstyle(text).encode() if name == "text" else text.encode())
    except OSError as error:
        raise Mistake(f"{output}: cannot write the report: {error.strerror}") from None
