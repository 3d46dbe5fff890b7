"""The pen: a picture is a list of strokes, which `svg` and `png` write alike.

Lengths are in pixels of a browser; x points to the right, y down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Point = tuple[float, float]


class Style(NamedTuple):
    """A style of text: the size of its font, and the mean width of a character."""

    size: float
    letter: float
    bold: bool = False

    def width(self, text: str) -> float:
        """Return the width of a text, nearly: fonts differ between machines."""
        return self.letter * len(text)


TITLE = Style(12, 7.3, bold=True)
HEAD = Style(11, 6.6, bold=True)
BODY = Style(12, 7.0)
TEXT = Style(10.5, 6.1)
SMALL = Style(9.5, 5.6)


class Rect(NamedTuple):
    """A rectangle, with round corners by default; `fill` and `border` may be absent."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None
    border: str | None
    thick: float = 1.2
    corner: float = 5
    dashed: bool = False


class Curve(NamedTuple):
    """A line with vertical ends."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    arrow: bool


class Lines(NamedTuple):
    """Straight lines of one colour, each from point to point."""

    paths: Sequence[Sequence[Point]]
    colour: str
    thick: float


class Dot(NamedTuple):
    """A filled circle; `x` and `y` are its middle."""

    x: float
    y: float
    radius: float
    colour: str


_BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}
"""The share of a text that is before its anchor."""


class Word(NamedTuple):
    """A text: `x` is its middle, or the end that `anchor` names, and `y` its base line.

    A `halo` hides lines behind the text; a `turned` text runs upwards.
    """

    x: float
    y: float
    text: str
    style: Style
    colour: str
    anchor: str = "middle"
    halo: bool = False
    turned: bool = False

    @property
    def left(self) -> float:
        """The left end, nearly, of a text that is not turned."""
        return self.x - _BEFORE[self.anchor] * self.style.width(self.text)

    @property
    def right(self) -> float:
        """The right end, nearly."""
        return self.left + self.style.width(self.text)


Stroke = Rect | Curve | Lines | Dot | Word


class Picture(NamedTuple):
    """A picture; later strokes cover earlier ones."""

    title: str
    width: float
    height: float
    strokes: Sequence[Stroke]


def framed(
    title: str, width: float, height: float, strokes: Sequence[Stroke], edge: float = 0.0
) -> Picture:
    """Return a picture that is made wider for words which begin left of it or end right of it.

    `edge` is added on the right.
    """
    words = [s for s in strokes if isinstance(s, Word) and not s.turned]
    left = min((word.left for word in words), default=0.0)
    right = max((word.right for word in words), default=0.0)
    if left < 0:
        strokes = [moved(stroke, -left) for stroke in strokes]
    return Picture(title, max(width, right) - min(left, 0.0) + edge, height, strokes)


def moved(stroke: Stroke, right: float) -> Stroke:
    """Return a stroke that is moved to the right."""
    match stroke:
        case Curve():
            return stroke._replace(x1=stroke.x1 + right, x2=stroke.x2 + right)
        case Lines():
            return stroke._replace(paths=[[(x + right, y) for x, y in p] for p in stroke.paths])
        case _:
            return stroke._replace(x=stroke.x + right)


def on_curve(x1: float, y1: float, x2: float, y2: float, t: float) -> Point:
    """Return a point of a curve: a cubic one whose inner control points are halfway down."""
    s = 1 - t
    first, second = s * s * t * 3, s * t * t * 3
    return (
        (s**3 + first) * x1 + (second + t**3) * x2,
        s**3 * y1 + (first + second) * (y1 + y2) / 2 + t**3 * y2,
    )
