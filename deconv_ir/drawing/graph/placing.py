"""Coordinates of boxes and lines, given the open groups.

The page places boxes by the same rules, in `page/assets/place.js`, as groups are opened and closed.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from deconv_ir.drawing.graph.layering import Level, Scene

GAP = 26.0
"""Gap between two boxes of a row, and beside a tensor that crosses the row."""
PASS_GAP = 14.0
PASS_WIDTH = 8.0
ROW_GAP = 40.0
MARGIN = 18.0
"""Gap between a group's border and its contents."""
HEAD = 26.0
"""Room for the name of an open group."""
SWEEPS = 6

DRAWN_AT_FIRST = 90
"""Maximum number of boxes with which groups are open initially."""


class PlacedBox(NamedTuple):
    """A box on the drawing, in pixels; x and y are those of its upper left corner."""

    box: int
    x: float
    y: float
    width: float
    height: float
    open: bool


class LineSegment(NamedTuple):
    """A piece of a tensor's line, which points down."""

    tensor: int
    x1: float
    y1: float
    x2: float
    y2: float
    arrow: bool


class Drawing(NamedTuple):
    """The visible parts: boxes, each after the groups around it, and lines."""

    width: float
    height: float
    places: list[PlacedBox]
    lines: list[LineSegment]


class _Inside(NamedTuple):
    """The layout of one open group, relative to its upper left corner."""

    width: float
    height: float
    centres: list[float]  # of each entry
    tops: list[float]
    bottoms: list[float]
    ports: dict[int, float]  # -1 - tensor for one that comes in, tensor for one that goes out


def first_open(scene: Scene, limit: int = DRAWN_AT_FIRST) -> set[int]:
    """Choose the groups to open initially: small ones, as long as the drawing is not large."""
    chosen: set[int] = set()
    visible = 1
    frontier = [(len(scene.levels[0].boxes), 0)]
    while frontier:
        count, number = heapq.heappop(frontier)
        if number and visible + count > limit:
            break
        chosen.add(number)
        visible += count
        for box in scene.levels[number].boxes:
            if box in scene.levels and scene.boxes[box].count == 1:
                heapq.heappush(frontier, (len(scene.levels[box].boxes), box))
    return chosen


def place(scene: Scene, sizes: Sequence[tuple[float, float]], opened: Collection[int]) -> Drawing:
    """Compute all coordinates.

    `sizes` are width and height of each box while it is closed, `opened` the numbers of the open
    groups; the outermost box is always open.
    """
    inside: dict[int, _Inside] = {}
    for number in sorted({0, *opened}, reverse=True):
        inside[number] = _measure(scene.levels[number], sizes, inside)
    places: list[PlacedBox] = []
    lines: list[LineSegment] = []
    stack = [(0, 0.0, 0.0)]
    while stack:
        number, x, y = stack.pop()
        layout, level = inside[number], scene.levels[number]
        if number:
            places.append(PlacedBox(number, x, y, layout.width, layout.height, True))
        for k, box in enumerate(level.boxes):
            height = layout.bottoms[k] - layout.tops[k]
            width = inside[box].width if box in inside else sizes[box][0]
            left, top = x + layout.centres[k] - width / 2, y + layout.tops[k]
            if box in inside:
                stack.append((box, left, top))
            else:
                places.append(PlacedBox(box, left, top, width, height, False))
        lines += _lines(level, layout, inside, x, y)
    return Drawing(inside[0].width, inside[0].height, places, lines)


def _offset(level: Level, inside: Mapping[int, _Inside], entry: int, port: int) -> float:
    """Return the point at which a tensor enters or leaves an entry, relative to its centre."""
    if entry >= len(level.boxes) or level.boxes[entry] not in inside:
        return 0.0
    layout = inside[level.boxes[entry]]
    return layout.ports[port] - layout.width / 2


def _lines(
    level: Level, layout: _Inside, inside: Mapping[int, _Inside], x: float, y: float
) -> list[LineSegment]:
    found = []
    fixed = len(level.boxes) + len(level.inputs) + len(level.outputs)
    for tensor, a, b in level.links:
        x1 = x + layout.centres[a] + _offset(level, inside, a, tensor)
        x2 = x + layout.centres[b] + _offset(level, inside, b, -1 - tensor)
        top, bottom = layout.tops[b], layout.bottoms[b]
        arrow = b < len(level.boxes) and level.boxes[b] not in inside
        found.append(LineSegment(tensor, x1, y + layout.bottoms[a], x2, y + top, arrow))
        if b >= fixed and bottom > top:
            found.append(LineSegment(tensor, x2, y + top, x2, y + bottom, False))
    return found


