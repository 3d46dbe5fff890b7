"""deconv-show: a page that shows a model, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..shared.common import EXIT_OK, STREAM, Mistake, counted, run_model_command
from ..shared.options import CONTEXT, version_option
from ..shared.pages import progress, read_linted_file, read_model, write
from .request import FORMATS, ShowRequest

if TYPE_CHECKING:
    from deconv_ir.drawing.page.linted_file import LintedFile

EPILOG = """\b
Examples:
  deconv-show model.xml
  deconv-show graph.json --output graph.html --force
  deconv-show model.xml --format svg
  deconv-show model.xml --input x.npy --profile
  deconv-show model.xml --input x.npy --other-input y.npy
  deconv-show model.xml --random-inputs 0 --against other.xml

\b
Exit codes: 0 written (a model with findings too), 2 the file cannot be read or
written, 130 interrupted.
"""


@click.command("deconv-show", epilog=EPILOG, context_settings=CONTEXT)
@ShowRequest.add_to
@version_option("deconv-show")
def command(**options: Any) -> int:
    """Write a page that shows MODEL, an IR or a oneDNN Graph file.

    It is one file that any browser opens without a network or a server. A broken model
    gives a page with its findings.
    """
    request = ShowRequest(**options)
    model, output = request.model, request.output
    form = request.form or _form_of(output)
    target = output or f"{'model' if model == STREAM else Path(model).stem}.{form}"
    from deconv_ir.errors import utf_8
    from deconv_ir.formats import other_kind
    from deconv_ir.formats.openvino_xml.weights import weights_beside
    from deconv_ir.linter.options import choose

    from ..shared.changes import preprocesses
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
    other = other_kind(data, name)
    if other is not None:
        raise other
    chosen = choose(severity=request.severity, semantics=request.semantics)
    linted = read_linted_file(data, name, chosen, beside, request.limits)
    extras: dict[str, Any] = {}
    if request.shapes or preprocesses(request) or request.runs:
        linted, extras = run_model(data, beside, linted, request)
    if form == "html":
        from deconv_ir.drawing.page.document import write_page

        page = utf_8(write_page(linted, extras, None if request.quiet else progress()))
    else:
        page = _picture(linted, form)
    write(page, target)
    if not request.quiet and target != STREAM:
        layers = () if linted.graph is None else linted.graph.layers
        size = f"{len(page) / 1024:.0f} KiB" if len(page) >= 1024 else f"{len(page)} bytes"
        counts = f"{counted(layers, 'layer')}, {counted(linted.findings, 'finding')}"
        click.echo(f"{Path(target).resolve()}: {size}, {counts}")
    return EXIT_OK


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


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
