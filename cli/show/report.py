"""The report of deconv-show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.common import counted

if TYPE_CHECKING:
    from deconv_ir.drawing.page.linted_file import LintedFile


def report(linted: LintedFile, target: str, bytes_written: int) -> None:
    """Print where the page is, and the numbers of layers and findings."""
    layers = () if linted.graph is None else linted.graph.layers
    size = f"{bytes_written / 1024:.0f} KiB" if bytes_written >= 1024 else f"{bytes_written} bytes"
    counts = f"{counted(layers, 'layer')}, {counted(linted.findings, 'finding')}"
    click.echo(f"{Path(target).resolve()}: {size}, {counts}")
