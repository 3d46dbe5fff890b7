"""Pictures of the alignment of input, stride zeros, filter, pads and output_padding.

One axis is drawn as lines of cells over the positions of the natural output: the data with the
zeros inserted by strides, the product of each data element with the filter, the sum with cropped
pads and added output_padding, and the output.  Two axes are drawn as a plane of these positions.
"""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.drawing.palette import ADDED, CUT, DISTINCT, FAINT, INK, PAPER, mixed
from deconv_ir.drawing.pen import (
    BODY,
    TEXT,
    TITLE,
    Dot,
    Lines,
    Picture,
    Point,
    Rect,
    Stroke,
    Style,
    Word,
    framed,
)
from deconv_ir.drawing.text import TIMES, by
from deconv_ir.ir.geometry import effective_kernel, natural_extent
from deconv_ir.ir.window import Window

_INK, _FAINT, _PAPER = INK[0], FAINT[0], PAPER[0]
_EXTRA = "#f6ddcc"
_ZERO, _ZERO_INK = "#f5f5f5", "#b8b8b8"

_CELL = 28.8
"""Size of a cell, in pixels."""
_GAP = 1.75
"""Distance between two lines of cells, in cells."""
MAX_CELLS = 48
"""Maximum positions on an axis: larger pictures are not readable."""


class AxisPicture(Window):
    """The numbers of one axis, and the positions of its picture."""

    @property
    def natural(self) -> int:
        """F: the positions that the filter reaches."""
        return natural_extent(self.data, self.kernel, self.stride, self.dilation)

    @property
    def extended(self) -> int:
        """The natural extent with output_padding."""
        return self.natural + self.output_padding

    @property
    def first(self) -> int:
        """The first position of the picture: negative if zeros are added."""
        return min(0, self.pad_begin)

    @property
    def stop(self) -> int:
        """The position after the last one of the picture."""
        return max(self.extended, self.pad_begin + self.output)

    def is_kept(self, position: int) -> bool:
        """Whether a position is part of the output."""
        return self.pad_begin <= position < self.pad_begin + self.output

    def sources(self, position: int) -> list[int]:
        """Return the data elements that contribute to a position."""
        return [
            x
            for x in range(self.data)
            if any(self.stride * x + self.dilation * k == position for k in range(self.kernel))
        ]


def draw(lines: Sequence[AxisPicture], title: str) -> Picture:
    """Draw the axes of a transposed convolution.

    Two axes make a plane; otherwise, each axis has a strip, one below the other.
    """
    names = ["" if len(lines) == 1 else f"axis {i}" for i in range(len(lines))]
    parts: list[_Strip | _Plane] = (
        [_Plane(*lines)] if len(lines) == 2 else list(map(_Strip, lines, names))
    )
    strokes: list[Stroke] = []
    top = 0.0
    for part in parts:
        grid = _CellGrid(part.left, part.top - top)
        part.draw(grid)
        strokes += grid.strokes
        top += part.height
    return framed(title, max(p.width for p in parts) * _CELL, top * _CELL, strokes)


