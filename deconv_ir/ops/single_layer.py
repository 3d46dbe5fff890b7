"""Models of a single layer: an example from the documents, or extracted from a graph."""

from __future__ import annotations

from deconv_ir.ir.graph import Edge, Graph, Layer, Port, constant_layers, needed_layers
from deconv_ir.ops.base import format_attributes
from deconv_ir.ops.constants.parameter import Parameter, Result


def wrap_layer(layer: Layer, file: str | None = None) -> Graph:
    """Make a model of one layer: a Parameter for each input, a Result for each output."""
    input_names = type(layer.operation).inputs
    shared = next((p.element_type for p in layer.outputs if p.element_type), None)
    label = layer.name or layer.type
    layers: list[Layer] = []
    edges: list[Edge] = []
    inputs: list[Port] = []
    outputs: list[Port] = []
    results: list[Layer] = []
    first = layer.id + 1
    # Ports are matched by order where ids repeat, as in the documents' examples.
    ids = [port.id for port in (*layer.inputs, *layer.outputs)]
    distinct = len(set(ids)) == len(ids)
    for i, port in enumerate(layer.inputs):
        name = input_names[i] if i < len(input_names) else f"input{i}"
        known = port.element_type
        if known is None and name not in ("output_shape", "dst_shape"):
            known = shared
        operation = Parameter(shape=port.shape, element_type=known)
        source = Port(0, port.shape, known, (name,))
        line = layer.line_of(port)
        layers.append(
            Layer(first + i, name, operation, "Parameter", "opset1", (), (source,), line=line)
        )
        own = port.id if distinct else i
        inputs.append(port._replace(id=own, element_type=known, names=()))
        edges.append(Edge(first + i, 0, layer.id, own, line))
    for i, port in enumerate(layer.outputs or (Port(0, None),)):
        name = label if len(layer.outputs) < 2 else f"{label}.{i}"
        own = port.id if distinct and layer.outputs else i
        outputs.append(port._replace(id=own, names=port.names or (name,)))
        end = Port(0, port.shape, port.element_type)
        line = layer.line_of(port)
        number = first + len(inputs) + i
        results.append(
            Layer(number, f"{name}/result", Result(), "Result", "opset1", (end,), line=line)
        )
        edges.append(Edge(layer.id, own, number, 0, line))
    body = layer._replace(name=label, inputs=tuple(inputs), outputs=tuple(outputs))
    return Graph(
        name=label, layers=(*layers, body, *results), edges=tuple(edges), file=file, bare=True
    )


def extract_layer(graph: Graph, layer: Layer) -> Graph:
    """Make a model of one layer of a graph, with its constant inputs."""
    index = graph.layers.index(layer)
    sources = graph.topology.sources
    constant = constant_layers(graph, graph.topology.order)
    alone = wrap_layer(layer, graph.file)
    bound = {
        port: source
        for port, source in enumerate(sources[index])
        if source is not None and source[0] in constant
    }
    needed = needed_layers(graph, bound.values())
    # Parameters of wrap_layer have ids after the layer's, in the order of its inputs.
    dropped = {layer.id + 1 + port for port in bound}
    offset = 1 + max(found.id for found in (*alone.layers, *graph.layers))
    constants = [graph.layers[i] for i in sorted(needed)]
    ids = {found.id for found in constants}
    edges = [edge for edge in alone.edges if edge.from_layer not in dropped]
    body = next(found for found in alone.layers if found.id == layer.id)
    for port, (i, output) in bound.items():
        from_layer = graph.layers[i]
        own = body.inputs[port].id
        edges.append(Edge(offset + from_layer.id, from_layer.outputs[output].id, layer.id, own))
    edges += [
        edge._replace(from_layer=offset + edge.from_layer, to_layer=offset + edge.to_layer)
        for edge in graph.edges
        if edge.to_layer in ids
    ]
    layers = (
        *(found._replace(id=offset + found.id) for found in constants),
        *(_with_attributes(found) for found in alone.layers if found.id not in dropped),
    )
    return alone.replace(layers=layers, edges=tuple(edges), bare=False)


def _with_attributes(layer: Layer) -> Layer:
    """Return a Parameter with the attributes that files need."""
    if layer.type != "Parameter":
        return layer
    return layer._replace(attributes=tuple(format_attributes(layer.operation).items()))
