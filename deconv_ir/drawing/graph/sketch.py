"""A graph as a drawing: boxes, captions and coordinates together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deconv_ir.drawing.graph.blocks import Flow
from deconv_ir.drawing.graph.bodies import Flat, flatten
from deconv_ir.drawing.graph.captions import WITH_FILTERS, Caption, caption_of, dims_of, family_of
from deconv_ir.drawing.graph.layering import Scene, arrange
from deconv_ir.drawing.graph.placing import DRAWN_AT_FIRST, first_open, place
from deconv_ir.drawing.graph.strokes import EDGE, strokes
from deconv_ir.drawing.pen import Picture, framed
from deconv_ir.drawing.svg import write_svg
from deconv_ir.drawing.text import by
from deconv_ir.ir.geometry import bounds
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Outputs
from deconv_ir.ir.operation import Context, TensorInfo


class Sketch(NamedTuple):
    """The input of a drawing of a graph."""

    flat: Flat
    """The graph and its bodies."""
    scene: Scene
    captions: list[Caption]
    """The caption of each box."""

    @property
    def graph(self) -> Graph:
        """The layers of the graph, then those of its bodies."""
        return self.flat.graph

    @property
    def flow(self) -> Flow:
        """The drawn layers and their connections."""
        return self.flat.flow

    @property
    def outputs(self) -> Sequence[Outputs]:
        """The inferred outputs of each layer."""
        return self.flat.outputs

    @property
    def sizes(self) -> list[tuple[float, float]]:
        """Width and height of each box while it is closed."""
        return [(c.width, c.height) for c in self.captions]


def sketch_of(graph: Graph, outputs: Sequence[Outputs], context: Context) -> Sketch:
    """Group, caption and lay out a graph; with `context`, bodies are inferred."""
    flat = flatten(graph, outputs, context)
    graph, outputs = flat.graph, flat.outputs
    scene = arrange(flat)
    captions = []
    for box in scene.boxes:
        filter_ = ""
        if box.layer is not None and family_of(graph.layers[box.layer]) in WITH_FILTERS:
            fed = graph.topology.sources[box.layer]
            if len(fed) > 1 and fed[1] is not None and fed[1][0] in flat.flow.hidden:
                filter_ = dims_of(outputs[fed[1][0]][fed[1][1] :])
        captions.append(caption_of(box, graph, filter_))
    return Sketch(flat, scene, captions)


def tensor_text(info: TensorInfo) -> str:
    """Write a tensor's dims and type: ``1×64×56×56 f32``; ``?`` is a dim without upper bound."""
    if info.shape is None:
        dims = "any shape"
    elif not info.shape:
        dims = "scalar"
    else:
        dims = by("?" if bounds(dim)[1] is None else dim for dim in info.shape)
    return f"{dims} {info.element_type or '?'}"


def draw(
    sketch: Sketch,
    marked: Mapping[int, str] | None = None,
    *,
    open_limit: int = DRAWN_AT_FIRST,
    drawn_limit: int | None = None,
) -> Picture | None:
    """Draw a graph.

    `marked` has the border colours of layers, by index.  Small groups are open up to `open_limit`
    boxes; above `drawn_limit` boxes, None is returned.
    """
    scene = sketch.scene
    drawing = place(scene, sketch.sizes, first_open(scene, open_limit))
    if drawn_limit is not None and len(drawing.places) > drawn_limit:
        return None
    tensors = {
        (layer, port): tensor_text(sketch.outputs[layer][port])
        for layer, port in scene.tensors
        if port < len(sketch.outputs[layer])
    }
    found = list(strokes(drawing, scene, sketch.captions, tensors, marked or {}))
    # The sheets behind a box that represents several need 6 pixels.
    size = (drawing.width + EDGE + 6, drawing.height + 2 * EDGE)
    return framed(sketch.graph.name, *size, found, EDGE)


def svg_of(sketch: Sketch, marked: Mapping[int, str] | None = None) -> str:
    """Draw a graph as an SVG document."""
    drawn = draw(sketch, marked)
    assert drawn is not None, "no limit was given"
    return write_svg(drawn)
