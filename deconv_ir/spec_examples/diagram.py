"""Pictures (SVG) of the alignment of input, stride zeros, filter, pads and output_padding.

One axis is drawn as lines of cells over the positions of the natural output: the data with the
zeros inserted by strides, the product of each data element with the filter, the sum with cropped
pads and added output_padding, and the output.  Two axes are drawn as a plane of these positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from deconv_ir.errors import DeconvError
from deconv_ir.hints import Hint
from deconv_ir.ir.geometry import effective_kernel, natural_extent
from deconv_ir.ir.window import Window
from deconv_ir.spec_examples.golden import geometry_of
from deconv_ir.spec_examples.specfile import ExampleSpec

# Okabe and Ito's palette: colour-blind readers can distinguish it.
_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#D55E00", "#999999")
_INK = "#222222"
_FAINT = "#B8B8B8"
_CUT = "#C0392B"
_EXTRA = "#F6DDCC"
_ZERO = "#F5F5F5"
_FONTS = "DejaVu Sans, Verdana, Arial, sans-serif"
_CELL = 21.6
"""Size of a cell, in points."""

_GAP = 1.75
"""Distance between two lines of cells, in cells."""


MAX_CELLS = 48
"""Maximum positions on an axis: larger pictures are not readable."""


class Line(Window):
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


def lines_of(example: ExampleSpec) -> tuple[Line, ...]:
    """Return the numbers of an example's axes."""
    geometry = geometry_of(example, example.profiles[0])
    operation: Any = example.operation
    data, filter_ = operation.views(example.infos, len(geometry))
    lines = tuple(
        Line.of(*numbers)
        for numbers in zip(
            operation.axes(len(geometry)), geometry, data.spatial, filter_.kernel, strict=True
        )
    )
    longest = max(line.stop - line.first for line in lines)
    if longest > MAX_CELLS:
        raise DeconvError(
            f"example {example.name!r} is too large for a picture: {longest} positions on an "
            f"axis, {MAX_CELLS} can be shown",
            hint=Hint.WITHOUT_DIAGRAM(),
            rule="spec",
        )
    return lines


def draw(example: ExampleSpec) -> bytes:
    """Draw an example as SVG, the same on every run.

    Two spatial axes make a plane; otherwise, each axis has a picture.
    """
    lines = lines_of(example)
    if len(lines) == 2:
        return _stack([_Plane(*lines)])
    names = ["" if len(lines) == 1 else f"axis {i}" for i in range(len(lines))]
    return _stack([_Strip(*pair) for pair in zip(lines, names, strict=True)])


def _stack(parts: Sequence[_Strip | _Plane]) -> bytes:
    """Draw parts one below the other."""
    width = max(p.width for p in parts) * _CELL
    height = sum(p.height for p in parts) * _CELL
    elements = []
    top = 0.0
    for part in parts:
        pen = _Pen(part.left, part.top - top)
        part.draw(pen)
        elements += pen.elements
        top += part.height
    document = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}pt" height="{height:g}pt" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="{_FONTS}">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{"".join(elements)}</svg>\n'
    )
    return document.encode()


