"""Cutting a part out of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..shared.common import Mistake

if TYPE_CHECKING:
    from deconv_ir.compare.cut import Part

    from .request import CutRequest


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
