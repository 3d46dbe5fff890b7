"""Strokes as an SVG document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from deconv_ir.drawing.palette import PAPER
from deconv_ir.drawing.pen import Curve, Rect, Stroke, Word

FONTS = "Segoe UI, Helvetica, Arial, DejaVu Sans, sans-serif"
# Characters that XML does not allow; JSON's escapes can put them into names.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Replace characters that XML does not allow, and escape markup."""
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))


def write_svg(title: str, width: float, height: float, strokes: Iterable[Stroke]) -> str:
    """Write an SVG document."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family={quoteattr(FONTS)}>',
        f"<title>{clean(title)}</title>",
        '<defs><marker id="deconv-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0.5 8 4 0 7.5z" fill="context-stroke"/>'
        "</marker></defs>",
        f'<rect width="100%" height="100%" fill="{PAPER[0]}"/>',
        *map(_element, strokes),
        "</svg>\n",
    ]
    return "\n".join(lines)


def _element(stroke: Stroke) -> str:
    match stroke:
        case Rect(x, y, width, height, fill, border, thick):
            return (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5" '
                f'fill="{fill}" stroke="{border}" stroke-width="{thick:g}"/>'
            )
        case Curve(x1, y1, x2, y2, colour, arrow):
            bend = (y2 - y1) / 2
            end = ' marker-end="url(#deconv-arrow)"' if arrow else ""
            return (
                f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} '
                f'{x2:.1f} {y2:.1f}" fill="none" stroke="{colour}" stroke-width="1.3"{end}/>'
            )
        case Word(x, y, text, size, colour, bold, anchor):
            weight = ' font-weight="600"' if bold else ""
            if anchor == "start" and not bold:  # beside a line, and perhaps over another
                weight = f' stroke="{PAPER[0]}" stroke-width="3" paint-order="stroke"'
            return (
                f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" '
                f'fill="{colour}"{weight}>{clean(text)}</text>'
            )