class _Pen:
    """Writes cells, lines and words as SVG; the unit is one cell, and y grows downwards."""

    def __init__(self, left: float, top: float) -> None:
        self.left = left
        self.top = top
        self.elements: list[str] = []

    def cell(
        self,
        x: float,
        y: float,
        fill: str,
        edge: str = _INK,
        *,
        w: float = 1,
        h: float = 1,
        linewidth: float = 0.8,
        dashed: bool = False,
    ) -> None:
        """One cell, or a part of one."""
        left, top = self._at(x, y)
        style = f'fill="{fill}"'
        if edge != "none":
            style += f' stroke="{edge}" stroke-width="{linewidth:g}"'
        if dashed:
            style += ' stroke-dasharray="1.6 1.2"'
        size = f'width="{w * _CELL:.5g}" height="{h * _CELL:.5g}"'
        self.elements.append(f'<rect x="{left:.5g}" y="{top:.5g}" {size} {style}/>\n')

    def lines(self, colour: str, width: float, *lines: Sequence[tuple[float, float]]) -> None:
        """Lines from point to point."""
        path = ""
        for points in lines:
            places = (self._at(*point) for point in points)
            path += "M" + " ".join(f"{left:.5g},{top:.5g}" for left, top in places)
        style = f'fill="none" stroke="{colour}" stroke-width="{width:g}"'
        self.elements.append(f'<path d="{path}" {style}/>\n')

    def dot(self, x: float, y: float) -> None:
        """A dot in the middle of a cell."""
        left, top = self._at(x + 0.5, y + 0.5)
        self.elements.append(f'<circle cx="{left:.5g}" cy="{top:.5g}" r="2.5" fill="{_INK}"/>\n')

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return (x - self.left) * _CELL, (y - self.top) * _CELL

    def striped(self, x: float, y: float, sources: Sequence[int]) -> None:
        """A cell with a stripe for each contributing data element; without any, a zero."""
        if not sources:
            self.cell(x, y, _ZERO, _FAINT)
            self.word(x + 0.5, y + 0.5, "0", colour=_FAINT)
            return
        height = 1 / len(sources)
        for i, source in enumerate(sources):
            self.cell(x, y + i * height, _colour(source), "none", h=height)
        self.cell(x, y, "none")

    def hatch(self, x: float, y: float) -> None:
        """Strike a cell out."""
        strokes = []
        for step in range(1, 8):
            c = step / 4
            start, stop = (0.0, c) if c <= 1 else (c - 1, 1.0)
            strokes.append([(x + start, y + stop), (x + stop, y + start)])
        self.lines(_CUT, 0.7, *strokes)

    def word(
        self,
        x: float,
        y: float,
        text: str,
        *,
        colour: str = _INK,
        size: float = 9.0,
        anchor: str = "middle",
        bold: bool = False,
        turned: bool = False,
    ) -> None:
        """Words, centred at a position by default."""
        # Distance from the middle of the letters down to the baseline.
        base = 0.35 * size
        left, down = self._at(x, y)
        if turned:
            left += base
        else:
            down += base
        style = f'text-anchor="{anchor}" font-size="{size:g}" fill="{colour}"'
        if bold:
            style += ' font-weight="bold"'
        if turned:
            style += f' transform="rotate(-90 {left:.2f} {down:.2f})"'
        self.elements.append(f'<text x="{left:.2f}" y="{down:.2f}" {style}>{escape(text)}</text>\n')

    def span(
        self, start: float, stop: float, y: float, text: str, colour: str, lower: float = 0.0
    ) -> None:
        begin, end = start + 0.08, stop - 0.08
        points = [(begin, y), (begin, y + 0.18), (end, y + 0.18), (end, y)]
        self.lines(colour, 1, points)
        self.word((start + stop) / 2, y + 0.5 + lower, text, colour=colour, size=8)


def _colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


