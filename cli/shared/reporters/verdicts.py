"""The verdicts on targets, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deconv_ir.errors import MAX_NAME, one_line

if TYPE_CHECKING:
    from deconv_ir.linter.engine import FileResult
    from deconv_ir.linter.targets.verdict import Because

_COLOURS = {"blocked": "red", "unverified": "yellow", "likely": "green", "verified": "green"}
_SHOWN = 3
"""Number of reasons that are shown for a file."""


def describe(result: FileResult) -> list[str]:
    """Return the lines about the verdicts on a file: each, and its first reasons."""
    lines = []
    for verdict in result.verdicts:
        word = click.style(verdict.word, fg=_COLOURS[verdict.word], bold=True)
        lines.append(f"{one_line(result.file)}: {word} on {verdict.target}")
        lines += [f"  = {reason(because)}" for because in verdict.because[:_SHOWN]]
        if (more := len(verdict.because) - _SHOWN) > 0:
            lines.append(f"  = and {more} more (--format json has all)")
    return lines


def reason(because: Because) -> str:
    """Return a reason in one line."""
    at = "" if because.layer is None else f"layer {one_line(because.layer, MAX_NAME)}"
    if because.line is not None:
        at += f"{', ' if at else ''}line {because.line}"
    if because.more:
        at += f" and {because.more} more"
    where = f"{at}: " if at else ""
    return f"{where}OpenVINO {because.releases}: {one_line(because.message)}"
