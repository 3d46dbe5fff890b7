"""A graph and the bodies of its layers as one graph, in which bodies are inside their layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from deconv_ir.drawing.graph.blocks import DrawnBox, Flow, box_of, flow_of
from deconv_ir.errors import DeconvError
from deconv_ir.ir.body import NONE, Body
from deconv_ir.ir.graph import Graph, Layer, Source, Topology
from deconv_ir.ir.infer import Outputs, infer
from deconv_ir.ir.operation import Context, TensorInfo


class DrawnBody(NamedTuple):
    """A body among the layers of a flat graph."""

    owner: int
    """The layer that runs the body."""
    body: Body
    first: int
    """The body's first layer; its layers follow each other."""

    @property
    def layers(self) -> range:
        """The body's layers."""
        return range(self.first, self.first + len(self.body.graph.layers))


class Flat(NamedTuple):
    """A graph, followed by the layers of all bodies that are drawn."""

    graph: Graph
    own: Graph
    """The graph without the layers of bodies."""
    outputs: list[Outputs]
    flow: Flow
    outermost: DrawnBox
    parts: list[DrawnBody]
    misfits: frozenset[int]
    """Layers of bodies whose inputs do not fit."""
    entries: dict[tuple[int, int], list[int]]
    """Layer with bodies and an input of it -> the Parameters that take it."""
    exits: dict[tuple[int, int], list[int]]
    """Layer with bodies and an output of it -> the Results that it comes from."""


def flatten(graph: Graph, outputs: Sequence[Outputs], context: Context) -> Flat:
    """Join a graph with the bodies of its layers, recursively.

    Bodies of constant layers, which are not drawn, are left out.
    """
    layers: list[Layer] = list(graph.layers)
    infos = list(outputs)
    sources = list(graph.topology.sources)
    order = list(graph.topology.order)
    flow = flow_of(graph)
    found_order, found_sources, hidden = list(flow.order), dict(flow.sources), dict(flow.hidden)
    outermost = box_of(graph, flow)
    boxes = {box.layer: box for box in _leaves(outermost)}
    parts: list[DrawnBody] = []
    misfits: set[int] = set()
    entries: dict[tuple[int, int], list[int]] = {}
    exits: dict[tuple[int, int], list[int]] = {}
    waiting = [i for i in flow.order if _bodies(layers[i])]
    while waiting:
        owner = waiting.pop(0)
        inputs = [TensorInfo(None) if s is None else infos[s[0]][s[1]] for s in sources[owner]]
        for number, body in enumerate(_bodies(layers[owner])):
            part = DrawnBody(owner, body, len(layers))
            inner, first = body.graph, part.first
            given = _given(layers[owner], number, inputs, context)
            inference = infer(inner, context, given, collect=True)
            misfits |= {
                first + error.finding.part.layer
                for error in inference.errors
                if error.finding.part.layer is not None
            }
            misfits |= {first + i for i in range(len(inner.layers))} - {
                first + i for i in inner.topology.order
            }
            layers += inner.layers
            infos += inference.outputs
            sources += [tuple(_shifted(s, first) for s in row) for row in inner.topology.sources]
            order += [first + i for i in inner.topology.order]
            flow = flow_of(inner)
            box = box_of(inner, flow)
            for leaf in _leaves(box):
                assert leaf.layer is not None, "a leaf is a layer"
                leaf.layer += first
                boxes[leaf.layer] = leaf
            box.label = body.name
            # A single body needs no frame of its own.
            alone = len(_bodies(layers[owner])) == 1
            boxes[owner].children += box.children if alone else [box]
            found_order += [first + i for i in flow.order]
            found_sources |= {
                first + i: tuple(first + s for s in row) for i, row in flow.sources.items()
            }
            hidden |= {first + i: first + user for i, user in flow.hidden.items()}
            for table, joints in ((entries, body.inputs), (exits, body.outputs)):
                for joint in joints:
                    if NONE not in (joint.port, joint.inner):
                        table.setdefault((owner, joint.port), []).append(first + joint.inner)
            parts.append(part)
            waiting += [first + i for i in flow.order if _bodies(inner.layers[i])]
    flat = graph
    if parts:
        flat = graph.replace(layers=tuple(layers))
        flat.__dict__["topology"] = Topology(tuple(sources), tuple(order))
    merged = Flow(tuple(found_order), found_sources, hidden)
    return Flat(flat, graph, infos, merged, outermost, parts, frozenset(misfits), entries, exits)


def _bodies(layer: Layer) -> tuple[Body, ...]:
    return layer.operation.bodies if layer.operation.implemented else ()


def _given(
    layer: Layer, number: int, inputs: Sequence[TensorInfo], context: Context
) -> dict[int, TensorInfo] | None:
    """Return the infos of the Parameters of a body; None if its port map is invalid."""
    if _bodies(layer)[number].error() is not None:
        return None
    try:
        return layer.operation.infer_parameters(inputs, context)[number]
    except DeconvError:
        return None


def _shifted(source: Source | None, first: int) -> Source | None:
    return None if source is None else (source[0] + first, source[1])


def _leaves(box: DrawnBox) -> list[DrawnBox]:
    """Return the boxes of layers in a box."""
    found, stack = [], [box]
    while stack:
        box = stack.pop()
        if box.layer is not None:
            found.append(box)
        stack += reversed(box.children)
    return found