class _CellGrid:
    """Draws on a grid of cells: the unit of places and extents is one cell."""

    def __init__(self, left: float, top: float) -> None:
        self.left = left
        self.top = top
        self.strokes: list[Stroke] = []

    def _at(self, x: float, y: float) -> Point:
        return (x - self.left) * _CELL, (y - self.top) * _CELL

    def cell(
        self,
        x: float,
        y: float,
        fill: str | None,
        border: str | None = _INK,
        *,
        w: float = 1,
        h: float = 1,
        thick: float = 1.0,
        dashed: bool = False,
    ) -> None:
        """Draw one cell, or a part of one."""
        place, size = self._at(x, y), (w * _CELL, h * _CELL)
        self.strokes.append(Rect(*place, *size, fill, border, thick, 0, dashed))

    def lines(self, colour: str, thick: float, *lines: Sequence[Point]) -> None:
        """Draw lines from point to point."""
        self.strokes.append(
            Lines([[self._at(*at) for at in line] for line in lines], colour, thick)
        )

    def dot(self, x: float, y: float) -> None:
        """Draw a dot in the middle of a cell."""
        self.strokes.append(Dot(*self._at(x + 0.5, y + 0.5), 3.3, _INK))

    def word(
        self,
        x: float,
        y: float,
        text: str,
        style: Style = BODY,
        colour: str = _INK,
        anchor: str = "middle",
        *,
        turned: bool = False,
    ) -> None:
        """Draw a text whose letters are in the middle of a height, or, `turned`, of a width."""
        left, down = self._at(x, y)
        base = 0.35 * style.size  # from the middle of the letters to the base line
        place = (left + base, down) if turned else (left, down + base)
        self.strokes.append(Word(*place, text, style, colour, anchor, turned=turned))

    def striped(self, x: float, y: float, sources: Sequence[int]) -> None:
        """A cell with a stripe for each contributing data element; without any, a zero."""
        if not sources:
            self.cell(x, y, _ZERO, _ZERO_INK)
            self.word(x + 0.5, y + 0.5, "0", colour=_ZERO_INK)
            return
        height = 1 / len(sources)
        for i, source in enumerate(sources):
            self.cell(x, y + i * height, _colour(source), None, h=height)
        self.cell(x, y, None)

    def hatch(self, x: float, y: float) -> None:
        """Strike a cell out."""
        strokes = []
        for step in range(1, 8):
            c = step / 4
            start, stop = (0.0, c) if c <= 1 else (c - 1, 1.0)
            strokes.append([(x + start, y + stop), (x + stop, y + start)])
        self.lines(CUT, 0.9, *strokes)

    def span(
        self, start: float, stop: float, y: float, text: str, colour: str, lower: float = 0.0
    ) -> None:
        begin, end = start + 0.08, stop - 0.08
        points = [(begin, y), (begin, y + 0.18), (end, y + 0.18), (end, y)]
        self.lines(colour, 1, points)
        self.word((start + stop) / 2, y + 0.5 + lower, text, colour=colour, style=TEXT)


def _colour(index: int) -> str:
    return DISTINCT[index % len(DISTINCT)]


