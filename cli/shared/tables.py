"""Tables that fit a terminal: texts shortened in the middle, columns left out."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from deconv_ir.drawing.text import cut
from deconv_ir.errors import one_line

GAP = 2
"""Spaces between columns."""
HEADER = 2
"""Spaces that tabulate adds to headers."""
LEAST = 24
"""Length to which a text may be shortened."""

Cells = list[list[str]]


class Fitted(NamedTuple):
    """A table that is at most as wide as asked for, where that is possible."""

    cells: Cells
    columns: list[int]
    """The columns that are left, by their numbers."""
    omitted: list[str]
    """The headers of the others."""


def terminal_width(*, err: bool) -> int | None:
    """Return the columns of the terminal that a stream goes to; None: to a file or a pipe."""
    stream = sys.stderr if err else sys.stdout
    if stream is None or not stream.isatty():
        return None
    return shutil.get_terminal_size().columns


def fit(
    cells: Cells,
    headers: Sequence[str],
    aligned: Sequence[str],
    width: int,
    omit: Sequence[str] = (),
    sentences: Sequence[str] = (),
) -> Fitted:
    """Make a table fit a width.

    Columns that are aligned left are texts, which are shortened: in the middle, since names differ
    mostly at their ends, but those of `sentences` at the end.  Where that does not suffice,
    columns are left out, in the order of `omit`.
    """
    columns = list(range(len(headers)))
    waiting = [header for header in omit if header in headers]
    omitted: list[str] = []
    while True:
        widths = {
            c: max([len(headers[c]) + HEADER, *(len(row[c]) for row in cells)]) for c in columns
        }
        texts = [c for c in columns if aligned[c] == "left"]
        least = {c: min(widths[c], max(LEAST, len(headers[c]) + HEADER)) for c in texts}
        room = width - GAP * (len(columns) - 1)
        room -= sum(widths[c] for c in columns if c not in texts)
        if sum(least.values()) <= room or not waiting:
            break
        omitted.append(waiting[0])
        columns.remove(headers.index(waiting.pop(0)))
    # The longest texts are shortened, down to a common length.
    longest = max((widths[c] for c in texts), default=0)
    while longest > LEAST and sum(max(least[c], min(widths[c], longest)) for c in texts) > room:
        longest -= 1
    lengths = {c: max(least[c], min(widths[c], longest)) for c in texts}
    found = [
        [
            row[c] if c not in lengths else _shortened(row[c], lengths[c], headers[c] in sentences)
            for c in columns
        ]
        for row in cells
    ]
    return Fitted(found, columns, omitted)


def _shortened(text: str, length: int, is_sentence: bool) -> str:
    if is_sentence and len(text) > length:
        return f"{text[: length - 1]}\N{HORIZONTAL ELLIPSIS}"
    return cut(text, length)


def print_table(
    table: Sequence[Sequence[object]],
    headers: Sequence[str],
    aligned: Sequence[str],
    *,
    err: bool = False,
    omit: Sequence[str] = (),
    sentences: Sequence[str] = (),
) -> None:
    """Print a table with a bold line of headers.

    On a terminal it is made to fit (see `fit`): texts are shortened, then the columns `omit` are
    left out, in this order.  A file or a pipe gets all of it.
    """
    from tabulate import tabulate  # takes 15 ms

    cells = [[one_line(str(cell)) for cell in row] for row in table]
    width = terminal_width(err=err)
    omitted: list[str] = []
    if width is not None:
        cells, columns, omitted = fit(cells, headers, aligned, width, omit, sentences)
        headers, aligned = ([row[c] for c in columns] for row in (headers, aligned))
    text = tabulate(
        cells,
        list(headers),
        tablefmt="plain",
        colalign=list(aligned) if table else None,
        disable_numparse=True,
    )
    for number, line in enumerate(text.splitlines()):
        click.echo(click.style(line, bold=number == 0), err=err)
    if omitted:
        left_out = f"left out at {width} columns: {', '.join(omitted)}"
        click.echo(click.style(left_out, dim=True), err=err)
