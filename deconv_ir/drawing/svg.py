"""Pictures as SVG documents."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from deconv_ir.drawing.palette import PAPER
from deconv_ir.drawing.pen import Curve, Dot, Lines, Picture, Rect, Stroke, Word

FONTS = "Segoe UI, Helvetica, Arial, DejaVu Sans, sans-serif"
# Characters that XML does not allow; JSON's escapes can put them into names.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Replace characters that XML does not allow, and escape markup."""
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))


def write_svg(picture: Picture) -> str:
    """Write a picture as an SVG document, the same on every run."""
    width, height = f"{picture.width:.0f}", f"{picture.height:.0f}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family={quoteattr(FONTS)}>',
        f"<title>{clean(picture.title)}</title>",
        '<defs><marker id="deconv-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0.5 8 4 0 7.5z" fill="context-stroke"/>'
        "</marker></defs>",
        f'<rect width="100%" height="100%" fill="{PAPER[0]}"/>',
        *map(_element, picture.strokes),
        "</svg>\n",
    ]
    return "\n".join(lines)


def _element(stroke: Stroke) -> str:
    match stroke:
        case Rect(x, y, width, height, fill, border, thick, corner, dashed):
            corners = f' rx="{corner:g}"' if corner else ""
            edge = f' stroke="{border}" stroke-width="{thick:g}"' if border else ""
            dashes = ' stroke-dasharray="2 1.6"' if dashed else ""
            return (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{corners} '
                f'fill="{fill or "none"}"{edge}{dashes}/>'
            )
        case Curve(x1, y1, x2, y2, colour, arrow):
            bend = (y2 - y1) / 2
            end = ' marker-end="url(#deconv-arrow)"' if arrow else ""
            return (
                f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} '
                f'{x2:.1f} {y2:.1f}" fill="none" stroke="{colour}" stroke-width="1.3"{end}/>'
            )
        case Lines(paths, colour, thick):
            data = "".join("M" + " ".join(f"{x:.1f} {y:.1f}" for x, y in path) for path in paths)
            return f'<path d="{data}" fill="none" stroke="{colour}" stroke-width="{thick:g}"/>'
        case Dot(x, y, radius, colour):
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"/>'
        case Word(x, y, text, style, colour, anchor, halo, turned):
            more = ' font-weight="600"' if style.bold else ""
            if halo:
                more += f' stroke="{PAPER[0]}" stroke-width="3" paint-order="stroke"'
            if turned:
                more += f' transform="rotate(-90 {x:.1f} {y:.1f})"'
            return (
                f'<text x="{x:.1f}" y="{y:.1f}" font-size="{style.size:g}" text-anchor="{anchor}" '
                f'fill="{colour}"{more}>{clean(text)}</text>'
            )
