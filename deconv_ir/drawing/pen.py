"""A drawing as a list of strokes, which SVG and PNG render alike."""

from __future__ import annotations

from typing import NamedTuple


class Rect(NamedTuple):
    """A rectangle with round corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    border: str
    thick: float = 1.2


class Curve(NamedTuple):
    """A line with vertical ends."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    arrow: bool


class Word(NamedTuple):
    """A text; `x` is its middle, `y` its base line."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    bold: bool = False
    anchor: str = "middle"


Stroke = Rect | Curve | Word


def moved(stroke: Stroke, right: float) -> Stroke:
    """Return a stroke that is moved to the right."""
    if isinstance(stroke, Curve):
        return stroke._replace(x1=stroke.x1 + right, x2=stroke.x2 + right)
    return stroke._replace(x=stroke.x + right)
