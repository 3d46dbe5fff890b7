"""The strokes of a graph: open groups, lines, labels, closed boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from deconv_ir.drawing.graph.blocks import DrawnBox
from deconv_ir.drawing.graph.captions import Caption
from deconv_ir.drawing.graph.labels import place_labels
from deconv_ir.drawing.graph.layering import Scene
from deconv_ir.drawing.graph.placing import Drawing, PlacedBox
from deconv_ir.drawing.palette import FAINT, FAMILIES, INK, LINE
from deconv_ir.drawing.pen import HEAD, SMALL, TEXT, TITLE, Curve, Rect, Stroke, Word

EDGE = 12.0
"""Margin around the whole drawing."""


def strokes(
    drawing: Drawing,
    scene: Scene,
    captions: Sequence[Caption],
    tensors: Mapping[tuple[int, int], str],
    marked: Mapping[int, str],
) -> Iterator[Stroke]:
    """Iterate over all strokes, the lower ones first.

    `tensors` has shapes and types; `marked` has the border colours of layers with findings.
    """
    opened = [p for p in drawing.places if p.open]
    for place in opened:
        yield from _open(place, captions[place.box], scene.boxes[place.box])
    for line in drawing.lines:
        x1, y1, x2, y2 = (v + EDGE for v in line[1:5])
        yield Curve(x1, y1, x2, y2, LINE[0], line.arrow)
    outputs = Counter(layer for layer, _ in scene.tensors)
    texts = {k: tensors[source] for k, source in enumerate(scene.tensors) if source in tensors}
    several = {k: outputs[layer] for k, (layer, _) in enumerate(scene.tensors)}
    titles = {p.box: _head(captions[p.box], scene.boxes[p.box]) for p in opened}
    for label in place_labels(drawing, texts, several, titles):
        text = texts[label.tensor]
        yield Word(label.x + EDGE, label.y + EDGE, text, SMALL, FAINT[0], "start", halo=True)
    for place in drawing.places:
        if not place.open:
            yield from _closed(place, captions[place.box], scene, marked)


def _head(caption: Caption, box: DrawnBox) -> str:
    """Return the title of an open box: an open layer, whose bodies are shown, has its name."""
    return caption.title if box.layer is None else f"{caption.title} {caption.lines[0]}"


def _open(place: PlacedBox, caption: Caption, box: DrawnBox) -> Iterator[Stroke]:
    fill, border, ink = FAMILIES[caption.family][0]
    x, y = place.x + EDGE, place.y + EDGE
    yield Rect(x, y, place.width, place.height, fill, border, 1.0)
    yield Word(x + 10, y + 17, _head(caption, box), HEAD, ink, "start")


def _closed(
    place: PlacedBox, caption: Caption, scene: Scene, marked: Mapping[int, str]
) -> Iterator[Stroke]:
    fill, border, ink = FAMILIES[caption.family][0]
    x, y = place.x + EDGE, place.y + EDGE
    box = scene.boxes[place.box]
    if box.count > 1:
        for step in (6, 3):
            yield Rect(x + step, y + step, place.width, place.height, fill, border, 1.0)
    colour = next((marked[leaf] for leaf in box.leaves() if leaf in marked), None)
    thick = 1.2 if colour is None else 2.6
    yield Rect(x, y, place.width, place.height, fill, colour or border, thick)
    middle = x + place.width / 2
    yield Word(middle, y + 18, caption.title, TITLE, ink)
    for k, text in enumerate(caption.lines):
        colour = INK[0] if k == 0 else FAINT[0]
        yield Word(middle, y + 33 + 14 * k, text, TEXT, colour)
