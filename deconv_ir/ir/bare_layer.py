"""Makes a model of a single layer, as the documents print it."""

from __future__ import annotations

from deconv_ir.ir.graph import Edge, Graph, Layer, Port
from deconv_ir.ops.constants.parameter import Parameter, Result


def wrap_layer(layer: Layer, file: str | None = None) -> Graph:
    """Make a model of one layer: a Parameter for each input, a Result for each output."""
    names = type(layer.operation).inputs
    shared = next((p.element_type for p in layer.outputs if p.element_type), None)
    layers: list[Layer] = []
    edges: list[Edge] = []
    inputs = []
    first = layer.id + 1
    for i, port in enumerate(layer.inputs):
        name = names[i] if i < len(names) else f"input{i}"
        known = port.element_type
        if known is None and name not in ("output_shape", "dst_shape"):
            known = shared
        operation = Parameter(shape=port.shape, element_type=known)
        source = Port(0, port.shape, known, (name,))
        line = layer.line_of(port)
        layers.append(
            Layer(first + i, name, operation, "Parameter", "opset1", (), (source,), line=line)
        )
        # Ports are bound by order: the documents repeat ids.
        inputs.append(Port(i, port.shape, known, (), port.line_offset, port.extras))
        edges.append(Edge(first + i, 0, layer.id, i, line))
    outputs = []
    results: list[Layer] = []
    for i, port in enumerate(layer.outputs or (Port(0, None),)):
        name = layer.name or layer.type
        name = name if len(layer.outputs) < 2 else f"{name}.{i}"
        outputs.append(
            Port(
                i,
                port.shape,
                port.element_type,
                port.names or (name,),
                port.line_offset,
                port.extras,
            )
        )
        result_id = first + len(inputs) + i
        results.append(
            Layer(
                result_id,
                f"{name}/result",
                Result(),
                "Result",
                "opset1",
                (Port(0, port.shape, port.element_type),),
                line=layer.line_of(port),
            )
        )
        edges.append(Edge(layer.id, i, result_id, 0, layer.line_of(port)))
    body = Layer(
        layer.id,
        layer.name or layer.type,
        layer.operation,
        layer.type,
        layer.version,
        tuple(inputs),
        tuple(outputs),
        layer.attributes,
        layer.line,
        layer.extra_attributes,
        layer.extras,
    )
    return Graph(
        name=body.name, layers=(*layers, body, *results), edges=tuple(edges), file=file, bare=True
    )