def _measure(
    level: Level, sizes: Sequence[tuple[float, float]], inside: Mapping[int, _Inside]
) -> _Inside:
    """Lay out one group whose inner groups are measured."""
    count = 1 + max((max(row) for row in level.rows if row), default=-1)
    width, height = [PASS_WIDTH] * count, [0.0] * count
    for k, box in enumerate(level.boxes):
        layout = inside.get(box)
        width[k], height[k] = (layout.width, layout.height) if layout else sizes[box]
    centres = _centres(level, width, inside)
    left = min((centres[e] - width[e] / 2 for e in range(count)), default=0.0)
    right = max((centres[e] + width[e] / 2 for e in range(count)), default=0.0)
    centres = [c - left + MARGIN for c in centres]
    fixed = len(level.boxes) + len(level.inputs) + len(level.outputs)
    tops, bottoms = [0.0] * count, [0.0] * count
    # Incoming and outgoing tensors are on the border.
    y = HEAD
    for r, row in enumerate(level.rows):
        if level.inputs and r == 0:
            y += ROW_GAP / 4
            continue
        if level.outputs and r + 1 == len(level.rows):
            break
        tall = max(height[e] for e in row)
        for e in row:
            room = tall if e >= fixed else height[e]
            tops[e] = y + (tall - room) / 2
            bottoms[e] = tops[e] + room
        y += tall + ROW_GAP
    total = max(HEAD, y - ROW_GAP + MARGIN)
    ports = {}
    for k, tensor in enumerate(level.inputs):
        ports[-1 - tensor] = centres[len(level.boxes) + k]
    for k, tensor in enumerate(level.outputs):
        e = len(level.boxes) + len(level.inputs) + k
        ports[tensor] = centres[e]
        tops[e] = bottoms[e] = total
    return _Inside(right - left + 2 * MARGIN, total, centres, tops, bottoms, ports)


def _centres(level: Level, width: Sequence[float], inside: Mapping[int, _Inside]) -> list[float]:
    """Move the entries of each row towards their neighbours, as far as their order allows."""
    above: list[list[tuple[int, float]]] = [[] for _ in width]
    below: list[list[tuple[int, float]]] = [[] for _ in width]
    for tensor, a, b in level.links:
        shift = _offset(level, inside, a, tensor) - _offset(level, inside, b, -1 - tensor)
        above[b].append((a, shift))
        below[a].append((b, -shift))
    centres = [0.0] * len(width)
    apart: list[list[float]] = []  # from the first entry of the row
    for row in level.rows:
        at = 0.0
        steps = [0.0]
        for e, f in pairwise(row):
            boxes = e < len(level.boxes) and f < len(level.boxes)
            at += (width[e] + width[f]) / 2 + (GAP if boxes else PASS_GAP)
            steps.append(at)
        apart.append(steps)
        for e, step in zip(row, steps, strict=False):
            centres[e] = step - at / 2
    for sweep in range(SWEEPS):
        near = below if sweep % 2 else above
        turn = range(len(level.rows))
        for r in reversed(turn) if sweep % 2 else turn:
            row = level.rows[r]
            wanted = []
            for e, step in zip(row, apart[r], strict=False):
                found = near[e]
                mean = sum(centres[f] + shift for f, shift in found) / len(found) if found else 0
                wanted.append((mean if found else centres[e]) - step)
            for e, step, x in zip(row, apart[r], _monotone(wanted), strict=False):
                centres[e] = x + step
    return centres


def _monotone(wanted: Sequence[float]) -> list[float]:
    """Return the nearest increasing sequence, by pooling adjacent violators."""
    sums: list[float] = []
    counts: list[int] = []
    for value in wanted:
        sums.append(value)
        counts.append(1)
        while len(sums) > 1 and sums[-2] * counts[-1] > sums[-1] * counts[-2]:
            value, count = sums.pop(), counts.pop()
            sums[-1] += value
            counts[-1] += count
    return [total / count for total, count in zip(sums, counts, strict=True) for _ in range(count)]
