"""Strokes as a PNG image, by Pillow, with the font of matplotlib: the extra ``diagrams``."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from deconv_ir.drawing.palette import PAPER
from deconv_ir.drawing.pen import Curve, Rect, Stroke, Word
from deconv_ir.errors import ResourceError, UnsupportedError
from deconv_ir.hints import Hint

SCALE = 2
"""Pixels per unit of the drawing."""
MAX_PIXELS = 120_000_000
_PIECES = 24
"""Number of straight pieces of a curve."""


def write_png(width: float, height: float, strokes: Iterable[Stroke]) -> bytes:
    """Draw strokes as a PNG file.

    Raises
    ------
    UnsupportedError
        Pillow or matplotlib is not installed.
    ResourceError
        The image would be too large.
    """
    try:
        from matplotlib import font_manager
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise UnsupportedError(
            f"PNG needs {error.name}, which is not installed",
            hint=Hint.INSTALL_EXTRA("diagrams"),
        ) from error
    size = (round(width * SCALE), round(height * SCALE))
    if size[0] * size[1] > MAX_PIXELS:
        raise ResourceError(
            f"the image would have {size[0]} x {size[1]} pixels", hint=Hint.SVG_HAS_NO_LIMIT()
        )
    image = Image.new("RGB", size, PAPER[0])
    pen = _Pen(ImageDraw.Draw(image), font_manager)
    for stroke in strokes:
        pen.draw(stroke)
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


class _Pen:
    def __init__(self, image: Any, fonts: Any) -> None:
        self.image = image
        self.fonts = fonts
        self.known: dict[tuple[float, bool], Any] = {}

    def font(self, size: float, bold: bool) -> Any:
        """Return a font of matplotlib, which is the same on every machine."""
        from PIL import ImageFont

        if (size, bold) not in self.known:
            wanted = self.fonts.FontProperties(
                family="DejaVu Sans", weight="bold" if bold else "normal"
            )
            path = self.fonts.findfont(wanted)
            # The font is wider than that of browsers.
            self.known[size, bold] = ImageFont.truetype(path, round(0.88 * size * SCALE))
        return self.known[size, bold]

    def draw(self, stroke: Stroke) -> None:
        match stroke:
            case Rect(x, y, width, height, fill, border, thick):
                corners = [v * SCALE for v in (x, y, x + width, y + height)]
                self.image.rounded_rectangle(
                    corners, 5 * SCALE, fill, border, max(1, round(thick * SCALE))
                )
            case Curve(_, _, x2, y2, colour, arrow):
                pieces = 1 if stroke.x1 == x2 else _PIECES
                points = [_at(stroke, k / pieces) for k in range(pieces + 1)]
                self.image.line(points, colour, round(1.3 * SCALE))
                if arrow:
                    x, y = x2 * SCALE, y2 * SCALE
                    tip = [
                        (x, y),
                        (x - 3.5 * SCALE, y - 7 * SCALE),
                        (x + 3.5 * SCALE, y - 7 * SCALE),
                    ]
                    self.image.polygon(tip, colour)
            case Word(x, y, text, size, colour, bold, anchor):
                self.image.text(
                    (x * SCALE, y * SCALE),
                    text.replace("\n", " "),
                    colour,
                    self.font(size, bold),
                    "ms" if anchor == "middle" else "ls",
                    stroke_width=SCALE if anchor == "start" and not bold else 0,
                    stroke_fill=PAPER[0],
                )


def _at(curve: Curve, t: float) -> tuple[float, float]:
    """Return a point of a cubic curve with vertical ends."""
    middle = (curve.y1 + curve.y2) / 2
    s = 1 - t
    x = (s**3 + 3 * s * s * t) * curve.x1 + (3 * s * t * t + t**3) * curve.x2
    y = s**3 * curve.y1 + (3 * s * s * t + 3 * s * t * t) * middle + t**3 * curve.y2
    return x * SCALE, y * SCALE
