"""deconv-show: a page that shows a model, in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .common import EXIT_OK, STREAM, Mistake, counted, run_model_command
from .options import (
    CONTEXT,
    FILE,
    OF_AN_IR,
    array_options,
    limit_options,
    parse_size,
    semantics_option,
    severity_option,
    version_option,
    weights_option,
)
from .pages import progress, read_model, write

if TYPE_CHECKING:
    from deconv_ir.limits import Limits
    from deconv_ir.view.subject import Subject

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


@click.command("deconv-show", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("model", metavar="MODEL", type=FILE)
@click.option(
    "--output",
    metavar="FILE",
    type=FILE,
    help="Default: the model's name with .html, in the working directory; '-' is standard output.",
)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="Default: by the ending of --output; html."
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@weights_option()
@semantics_option()
@severity_option("Show findings of this severity and above.")
@array_options(
    use="the model runs, and its tensors are drawn.",
    shape="Shape of an input with dynamic dims, which the page shows. Repeatable.",
)
@click.option(
    "--other-input",
    "other_inputs",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Another array for an input: differences to the first are drawn. Inputs that are not "
    "given another array keep theirs.",
)
@click.option(
    "--against",
    metavar="MODEL|openvino",
    help="Another model, or a runtime: where it differs, as deconv-diff finds it.",
)
@click.option("--profile", is_flag=True, help="Time the layers: the page can be coloured by time.")
@click.option(
    "--max-size",
    default="4MiB",
    show_default=True,
    callback=lambda context, parameter, value: parse_size(value),
    help="Size of all pictures of tensors together.",
)
@limit_options(OF_AN_IR)
@click.option("-q", "--quiet", is_flag=True, help="No progress, and no line about the output.")
@version_option("deconv-show")
def command(
    model: str,
    output: str | None,
    form: str | None,
    force: bool,
    weights: str | None,
    semantics: str,
    severity: str,
    limits: Limits,
    quiet: bool,
    **running: Any,
) -> int:
    """Write a page that shows MODEL, an IR or a oneDNN Graph file.

    It is one file that any browser opens without a network or a server. A broken model
    gives a page with its findings.
    """
    form = form or _form_of(output)
    target = output or f"{'model' if model == STREAM else Path(model).stem}.{form}"
    from deconv_ir.formats.openvino_xml.weights import weights_beside
    from deconv_ir.linter.options import choose
    from deconv_ir.view.subject import read_subject

    from .guard import Guard

    beside = weights or (None if model == STREAM else weights_beside(model))
    guard = Guard([("the model", model), *([("the weights", beside)] if beside else [])])
    for path in _read_too(running):
        guard.add("a file that is read", path)
    if target != STREAM:
        guard.allow("--output", target)
        if Path(target).exists() and not force:
            raise Mistake(f"{target} already exists (use --force to overwrite, or --output)")
    from .show_runs import run_model, runs

    if form != "html" and runs(running):
        raise Mistake(f"--format {form} draws the graph alone (--format html has the tensors)")
    data, name = read_model(model, limits)
    options = choose(severity=severity, semantics=semantics)
    subject = read_subject(data, name, options, beside, limits)
    extras: dict[str, Any] = {}
    if running["shapes"] or runs(running):
        subject, extras = run_model(data, beside, subject, running, quiet)
    if form == "html":
        from deconv_ir.view.page import write_page

        page = write_page(subject, extras, None if quiet else progress()).encode()
    else:
        page = _picture(subject, form)
    write(page, target)
    if not quiet and target != STREAM:
        layers = () if subject.graph is None else subject.graph.layers
        size = f"{len(page) / 1024:.0f} KiB" if len(page) >= 1024 else f"{len(page)} bytes"
        counts = f"{counted(layers, 'layer')}, {counted(subject.findings, 'finding')}"
        click.echo(f"{Path(target).resolve()}: {size}, {counts}")
    return EXIT_OK


def _read_too(running: Mapping[str, Any]) -> Iterator[str]:
    """Return the arrays that are read besides the model, and the other model."""
    for text in (*running["inputs"], *running["other_inputs"]):
        yield from (text, text.rpartition("=")[2])
    if running["against"] is not None:
        yield running["against"]


def _picture(subject: Subject, form: str) -> bytes:
    """Draw the graph alone."""
    from deconv_ir.drawing.sketch import draw, svg_of

    sketch = subject.sketch
    if sketch is None:
        raise Mistake(f"{subject.file}: no graph to draw (--format html shows the findings)")
    if form == "svg":
        return svg_of(sketch, subject.marks()).encode()
    from deconv_ir.drawing.png import write_png

    drawn = draw(sketch, subject.marks())
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
