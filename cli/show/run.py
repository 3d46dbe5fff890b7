"""Writing the page of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import IRError, utf_8

from ..shared.common import STREAM, Mistake
from ..shared.pages import progress, read_linted_file, read_model, write
from .report import report
from .request import FORMATS, ShowRequest

if TYPE_CHECKING:
    from deconv_ir.drawing.page.linted_file import LintedFile
    from deconv_ir.errors import DeconvError


def show(request: ShowRequest) -> None:
    """Write the page, or the picture of the graph."""
    model, output = request.model, request.output
    form = request.form or _form_of(output)
    target = output or f"{'model' if model == STREAM else Path(model).stem}.{form}"
    from deconv_ir.formats import other_type
    from deconv_ir.formats.openvino_xml.weights import weights_beside
    from deconv_ir.linter.options import choose

    from ..shared.guard import Guard

    beside = request.weights or (None if model == STREAM else weights_beside(model))
    guard = Guard([("the model", model), *([("the weights", beside)] if beside else [])])
    for path in request.read_too():
        guard.add("a file that is read", path)
    if target != STREAM:
        guard.allow("--output", target)
        if form not in FORMATS:
            raise Mistake(
                f"--output {target}: the name must end with .html, .svg or .png "
                "(--format writes one of them under any name)"
            )
        if Path(target).exists() and not request.force:
            raise Mistake(f"{target} already exists (use --force to overwrite, or --output)")
    from .runs import run_model

    if form != "html" and request.runs:
        raise Mistake(f"--format {form} draws the graph alone (--format html has the tensors)")
    data, name = read_model(model, request.limits)
    other = other_type(data, name)
    if other is not None:
        raise other
    chosen = choose(severity=request.severity, semantics=request.semantics)
    linted = read_linted_file(data, name, chosen, beside, request.limits)
    if linted.graph is None:
        raise _unreadable(linted)
    extras: dict[str, Any] = {}
    if request.shapes or request.preprocesses or request.runs:
        linted, extras = run_model(data, beside, linted, request)
    if form == "html":
        from deconv_ir.drawing.page.html import write_page

        page = utf_8(write_page(linted, extras, None if request.quiet else progress()))
    else:
        page = _picture(linted, form)
    write(page, target)
    if not request.quiet and target != STREAM:
        report(linted, target, len(page))


def _unreadable(linted: LintedFile) -> Mistake | DeconvError:
    """Return the error of a file without a graph: a page of it would be empty."""
    first = min(linted.findings, key=lambda finding: finding.line or 0, default=None)
    if first is None:
        return Mistake(f"{linted.file}: no graph to draw")
    error = IRError(first.message)
    error.finding = first
    return error


def _picture(linted: LintedFile, form: str) -> bytes:
    """Draw only the graph."""
    from deconv_ir.drawing.graph.sketch import draw, svg_of

    sketch = linted.sketch
    if sketch is None:
        raise Mistake(f"{linted.file}: no graph to draw (--format html shows the findings)")
    if form == "svg":
        return svg_of(sketch, linted.marks()).encode()
    from deconv_ir.drawing.png import write_png

    drawn = draw(sketch, linted.marks())
    assert drawn is not None, "no limit was given"
    return write_png(drawn)


def _form_of(output: str | None) -> str:
    """Return the format that the suffix of the output names; a name without one is a page."""
    ending = "" if output is None else Path(output).suffix[1:].lower()
    return {"": "html", "htm": "html"}.get(ending, ending)
