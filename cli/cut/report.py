"""The report of deconv-cut."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deconv_ir.errors import one_line

if TYPE_CHECKING:
    from deconv_ir.compare.cut import Part

    from .request import CutRequest

_LISTED = 5
"""Maximum number of named constants that were kept."""


def report(part: Part, request: CutRequest) -> None:
    """Print the tensors between which the part is, and the command that runs it."""
    click.echo(
        f"{Path(request.output)}: {part.layers} layers, {part.weight_bytes} bytes of weights; "
        f"from {', '.join(part.inputs) or 'constants'} to {', '.join(part.outputs)}"
    )
    if part.kept:
        shown = ", ".join(one_line(name, 80) for name in part.kept[:_LISTED])
        more = "" if len(part.kept) <= _LISTED else f" and {len(part.kept) - _LISTED} more"
        click.echo(f"not replaced, since small or no weights: {shown}{more}")
    click.echo(f"deconv-run {shlex.quote(request.output)} --random-inputs 0")