class _Strip:
    """The picture of one axis."""

    margin = 8.2
    """Room for the names of the lines, in cells."""

    def __init__(self, line: Line, name: str) -> None:
        self.line = line
        self.name = name
        self.width = self.margin + (line.stop - line.first) + 1.2
        self.height = 1 + (line.data + 3) * _GAP + 1.6
        self.left = line.first - self.margin
        self.top = -0.6

    def draw(self, pen: _Pen) -> None:
        """Draw line by line, from the data to the output."""
        line = self.line
        y = self._data(pen, 0.4)
        for x in range(line.data):
            y = self._product(pen, y, x)
        y = self._sum(pen, y)
        self._output(pen, y)

    def label(self, pen: _Pen, y: float, text: str, detail: str) -> None:
        x = self.line.first - 0.6
        pen.word(x, y + 0.3, text, anchor="end", bold=True)
        pen.word(x, y + 0.95, detail, anchor="end", colour="#666666", size=7.5)

    def _data(self, pen: _Pen, y: float) -> float:
        line = self.line
        zeros = line.stride - 1
        detail = f"X = {line.data}, stride {line.stride}"
        if zeros:
            detail += f": {zeros} zero{'s' if zeros > 1 else ''} between"
        self.label(pen, y, f"data {self.name}".strip(), detail)
        for x in range(line.data):
            pen.cell(line.stride * x, y, _colour(x))
            pen.word(line.stride * x + 0.5, y + 0.5, f"x{x}")
            for gap in range(zeros if x + 1 < line.data else 0):
                pen.cell(line.stride * x + 1 + gap, y, _ZERO, _FAINT)
                pen.word(line.stride * x + 1.5 + gap, y + 0.5, "0", colour=_FAINT)
        return y + _GAP

    def _product(self, pen: _Pen, y: float, x: int) -> float:
        line = self.line
        text = f"x{x} \N{MULTIPLICATION SIGN} filter"
        detail = f"at {line.stride}\N{MULTIPLICATION SIGN}{x} = {line.stride * x}"
        if x == 0:
            detail = f"K = {line.kernel}, dilation {line.dilation}"
        self.label(pen, y, text, detail)
        start = line.stride * x
        last = start + effective_kernel(line.kernel, line.dilation)
        middle = y + 0.5
        pen.lines(_colour(x), 1.5, [(start + 0.5, middle), (last - 0.5, middle)])
        for k in range(line.kernel):
            pen.cell(start + line.dilation * k, y, _colour(x))
            pen.word(start + line.dilation * k + 0.5, y + 0.5, f"k{k}")
        return y + _GAP

    def _sum(self, pen: _Pen, y: float) -> float:
        line = self.line
        detail = f"F = {line.natural}"
        if line.output_padding:
            detail += f", output_padding {line.output_padding}"
        self.label(pen, y, "sum", detail)
        for t in range(line.natural):
            pen.striped(t, y, line.sources(t))
        for t in range(line.natural, line.extended):
            pen.cell(t, y, _EXTRA, _COLOURS[6], dashed=True)
            pen.word(t + 0.5, y + 0.5, "+", colour=_COLOURS[6])
        end = line.extended
        for t in range(end):
            if not line.is_kept(t):
                pen.hatch(t, y)
        if line.pad_begin > 0:
            pen.span(0, min(line.pad_begin, end), y + 1.1, f"pad_begin {line.pad_begin}", _CUT)
        if line.pad_end > 0:
            start = max(0, line.pad_begin + line.output)
            # Words that would overlap are placed one below the other.
            near = line.pad_begin > 0 and (start + end - min(line.pad_begin, end)) / 2 < 4.5
            lower = 0.55 if near else 0.0
            pen.span(start, end, y + 1.1, f"pad_end {line.pad_end}", _CUT, lower)
        return y + _GAP + 0.6

    def _output(self, pen: _Pen, y: float) -> None:
        line = self.line
        detail = f"Y = {line.output}"
        if line.pad_begin < 0 or line.pad_end < 0:
            detail += f", pads {line.pad_begin} and {line.pad_end}: zeros are added"
        self.label(pen, y, "output", detail)
        for i in range(line.output):
            t = line.pad_begin + i
            pen.striped(t, y, line.sources(t) if 0 <= t < line.natural else [])
            pen.word(t + 0.5, y + 1.35, f"y{i}", size=7.5, colour="#666666")


