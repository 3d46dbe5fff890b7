"""Ways to write findings down: one file each, imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from deconv_ir.findings import Finding
    from deconv_ir.lint.engine import Result

FORMATS = ("text", "json", "sarif", "github", "junit")


class Run(NamedTuple):
    """What one run of deconv-lint found.

    Attributes
    ----------
    results : list of Result
        In the order of the files.
    fixed : int
        Findings that `--fix` put right.
    known : int
        Findings that the baseline holds.
    no_ir : int
        XML files in folders that are no IR, and were passed over.
    colour : bool
        Whether it is shown on a terminal.
    """

    results: list[Result]
    fixed: int = 0
    known: int = 0
    no_ir: int = 0
    colour: bool = False

    @property
    def findings(self) -> list[Finding]:
        """All findings, in order."""
        return [finding for result in self.results for finding in result.findings]


def render(name: str, run: Run) -> str:
    """Write a run in one of the formats."""
    module = importlib.import_module(f".{name}", __name__)
    text: str = module.render(run)
    return text
