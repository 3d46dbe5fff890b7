"""Cutting a part out of a model, and the report of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deconv_ir.errors import one_line

from ..shared.common import Mistake

if TYPE_CHECKING:
    from deconv_ir.compare.cut import Part

    from .request import CutRequest

_LISTED = 5
"""Maximum number of named constants that were kept."""


def cut_part(request: CutRequest) -> Part:
    """Write the part as an IR."""
    model, path = request.model, Path(request.output)
    from deconv_ir.formats.registry import format_of_suffix, suffixes

    chosen = format_of_suffix(path)
    if chosen is None:
        *most, last = suffixes()
        names = f"{', '.join(most)} or {last}"
        raise Mistake(f"--output {request.output}: the name must end with {names}")
    from deconv_ir import cut

    from ..shared.guard import Guard

    guard = Guard([("the model", model), ("the weights", Path(model).with_suffix(".bin"))])
    beside = [path.with_suffix(chosen.weights_suffix)] if chosen.weights_suffix else []
    for target in (path, *beside):
        guard.allow("--output", target)
        if target.exists() and not request.force:
            raise Mistake(f"--output {target}: the file exists (use --force)")
    noise = request.seed if request.strip_weights else None
    return cut(model, path, start=request.starts, end=request.ends, strip_weights=noise)


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