class _Strip:
    """The picture of one axis."""

    margin = 8.2
    """Room for the names of the lines, in cells."""

    def __init__(self, line: AxisPicture, name: str) -> None:
        self.line = line
        self.name = name
        self.width = self.margin + (line.stop - line.first) + 1.2
        self.height = 1 + (line.data + 3) * _GAP + 1.6
        self.left = line.first - self.margin
        self.top = -0.6

    def draw(self, grid: _CellGrid) -> None:
        """Draw line by line, from the data to the output."""
        line = self.line
        y = self._data(grid, 0.4)
        for x in range(line.data):
            y = self._product(grid, y, x)
        y = self._sum(grid, y)
        self._output(grid, y)

    def label(self, grid: _CellGrid, y: float, text: str, detail: str) -> None:
        x = self.line.first - 0.6
        grid.word(x, y + 0.3, text, anchor="end", style=TITLE)
        grid.word(x, y + 0.95, detail, anchor="end", style=TEXT, colour=_FAINT)

    def _data(self, grid: _CellGrid, y: float) -> float:
        line = self.line
        zeros = line.stride - 1
        detail = f"X = {line.data}, stride {line.stride}"
        if zeros:
            detail += f": {zeros} zero{'s' if zeros > 1 else ''} between"
        self.label(grid, y, f"data {self.name}".strip(), detail)
        for x in range(line.data):
            grid.cell(line.stride * x, y, _colour(x))
            grid.word(line.stride * x + 0.5, y + 0.5, f"x{x}")
            for gap in range(zeros if x + 1 < line.data else 0):
                grid.cell(line.stride * x + 1 + gap, y, _ZERO, _ZERO_INK)
                grid.word(line.stride * x + 1.5 + gap, y + 0.5, "0", colour=_ZERO_INK)
        return y + _GAP

    def _product(self, grid: _CellGrid, y: float, x: int) -> float:
        line = self.line
        text = f"x{x} {TIMES} filter"
        detail = f"at {by((line.stride, x))} = {line.stride * x}"
        if x == 0:
            detail = f"K = {line.kernel}, dilation {line.dilation}"
        self.label(grid, y, text, detail)
        start = line.stride * x
        last = start + effective_kernel(line.kernel, line.dilation)
        middle = y + 0.5
        grid.lines(_colour(x), 2, [(start + 0.5, middle), (last - 0.5, middle)])
        for k in range(line.kernel):
            grid.cell(start + line.dilation * k, y, _colour(x))
            grid.word(start + line.dilation * k + 0.5, y + 0.5, f"k{k}")
        return y + _GAP

    def _sum(self, grid: _CellGrid, y: float) -> float:
        line = self.line
        detail = f"F = {line.natural}"
        if line.output_padding:
            detail += f", output_padding {line.output_padding}"
        self.label(grid, y, "sum", detail)
        for t in range(line.natural):
            grid.striped(t, y, line.sources(t))
        for t in range(line.natural, line.extended):
            grid.cell(t, y, _EXTRA, ADDED, dashed=True)
            grid.word(t + 0.5, y + 0.5, "+", colour=ADDED)
        end = line.extended
        for t in range(end):
            if not line.is_kept(t):
                grid.hatch(t, y)
        if line.pad_begin > 0:
            grid.span(0, min(line.pad_begin, end), y + 1.1, f"pad_begin {line.pad_begin}", CUT)
        if line.pad_end > 0:
            start = max(0, line.pad_begin + line.output)
            # Words that would overlap are placed one below the other.
            near = line.pad_begin > 0 and (start + end - min(line.pad_begin, end)) / 2 < 4.5
            lower = 0.55 if near else 0.0
            grid.span(start, end, y + 1.1, f"pad_end {line.pad_end}", CUT, lower)
        return y + _GAP + 0.6

    def _output(self, grid: _CellGrid, y: float) -> None:
        line = self.line
        detail = f"Y = {line.output}"
        if line.pad_begin < 0 or line.pad_end < 0:
            detail += f", pads {line.pad_begin} and {line.pad_end}: zeros are added"
        self.label(grid, y, "output", detail)
        for i in range(line.output):
            t = line.pad_begin + i
            grid.striped(t, y, line.sources(t) if 0 <= t < line.natural else [])
            grid.word(t + 0.5, y + 1.35, f"y{i}", style=TEXT, colour=_FAINT)


