"""Formats of findings: one file each, imported on demand."""

import importlib
import os
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deconv_ir.errors import utf_8

from ..options import FILE

if TYPE_CHECKING:
    from deconv_ir.findings import Finding
    from deconv_ir.linter.engine import FileResult
    from deconv_ir.linter.rule import Rule
    from deconv_ir.spec_examples.rules import DocumentRule

    AnyRule = Rule | DocumentRule

FORMATS = (
    *("text", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit"),
    *("rdjson", "azure", "pylint", "markdown"),
)

FORMAT = click.option(
    "--format",
    "--output-format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Format of the findings.",
)
_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
OUTPUT = click.option("--output", metavar="FILE", type=FILE, help="Write the findings to a file.")


class Tool:
    """The command that reports."""

    def __init__(
        self, name: str, rule: "Callable[[str], AnyRule]", mime_type: Callable[[str], str]
    ) -> None:
        self.name = name
        self.rule = rule  # the rule of a code
        self.mime_type = mime_type  # of a file, by its path


def _lint_rule(code: str) -> "AnyRule":
    from deconv_ir.linter.catalogue import RULES

    return RULES[code]


LINT = Tool(name="deconv-lint", rule=_lint_rule, mime_type=lambda _: "application/xml")


class Report(NamedTuple):
    """The findings of one run of a command, in the order of the files."""

    results: "list[FileResult]"
    fixed: int = 0  # findings that --fix fixed
    known: int = 0  # findings that are in the baseline
    no_ir: int = 0  # XML files in folders that are not IRs, and were skipped
    tool: Tool = LINT
    docs_url: str | None = None  # address of rules.md; None: of the installation
    closing: str | None = None  # last line for people; None: a summary
    show_fixes: bool = False  # list the findings that were fixed
    more: Mapping[str, Any] = MappingProxyType({})  # further keys for JSON

    @property
    def findings(self) -> "list[Finding]":
        """All findings, in order."""
        return [finding for result in self.results for finding in result.findings]


def from_here(file: str) -> str:
    """Return a path relative to the working directory if the file is below it.

    Services that show findings beside the code only know relative paths.
    """
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir + os.sep) else relative


class Fingerprints:
    """Hashes of findings, which services recognise in the next report.

    They do not depend on lines or on the words of messages.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, finding: "Finding") -> str:
        """Return the hash of a finding, by file, rule, layer and place; equal ones are counted."""
        from hashlib import sha256

        identity = f"{from_here(finding.file or '')}\0{finding.identity}"
        self._seen[identity] += 1
        return sha256(utf_8(f"{identity}\0{self._seen[identity]}")).hexdigest()


def render(name: str, run: Report) -> str:
    """Write a run in one of the formats."""
    module = importlib.import_module(f".{name}", __name__)
    text: str = module.render(run)
    return text


def write(text: str, name: str, output: str | None) -> None:
    """Print a report, or write it to a file atomically."""
    if output is None or output in _STANDARD_OUTPUT:
        click.echo(text, nl=False)
        return
    from pathlib import Path

    from deconv_ir.formats.files import output_errors, replace_file

    path = Path(output)
    # Devices and pipes cannot be replaced atomically.
    direct = path.exists() and not path.is_file() and not path.is_dir()
    opened = path.open("wb") if direct else replace_file(path)
    with output_errors(output, "the report"), opened as stream:
        stream.write(utf_8(click.unstyle(text) if name == "text" else text))
