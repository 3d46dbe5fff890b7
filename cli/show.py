"""deconv-show: a page that shows a model, in one file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from .common import EXIT_OK, FROM_STDIN, STREAM, Mistake, run_and_leave, standard_input
from .options import (
    CONTEXT,
    FILE,
    OF_AN_IR,
    limit_options,
    semantics_option,
    version_option,
)

if TYPE_CHECKING:
    from deconv_ir.limits import Limits
    from deconv_ir.view.facts import Progress
    from deconv_ir.view.subject import Subject

FORMATS = ("html", "svg", "png")

EPILOG = """\b
Examples:
  deconv-show model.xml
  deconv-show graph.json --output graph.html --force
  deconv-show model.xml --format svg

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
@click.option(
    "--weights", metavar="FILE.bin", type=FILE, help="The .bin. Default: the one beside the .xml."
)
@semantics_option()
@click.option(
    "--severity",
    type=click.Choice(["error", "warning", "info"]),
    default="warning",
    show_default=True,
    help="Show findings of this severity and above.",
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
) -> int:
    """Write a page that shows MODEL, an IR or a oneDNN Graph file.

    It is one file that any browser opens without a network or a server. A broken model
    gives a page with its findings.
    """
    form = form or _form_of(output)
    target = output or f"{_stem(model)}.{form}"
    from deconv_ir.formats.openvino_xml.weights import weights_beside
    from deconv_ir.linter.options import choose
    from deconv_ir.view.subject import read_subject

    from .guard import Guard

    beside = weights or (None if model == STREAM else weights_beside(model))
    guard = Guard([("the model", model), *([("the weights", beside)] if beside else [])])
    if target != STREAM:
        guard.allow("--output", target)
        if Path(target).exists() and not force:
            raise Mistake(f"{target} already exists (use --force to overwrite, or --output)")
    data, name = read_model(model, limits)
    options = choose(severity=severity, semantics=semantics)
    subject = read_subject(data, name, options, beside, limits)
    page = _page(subject, quiet) if form == "html" else _picture(subject, form)
    write(page, target)
    if not quiet and target != STREAM:
        layers = 0 if subject.graph is None else len(subject.graph.layers)
        size = f"{len(page) / 1024:.0f} KiB" if len(page) >= 1024 else f"{len(page)} bytes"
        found = len(subject.findings)
        click.echo(
            f"{Path(target).resolve()}: {size}, {layers} layer{'' if layers == 1 else 's'}, "
            f"{found} finding{'' if found == 1 else 's'}"
        )
    return EXIT_OK


def _page(subject: Subject, quiet: bool) -> bytes:
    from deconv_ir.view.page import write_page

    return write_page(subject, progress=None if quiet else progress()).encode()


def _picture(subject: Subject, form: str) -> bytes:
    """Draw the graph alone."""
    from deconv_ir.view.sketch import draw
    from deconv_ir.view.svg import write_svg

    sketch = subject.sketch
    drawn = None if sketch is None else draw(sketch, subject.marks())
    if sketch is None or drawn is None:
        raise Mistake(f"{subject.file}: no graph to draw (--format html shows the findings)")
    if form == "svg":
        return write_svg(sketch.graph.name, *drawn).encode()
    from deconv_ir.view.png import write_png

    return write_png(*drawn)


def read_model(model: str, limits: Limits) -> tuple[bytes, str]:
    """Return the bytes of a model, and its name in messages."""
    from deconv_ir.formats.openvino_xml.reader import read_file

    if model == STREAM:
        # One byte more than the limit, so that too large a model is rejected.
        return standard_input().read(limits.xml_bytes + 1), FROM_STDIN
    return bytes(read_file(model, limits)), model


def _form_of(output: str | None) -> str:
    """Choose the format by the ending of the output."""
    ending = "" if output is None else Path(output).suffix[1:].lower()
    return ending if ending in FORMATS else "html"


def _stem(model: str) -> str:
    return "model" if model == STREAM else Path(model).stem


def write(data: bytes, target: str) -> None:
    """Write a page, which appears whole or not at all."""
    if target == STREAM:
        click.echo(data, nl=False)
        return
    from deconv_ir.formats.files import output_errors, replace_file

    with output_errors(target, "the page"), replace_file(Path(target)) as stream:
        stream.write(data)


def progress() -> Progress | None:
    """Return what shows the steps on a terminal; None where standard error is none."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None

    def report(step: str, done: int, total: int) -> None:
        share = f" {100 * done // total} %" if 0 < done < total else ""
        text = "" if done >= total else f"{step}{share}"
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    return report


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as deconv-run
    run_and_leave(command)


if __name__ == "__main__":
    main()
