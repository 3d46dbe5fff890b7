"""Places for the texts of tensors: beside a line, where they cover no box and no other line.

The page places them by the same rules, in `page/assets/labels.js`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deconv_ir.drawing.graph.placing import Drawing, LineSegment, PlacedBox
from deconv_ir.drawing.pen import HEAD, SMALL, Point, on_curve

RISE, FALL = 8.0, 2.0
"""Height of a label above and below its base line."""
BESIDE, BELOW, ABOVE = 6.0, 13.0, 9.0
"""Distances of a label from its line, and of its base line from the ends of the line."""
CELL = 16.0
STEP = 4.0
"""Distance of the points that stand for a line or a border."""


class Label(NamedTuple):
    """The text of a tensor; `x` is its left end, `y` its base line."""

    tensor: int
    x: float
    y: float
    width: float


class _Taken:
    """Points of the drawing that labels should not cover."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], list[tuple[float, float]]] = {}

    def add(self, x: float, y: float) -> None:
        self.cells.setdefault((int(x // CELL), int(y // CELL)), []).append((x, y))

    def count(self, x1: float, y1: float, x2: float, y2: float) -> int:
        """Count the points in a rectangle."""
        found = 0
        for cx in range(int(x1 // CELL), int(x2 // CELL) + 1):
            for cy in range(int(y1 // CELL), int(y2 // CELL) + 1):
                for x, y in self.cells.get((cx, cy), ()):
                    found += x1 <= x <= x2 and y1 <= y <= y2
        return found


def place_labels(
    drawing: Drawing,
    texts: Mapping[int, str],
    outputs: Mapping[int, int],
    titles: Mapping[int, str],
) -> list[Label]:
    """Place the texts of the tensors that leave a closed box.

    Parameters
    ----------
    drawing : Drawing
    texts : mapping
        Text of each tensor.
    outputs : mapping
        Number of tensors of the layer that each tensor comes from. Where several leave a box at one
        point, only the other ends of their lines tell them apart.
    titles : mapping
        Titles of the open groups.
    """
    taken = _Taken()
    for p in drawing.places:
        for x, y in _border(p, titles.get(p.box, "")):
            taken.add(x, y)
    for line in drawing.lines:
        for x, y in points_of(line):
            taken.add(x, y)
    starts = {(p.x + p.width / 2, p.y + p.height) for p in drawing.places if not p.open}
    leaving: dict[tuple[int, float, float], list[LineSegment]] = {}
    for line in drawing.lines:
        if (line.x1, line.y1) in starts and line.tensor in texts:
            leaving.setdefault((line.tensor, line.x1, line.y1), []).append(line)
    found = []
    for (tensor, _, _), lines in leaving.items():
        width = SMALL.width(texts[tensor])
        best, least = (0.0, 0.0), -1
        for x, y in _candidates(lines, width, outputs.get(tensor, 1) > 1):
            covered = taken.count(x - 1, y - RISE, x + width + 1, y + FALL)
            if least < 0 or covered < least:
                best, least = (x, y), covered
            if not covered:
                break
        x, y = best
        found.append(Label(tensor, x, y, width))
        at = x
        while at <= x + width:
            taken.add(at, y)
            taken.add(at, y - RISE / 2)
            at += STEP
    return found


def _candidates(lines: Sequence[LineSegment], width: float, several: bool) -> Iterator[Point]:
    """Iterate over left ends and base lines: right and left of the start, then of each end."""
    first = lines[0]
    if not several:
        yield first.x1 + BESIDE, first.y1 + BELOW
        yield first.x1 - BESIDE - width, first.y1 + BELOW
    for line in lines:
        yield line.x2 + BESIDE, line.y2 - ABOVE
        yield line.x2 - BESIDE - width, line.y2 - ABOVE


def points_of(line: LineSegment) -> Iterator[Point]:
    """Iterate over points of a line."""
    _, x1, y1, x2, y2, _ = line
    count = int(max(abs(x2 - x1), y2 - y1) // STEP) + 1
    for k in range(count + 1):
        yield on_curve(x1, y1, x2, y2, k / count)


def _border(place: PlacedBox, title: str) -> Iterator[Point]:
    """Iterate over points of a closed box's border, or of the title of an open group."""
    x, y, width, height = place.x, place.y, place.width, place.height
    if place.open:
        for k in range(int(HEAD.width(title) // STEP) + 1):
            yield x + 10 + k * STEP, y + 13
        return
    for k in range(int(width // STEP) + 1):
        yield x + k * STEP, y
        yield x + k * STEP, y + height
    for k in range(int(height // STEP) + 1):
        yield x, y + k * STEP
        yield x + width, y + k * STEP