class _Plane:
    """The picture of two axes: the positions of the natural output, seen from above."""

    margin = 3.2

    def __init__(self, rows: AxisPicture, columns: AxisPicture) -> None:
        self.rows = rows
        self.columns = columns
        self.width = self.margin + (columns.stop - columns.first) + 11.5
        self.height = max(self.margin + (rows.stop - rows.first) + 1.6, 12.3)
        self.left = columns.first - self.margin
        self.top = rows.first - self.margin

    def draw(self, grid: _CellGrid) -> None:
        """Draw sums, then cropped and added positions, then data, filter and output over them."""
        rows, columns = self.rows, self.columns
        self._sums(grid)
        self._cut(grid)
        for k in range(rows.kernel):
            for m in range(columns.kernel):
                place = (columns.dilation * m + 0.1, rows.dilation * k + 0.1)
                grid.cell(*place, None, ADDED, w=0.8, h=0.8, thick=2.4)
        for i in range(rows.data):
            for j in range(columns.data):
                grid.dot(columns.stride * j, rows.stride * i)
        grid.cell(
            columns.pad_begin,
            rows.pad_begin,
            None,
            _INK,
            w=columns.output,
            h=rows.output,
            thick=3.2,
        )
        self._numbers(grid)
        self._legend(grid)

    def _sums(self, grid: _CellGrid) -> None:
        rows, columns = self.rows, self.columns
        across = [len(columns.sources(t)) for t in range(columns.natural)]
        for y in range(rows.first, rows.stop):
            down = len(rows.sources(y)) if 0 <= y < rows.natural else 0
            for x in range(columns.first, columns.stop):
                count = down * across[x] if 0 <= x < columns.natural else 0
                if count:
                    grid.cell(x, y, _shade(count), _PAPER)
                elif 0 <= y < rows.natural and 0 <= x < columns.natural:
                    grid.cell(x, y, _ZERO, _PAPER)
                elif 0 <= y < rows.extended and 0 <= x < columns.extended:
                    grid.cell(x, y, _EXTRA, _PAPER)
                elif rows.is_kept(y) and columns.is_kept(x):
                    grid.cell(x, y, _ZERO, _PAPER)

    def _cut(self, grid: _CellGrid) -> None:
        for y in range(self.rows.extended):
            for x in range(self.columns.extended):
                if not (self.rows.is_kept(y) and self.columns.is_kept(x)):
                    grid.hatch(x, y)

    def _numbers(self, grid: _CellGrid) -> None:
        rows, columns = self.rows, self.columns
        for i in range(columns.output):
            grid.word(
                columns.pad_begin + i + 0.5, rows.first - 0.5, str(i), style=TEXT, colour=_FAINT
            )
        for i in range(rows.output):
            grid.word(
                columns.first - 0.5, rows.pad_begin + i + 0.5, str(i), style=TEXT, colour=_FAINT
            )
        middle = columns.pad_begin + columns.output / 2
        grid.word(middle, rows.first - 1.5, "output, axis 1", style=TEXT)
        middle = rows.pad_begin + rows.output / 2
        grid.word(columns.first - 1.5, middle, "output, axis 0", style=TEXT, turned=True)

    def _legend(self, grid: _CellGrid) -> None:
        x = self.columns.stop + 1.2
        y = self.rows.first + 0.1
        rows, columns = self.rows, self.columns

        def entry(text: str, detail: str = "") -> None:
            nonlocal y
            grid.word(x + 1.5, y + 0.5, text, anchor="start")
            if detail:
                grid.word(x + 1.5, y + 1.15, detail, anchor="start", style=TEXT, colour=_FAINT)
            y += 1.9 if detail else 1.4

        grid.dot(x, y)
        entry(
            "data",
            f"{by((rows.data, columns.data))}, strides {rows.stride},{columns.stride}",
        )
        grid.cell(x + 0.1, y + 0.1, None, ADDED, w=0.8, h=0.8, thick=2.4)
        entry(
            "filter, at the first data element",
            f"{by((rows.kernel, columns.kernel))}, dilations {rows.dilation},{columns.dilation}",
        )
        for i, count in enumerate((1, 2, 4)):
            grid.cell(x + i / 3, y, _shade(count), None, w=1 / 3)
        entry("sums: darker, more products")
        if rows.output_padding or columns.output_padding:
            grid.cell(x, y, _EXTRA, _PAPER)
            entry(f"output_padding {rows.output_padding},{columns.output_padding}")
        begins = f"{rows.pad_begin},{columns.pad_begin}"
        ends = f"{rows.pad_end},{columns.pad_end}"
        if max(rows.pad_begin, rows.pad_end, columns.pad_begin, columns.pad_end) > 0:
            grid.hatch(x, y)
            entry("cut by pads", f"begin {begins}, end {ends}")
        grid.cell(x + 0.1, y + 0.1, None, _INK, w=0.8, h=0.8, thick=3.2)
        entry("output", by((rows.output, columns.output)))


def _shade(count: int) -> str:
    """Blue, darker for more products."""
    share = min(1.0, 0.18 + 0.16 * (count - 1))
    return "#" + bytes(mixed("#d6e8f5", "#005fa0", share)).hex()
