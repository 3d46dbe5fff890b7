"""deconv-show: a page that shows a model, in one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .common import EXIT_OK, STREAM, Mistake, counted, run_model_command
from .options import (
    CONTEXT,
    FILE,
    OF_AN_IR,
    Options,
    argument,
    flag,
    given,
    input_arrays,
    input_shapes,
    limit_options,
    option,
    parse_size,
    random_inputs,
    semantics,
    severity,
    version_option,
    weights_beside,
)
from .pages import progress, read_model, write

if TYPE_CHECKING:
    from deconv_ir.limits import Limits
    from deconv_ir.view.linted_file import LintedFile

FORMATS = ("html", "svg", "png")


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


class ShowRequest(Options):
    """The options of deconv-show."""

    model: str = argument("MODEL")
    output: str | None = option(
        "FILE",
        "Default: the model's name with .html, in the working directory; '-' is standard output.",
        type=FILE,
    )
    form: str | None = option(
        None, "Default: by the ending of --output; html.", "--format", type=click.Choice(FORMATS)
    )
    force: bool = flag("Overwrite the output.")
    weights: str | None = weights_beside()
    semantics: str = semantics()
    severity: str = severity("Show findings of this severity and above.")
    inputs: tuple[str, ...] = input_arrays(
        "Array for an input, as of deconv-run: the model runs, and its tensors are drawn."
    )
    random_inputs: int | None = random_inputs()
    shapes: tuple[str, ...] = input_shapes(
        "Shape of an input with dynamic dims, which the page shows. Repeatable."
    )
    other_inputs: tuple[str, ...] = option(
        "[NAME=]FILE",
        "Another array for an input: differences to the first are drawn. Inputs that are not "
        "given another array keep theirs.",
        "--other-input",
        multiple=True,
    )
    against: str | None = option(
        "MODEL|openvino",
        "Another model, or a runtime: where it differs, as deconv-diff finds it.",
    )
    profile: bool = flag("Time the layers: the page can be coloured by time.")
    max_size: int = option(
        None,
        "Size of all pictures of tensors together.",
        default="4MiB",
        show_default=True,
        callback=lambda context, parameter, value: parse_size(value),
    )
    limits: Limits = given(limit_options(OF_AN_IR))
    quiet: bool = flag("No progress, and no line about the output.", "-q", "--quiet")

    @property
    def runs(self) -> bool:
        """Whether the model runs."""
        asked = self.inputs or self.other_inputs or self.against or self.profile
        return bool(asked) or self.random_inputs is not None

    def read_too(self) -> Iterator[str]:
        """Iterate over the arrays that are read besides the model, and the other model."""
        for text in (*self.inputs, *self.other_inputs):
            yield from (text, text.rpartition("=")[2])
        if self.against is not None:
            yield self.against


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
    from deconv_ir.formats.openvino_xml.weights import weights_beside
    from deconv_ir.linter.options import choose
    from deconv_ir.view.linted_file import read_linted_file

    from .guard import Guard

    beside = request.weights or (None if model == STREAM else weights_beside(model))
    guard = Guard([("the model", model), *([("the weights", beside)] if beside else [])])
    for path in request.read_too():
        guard.add("a file that is read", path)
    if target != STREAM:
        guard.allow("--output", target)
        if Path(target).exists() and not request.force:
            raise Mistake(f"{target} already exists (use --force to overwrite, or --output)")
    from .show_runs import run_model

    if form != "html" and request.runs:
        raise Mistake(f"--format {form} draws the graph alone (--format html has the tensors)")
    data, name = read_model(model, request.limits)
    chosen = choose(severity=request.severity, semantics=request.semantics)
    linted = read_linted_file(data, name, chosen, beside, request.limits)
    extras: dict[str, Any] = {}
    if request.shapes or request.runs:
        linted, extras = run_model(data, beside, linted, request)
    if form == "html":
        from deconv_ir.view.page import write_page

        page = write_page(linted, extras, None if request.quiet else progress()).encode()
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
    """Draw the graph alone."""
    from deconv_ir.drawing.sketch import draw, svg_of

    sketch = linted.sketch
    if sketch is None:
        raise Mistake(f"{linted.file}: no graph to draw (--format html shows the findings)")
    if form == "svg":
        return svg_of(sketch, linted.marks()).encode()
    from deconv_ir.drawing.png import write_png

    drawn = draw(sketch, linted.marks())
    assert drawn is not None, "no limit was given"
    return write_png(*drawn)


def _form_of(output: str | None) -> str:
    """Choose the format by the ending of the output."""
    ending = "" if output is None else Path(output).suffix[1:].lower()
    return ending if ending in FORMATS else "html"


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
