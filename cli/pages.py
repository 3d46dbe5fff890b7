"""Pages of models: reading models, writing pages, and showing progress."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common import FROM_STDIN, STREAM, read_standard_input

if TYPE_CHECKING:
    from deconv_ir.limits import Limits
    from deconv_ir.view.facts import Progress


def read_model(model: str, limits: Limits) -> tuple[bytes, str]:
    """Return the bytes of a model, and its name in messages."""
    from deconv_ir.formats.openvino_xml.entry import read_file

    if model == STREAM:
        return read_standard_input(limits.xml_bytes), FROM_STDIN
    return bytes(read_file(model, limits)), model


def write(data: bytes, target: str) -> None:
    """Write a page atomically."""
    if target == STREAM:
        click.echo(data, nl=False)
        return
    from deconv_ir.formats.files import output_errors, replace_file

    with output_errors(target, "the page"), replace_file(Path(target)) as stream:
        stream.write(data)


def progress() -> Progress | None:
    """Return a function that shows the steps; None if standard error is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None

    def report(step: str, done: int, total: int) -> None:
        share = f" {100 * done // total} %" if 0 < done < total else ""
        text = "" if done >= total else f"{step}{share}"
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    return report
