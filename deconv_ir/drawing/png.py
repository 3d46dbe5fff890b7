"""Pictures as PNG images, by Pillow with the font of matplotlib; and arrays of palette entries."""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from deconv_ir.drawing.palette import PAPER
from deconv_ir.drawing.pen import (
    Curve,
    Dot,
    Lines,
    Picture,
    Point,
    Rect,
    Stroke,
    Style,
    Word,
    on_curve,
)
from deconv_ir.errors import ResourceError, UnsupportedError
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import Array

SCALE = 2
"""Pixels per unit of the drawing."""
MAX_PIXELS = 120_000_000
_PIECES = 24
"""Number of straight pieces of a curve."""
_DASH, _SPACE = 2.0, 1.6
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def write_png(picture: Picture) -> bytes:
    """Write a picture as a PNG file.

    Raises
    ------
    UnsupportedError
        Pillow or matplotlib, of the extra ``diagrams``, is not installed.
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
    size = (round(picture.width * SCALE), round(picture.height * SCALE))
    if size[0] * size[1] > MAX_PIXELS:
        raise ResourceError(
            f"the image would have {size[0]} x {size[1]} pixels", hint=Hint.SVG_HAS_NO_LIMIT()
        )
    image = Image.new("RGB", size, PAPER[0])
    canvas = _Canvas(ImageDraw.Draw(image), font_manager)
    for stroke in picture.strokes:
        canvas.draw(stroke)
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


class _Canvas:
    def __init__(self, image: Any, fonts: Any) -> None:
        self.image = image
        self.fonts = fonts
        self.known: dict[Style, Any] = {}

    def font(self, style: Style) -> Any:
        """Return a font of matplotlib, which is the same on every machine."""
        from PIL import ImageFont

        if style not in self.known:
            wanted = self.fonts.FontProperties(
                family="DejaVu Sans", weight="bold" if style.bold else "normal"
            )
            path = self.fonts.findfont(wanted)
            # The font is wider than that of browsers.
            self.known[style] = ImageFont.truetype(path, round(0.88 * style.size * SCALE))
        return self.known[style]

    def draw(self, stroke: Stroke) -> None:
        match stroke:
            case Rect():
                self._rectangle(stroke)
            case Curve(x1, y1, x2, y2, colour, arrow):
                pieces = 1 if x1 == x2 else _PIECES
                self._line(
                    [on_curve(x1, y1, x2, y2, k / pieces) for k in range(pieces + 1)], colour, 1.3
                )
                if arrow:
                    tip = [(x2, y2), (x2 - 3.5, y2 - 7), (x2 + 3.5, y2 - 7)]
                    self.image.polygon(_scaled(tip), colour)
            case Lines(paths, colour, thick):
                for path in paths:
                    self._line(path, colour, thick)
            case Dot(x, y, radius, colour):
                self.image.circle((x * SCALE, y * SCALE), radius * SCALE, colour)
            case Word():
                self._word(stroke)

    def _line(self, points: Sequence[Point], colour: str, thick: float) -> None:
        self.image.line(_scaled(points), colour, max(1, round(thick * SCALE)))

    def _rectangle(self, rect: Rect) -> None:
        x, y, width, height, fill, border, thick, corner, dashed = rect
        corners = [v * SCALE for v in (x, y, x + width, y + height)]
        edge = None if dashed else border
        self.image.rounded_rectangle(
            corners, corner * SCALE, fill, edge, max(1, round(thick * SCALE)) if edge else 0
        )
        if dashed and border:
            for start, stop in (
                ((x, y), (x + width, y)),
                ((x + width, y), (x + width, y + height)),
                ((x + width, y + height), (x, y + height)),
                ((x, y + height), (x, y)),
            ):
                for dash in _dashes(start, stop):
                    self._line(dash, border, thick)

    def _word(self, word: Word) -> None:
        font, text = self.font(word.style), word.text.replace("\n", " ")
        place, anchor = (word.x * SCALE, word.y * SCALE), _ANCHORS[word.anchor]
        if not word.turned:
            self.image.text(
                place,
                text,
                word.colour,
                font,
                anchor,
                stroke_width=SCALE if word.halo else 0,
                stroke_fill=PAPER[0],
            )
            return
        from PIL import Image, ImageDraw

        # The text as a mask whose middle is the anchor, which a quarter turn keeps there.
        left, top, right, bottom = font.getbbox(text, anchor=anchor)
        half = math.ceil(max(-left, -top, right, bottom)) + 1
        mask = Image.new("L", (2 * half, 2 * half))
        ImageDraw.Draw(mask).text((half, half), text, 255, font, anchor)
        corner = (round(place[0]) - half, round(place[1]) - half)
        self.image.bitmap(corner, mask.transpose(Image.Transpose.ROTATE_90), word.colour)


def _scaled(points: Sequence[Point]) -> list[Point]:
    return [(x * SCALE, y * SCALE) for x, y in points]


def _dashes(start: Point, stop: Point) -> Iterator[list[Point]]:
    """Iterate over the dashes of a straight line."""
    (x1, y1), (x2, y2) = start, stop
    length = math.hypot(x2 - x1, y2 - y1)
    at = 0.0
    while at < length:
        ends = (at / length, min(at + _DASH, length) / length)
        yield [(x1 + t * (x2 - x1), y1 + t * (y2 - y1)) for t in ends]
        at += _DASH + _SPACE


def indexed_png(indices: Array, palette: Sequence[tuple[int, int, int]]) -> bytes:
    """Write palette entries, uint8 of shape [height, width], as a PNG file.

    Source: W3C, Portable Network Graphics Specification, sections 5 and 11.
    """
    height, width = indices.shape
    rows = b"".join(b"\0" + row.tobytes() for row in indices)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(value for colour in palette for value in colour)),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data))
        + chunk_type
        + data
        + struct.pack(">I", zlib.crc32(chunk_type + data))
        for chunk_type, data in parts
    )
