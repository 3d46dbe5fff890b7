"""Extracts one layer from a graph, with its constant inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deconv_ir.ir.bare_layer import wrap_layer
from deconv_ir.ir.graph import Edge, Graph, Layer, constant_layers, needed_layers


def extract_layer(graph: Graph, layer: Layer) -> Graph:
    """Make a graph of one layer and its constant inputs."""
    index = graph.layers.index(layer)
    sources = graph.topology.sources
    constant = constant_layers(graph, graph.topology.order)
    alone = wrap_layer(layer, graph.file)
    bound = {
        port: source
        for port, source in enumerate(sources[index])
        if source is not None and source[0] in constant
    }
    # Parameters of wrap_layer have ids after the layer's, in the order of its inputs.
    dropped = {layer.id + 1 + port for port in bound}
    offset = 1 + max([found.id for found in alone.layers] + [found.id for found in graph.layers])
    kept = [found for found in alone.layers if found.id not in dropped]
    edges = [edge for edge in alone.edges if edge.from_layer not in dropped]
    needed = needed_layers(graph, bound.values())
    return _join(graph, alone, kept, edges, bound, sorted(needed), layer.id, offset)


def _join(
    graph: Graph,
    alone: Graph,
    kept: Sequence[Layer],
    edges: Sequence[Any],
    bound: Mapping[int, tuple[int, int]],
    needed: Sequence[int],
    target: int,
    offset: int,
) -> Graph:
    """Add the needed constant layers, with new ids, to a single-layer graph."""
    constants = [graph.layers[i]._replace(id=offset + graph.layers[i].id) for i in needed]
    joined = list(edges)
    for port, (source, output) in bound.items():
        from_layer = graph.layers[source]
        joined.append(Edge(offset + from_layer.id, from_layer.outputs[output].id, target, port))
    ids = {graph.layers[i].id for i in needed}
    joined += [
        edge._replace(from_layer=offset + edge.from_layer, to_layer=offset + edge.to_layer)
        for edge in graph.edges
        if edge.to_layer in ids
    ]
    return alone.replace(layers=(*constants, *kept), edges=tuple(joined), bare=False)