class _Plane:
    """The picture of two axes: the positions of the natural output, seen from above."""

    margin = 3.2

    def __init__(self, rows: Line, columns: Line) -> None:
        self.rows = rows
        self.columns = columns
        self.width = self.margin + (columns.stop - columns.first) + 11.5
        self.height = max(self.margin + (rows.stop - rows.first) + 1.6, 12.3)
        self.left = columns.first - self.margin
        self.top = rows.first - self.margin

    def draw(self, pen: _Pen) -> None:
        """Draw sums, then cropped and added positions, then data, filter and output over them."""
        rows, columns = self.rows, self.columns
        self._sums(pen)
        self._cut(pen)
        for k in range(rows.kernel):
            for m in range(columns.kernel):
                place = (columns.dilation * m + 0.1, rows.dilation * k + 0.1)
                pen.cell(*place, "none", _COLOURS[6], w=0.8, h=0.8, linewidth=1.8)
        for i in range(rows.data):
            for j in range(columns.data):
                pen.dot(columns.stride * j, rows.stride * i)
        pen.cell(
            columns.pad_begin,
            rows.pad_begin,
            "none",
            _INK,
            w=columns.output,
            h=rows.output,
            linewidth=2.4,
        )
        self._numbers(pen)
        self._legend(pen)

    def _sums(self, pen: _Pen) -> None:
        rows, columns = self.rows, self.columns
        across = [len(columns.sources(t)) for t in range(columns.natural)]
        for y in range(rows.first, rows.stop):
            down = len(rows.sources(y)) if 0 <= y < rows.natural else 0
            for x in range(columns.first, columns.stop):
                count = down * across[x] if 0 <= x < columns.natural else 0
                if count:
                    pen.cell(x, y, _shade(count), "white")
                elif 0 <= y < rows.natural and 0 <= x < columns.natural:
                    pen.cell(x, y, _ZERO, "white")
                elif 0 <= y < rows.extended and 0 <= x < columns.extended:
                    pen.cell(x, y, _EXTRA, "white")
                elif rows.is_kept(y) and columns.is_kept(x):
                    pen.cell(x, y, _ZERO, "white")

    def _cut(self, pen: _Pen) -> None:
        for y in range(self.rows.extended):
            for x in range(self.columns.extended):
                if not (self.rows.is_kept(y) and self.columns.is_kept(x)):
                    pen.hatch(x, y)

    def _numbers(self, pen: _Pen) -> None:
        rows, columns = self.rows, self.columns
        for i in range(columns.output):
            pen.word(
                columns.pad_begin + i + 0.5, rows.first - 0.5, str(i), size=7.5, colour="#666666"
            )
        for i in range(rows.output):
            pen.word(
                columns.first - 0.5, rows.pad_begin + i + 0.5, str(i), size=7.5, colour="#666666"
            )
        middle = columns.pad_begin + columns.output / 2
        pen.word(middle, rows.first - 1.5, "output, axis 1", size=8)
        middle = rows.pad_begin + rows.output / 2
        pen.word(columns.first - 1.5, middle, "output, axis 0", size=8, turned=True)

    def _legend(self, pen: _Pen) -> None:
        x = self.columns.stop + 1.2
        y = self.rows.first + 0.1
        rows, columns = self.rows, self.columns

        def entry(text: str, detail: str = "") -> None:
            nonlocal y
            pen.word(x + 1.5, y + 0.5, text, anchor="start")
            if detail:
                pen.word(x + 1.5, y + 1.15, detail, anchor="start", size=7.5, colour="#666666")
            y += 1.9 if detail else 1.4

        pen.dot(x, y)
        entry(
            "data",
            f"{rows.data}\N{MULTIPLICATION SIGN}{columns.data}, "
            f"strides {rows.stride},{columns.stride}",
        )
        pen.cell(x + 0.1, y + 0.1, "none", _COLOURS[6], w=0.8, h=0.8, linewidth=1.8)
        entry(
            "filter, at the first data element",
            f"{rows.kernel}\N{MULTIPLICATION SIGN}{columns.kernel}, "
            f"dilations {rows.dilation},{columns.dilation}",
        )
        for i, count in enumerate((1, 2, 4)):
            pen.cell(x + i / 3, y, _shade(count), "none", w=1 / 3)
        entry("sums: darker, more products")
        if rows.output_padding or columns.output_padding:
            pen.cell(x, y, _EXTRA, "white")
            entry(f"output_padding {rows.output_padding},{columns.output_padding}")
        begins = f"{rows.pad_begin},{columns.pad_begin}"
        ends = f"{rows.pad_end},{columns.pad_end}"
        if max(rows.pad_begin, rows.pad_end, columns.pad_begin, columns.pad_end) > 0:
            pen.hatch(x, y)
            entry("cut by pads", f"begin {begins}, end {ends}")
        pen.cell(x + 0.1, y + 0.1, "none", _INK, w=0.8, h=0.8, linewidth=2.4)
        entry("output", f"{rows.output}\N{MULTIPLICATION SIGN}{columns.output}")


def _shade(count: int) -> str:
    """Blue, darker for more products."""
    share = min(1.0, 0.18 + 0.16 * (count - 1))
    light, dark = (214, 232, 245), (0, 95, 160)
    mixed = (round(a + (b - a) * share) for a, b in zip(light, dark, strict=True))
    return "#" + "".join(f"{c:02X}" for c in mixed)
