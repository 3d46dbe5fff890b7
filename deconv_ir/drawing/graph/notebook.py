"""The small picture of a model that notebooks show."""

from __future__ import annotations

from deconv_ir.drawing.graph.sketch import draw, sketch_of
from deconv_ir.drawing.svg import clean, write_svg
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context

BOX = "max-height:480px;overflow:auto"
OPEN = 24
DRAWN = 150
"""Maximum number of boxes for open groups, and for a picture."""


def notebook_html(graph: Graph, context: Context, text: str) -> str:
    """Return HTML with `text` and a drawing of a graph; for a large graph, only the text."""
    head = f"<code>{clean(text)}</code>"
    if not graph.layers:
        return head
    picture = small_svg(graph, context)
    if picture is None:
        return f"{head}<p>{len(graph.layers)} layers: <code>deconv-show</code> draws them.</p>"
    return f'{head}<div style="{BOX}">{picture}</div>'


def small_svg(graph: Graph, context: Context) -> str | None:
    """Draw a graph as an SVG document; None if it is large."""
    sketch = sketch_of(graph, infer(graph, context, collect=True).outputs, context)
    drawn = draw(sketch, open_limit=OPEN, drawn_limit=DRAWN)
    return None if drawn is None else write_svg(drawn)
