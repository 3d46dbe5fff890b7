"""Pages of models: reading models, writing pages, and showing progress."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deconv_ir.errors import WeightsError

from .common import FROM_STDIN, STREAM, read_standard_input

if TYPE_CHECKING:
    from deconv_ir.drawing.page.facts import Progress
    from deconv_ir.drawing.page.linted_file import LintedFile
    from deconv_ir.ir.operation import ConstantSource
    from deconv_ir.limits import Limits
    from deconv_ir.linter.options import CheckOptions


def read_model(model: str, limits: Limits) -> tuple[bytes, str]:
    """Return the bytes of a model, and its name in messages."""
    from deconv_ir.formats import read_file

    if model == STREAM:
        return read_standard_input(limits.xml_bytes), FROM_STDIN
    return bytes(read_file(model, limits)), model


def read_linted_file(
    data: bytes,
    file: str,
    options: CheckOptions,
    weights: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
) -> LintedFile:
    """Read and check a model; an invalid one has findings, and the readable part of its graph.

    `data` are the contents of the file, named `file` in messages; `options` choose the rules of the
    linter, and the semantics.
    """
    from deconv_ir.drawing.page.linted_file import LintedFile
    from deconv_ir.formats.openvino_xml.weights import Weights
    from deconv_ir.ir.infer import infer
    from deconv_ir.ir.operation import Context
    from deconv_ir.limits import DEFAULT_LIMITS
    from deconv_ir.linter.engine import check_bytes

    result = check_bytes(data, file, options, weights, limits or DEFAULT_LIMITS, resume=False)
    graph = None if result.parsed is None else result.parsed.graph
    source: ConstantSource | None = None
    if graph is not None and weights is not None and Path(weights).exists():
        with contextlib.suppress(WeightsError):  # reported by a finding
            source = Weights(weights)
    context = Context(options.semantics, source)
    inference = None if graph is None else infer(graph, context, collect=True)
    return LintedFile(file, result.findings, graph, inference, context)


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
