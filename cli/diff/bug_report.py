"""The option --report: the smallest part that shows a difference, in a .zip file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deconv_ir.compare.smallest import Compared
from deconv_ir.errors import one_line
from deconv_ir.ir.options import Accuracy, Semantics

from ..shared.common import Mistake, counted, note
from ..shared.guard import Guard
from .report_file import write_report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deconv_ir import Model, ModelDifference
    from deconv_ir.ir.dtypes import Array

    from .request import DiffRequest

_LISTED = 5


def require_target(request: DiffRequest) -> None:
    """Require that the report can be written, before anything runs."""
    if request.report is None:
        if request.strip_weights:
            raise Mistake("--strip-weights requires --report FILE.zip")
        return
    path = Path(request.report)
    if path.suffix != ".zip":
        raise Mistake(f"--report {request.report}: the name must end with .zip")
    if request.verdict == "never":
        raise Mistake("--report needs the verdict (leave out --verdict never)")
    read = [("the first model", request.first)]
    if request.second is not None:
        read.append(("the second model", request.second))
    Guard(read).allow("--report", request.report)
    if path.exists() and not request.force:
        raise Mistake(f"--report {request.report}: the file exists (use --force)")


def report_difference(
    request: DiffRequest,
    models: tuple[Model, Model | str | None],
    arrays: Mapping[str, Array],
    dumps: tuple[Mapping[str, Any], ...],
    settings: Mapping[str, str],
    found: ModelDifference,
) -> None:
    """Write the report of a difference, if there is one, and print what it holds."""
    verdict = found.verdict
    if verdict is None or (verdict.first is None and all(t.within for t in found.tensors)):
        note(f"nothing to report: {request.report} was not written")
        return
    first, second = models
    compared = Compared(
        first,
        second,
        arrays,
        "" if dumps else request.runtime or "",
        dumps,
        (
            Semantics.of(request.semantics),
            Semantics.of(request.other_semantics or request.semantics),
        ),
        settings,
        Accuracy.of(request.accuracy),
        request.rtol,
        request.atol,
    )
    seed = request.seed if request.strip_weights else None
    report = write_report(compared, found, Path(request.report or ""), seed)
    layers = counted(report.layers, "layer")
    note(f"wrote {request.report}: {layers}, {report.size} bytes")
    if report.stripped:
        still = "is still there" if report.shows else "is not there any more"
        note(f"noise replaces the weights: the fault {still}")
        if report.kept:
            shown = ", ".join(one_line(name, 80) for name in report.kept[:_LISTED])
            more = len(report.kept) - _LISTED
            also = f" and {more} more" if more > 0 else ""
            note(f"not replaced, since small or no weights: {shown}{also}")
