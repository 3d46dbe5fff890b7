"""Element types of inputs and outputs of IR version 10, as OpenVINO changes them.

For networks of its older interface, OpenVINO's reader makes f16 inputs f32, and outputs i32 if
they are integers of at least 32 bits, else f32.

Source: OpenVINO 2026.4, src/frontends/ir: `read_model` of a file of version 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deconv_ir.ir.dtypes import F16, F32, I32, ElementType
from deconv_ir.ir.findings import Finding, Severity
from deconv_ir.ir.graph import Edge, Graph, Layer, Port
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import format_attributes

VERSION: Final = 10


def input_type(declared: ElementType | None) -> ElementType | None:
    """Return the element type that OpenVINO gives an input of version 10."""
    return F32 if declared is F16 else declared


def output_type(computed: ElementType | None) -> ElementType | None:
    """Return the element type that OpenVINO gives an output of version 10."""
    if computed is None:
        return None
    return I32 if computed.is_integer and computed.bits >= 32 else F32


def compare_types(
    graph: Graph, inputs: Mapping[str, Port], outputs: Mapping[str, Port]
) -> Finding | None:
    """Report the inputs and outputs of a model whose types OpenVINO changes; None: it has none."""
    if graph.ir_version != VERSION:
        return None
    ports = [
        (name, port.element_type, input_type(port.element_type)) for name, port in inputs.items()
    ]
    ports += [
        (name, port.element_type, output_type(port.element_type)) for name, port in outputs.items()
    ]
    changed = [(name, old, new) for name, old, new in ports if old is not new]
    if not changed:
        return None
    name, old, new = changed[0]
    more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
    return Finding(
        "profiles-differ",
        Severity.WARNING,
        f"OpenVINO changes element types of IR version 10: {name!r} from {old} to {new}{more}; "
        "this run keeps the declared types",
        file=graph.file,
        expected=str(old),
        actual=str(new),
        hint="semantics='spec' or 'openvino' chooses",
    )


def change_types(graph: Graph, outputs: Mapping[str, Port]) -> Graph:
    """Return a graph with the element types of OpenVINO; `outputs` are those of the model."""
    builder = _Converter(graph)
    results = [i for i, layer in enumerate(graph.layers) if layer.type == "Result"]
    for index, layer in enumerate(graph.layers):
        known = getattr(layer.operation, "element_type", None)
        if layer.type == "Parameter" and known is F16:
            builder.convert_input(index)
    for index, port in zip(results, outputs.values(), strict=True):
        wanted = output_type(port.element_type)
        if wanted is not None and wanted is not port.element_type:
            builder.convert_output(index, wanted)
    return builder.graph()


class _Converter:
    """Puts Convert layers behind inputs and before outputs."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._layers = list(graph.layers)
        self._edges = list(graph.edges)
        self._next = 1 + max(layer.id for layer in graph.layers)

    def graph(self) -> Graph:
        """Return the new graph."""
        return self._graph.replace(layers=tuple(self._layers), edges=tuple(self._edges))

    def convert_input(self, index: int) -> None:
        """Make a Parameter f32, and convert it to f16 for all layers that read it."""
        layer = self._layers[index]
        port = layer.outputs[0]._replace(element_type=F32)
        operation = layer.operation.replace(element_type=F32)
        attributes = tuple(format_attributes(operation).items())
        self._layers[index] = layer._replace(
            operation=operation, outputs=(port,), attributes=attributes
        )
        made = self._convert(layer, layer.outputs[0], F16, ())
        for at, edge in enumerate(self._edges):
            if edge.from_layer == layer.id:
                self._edges[at] = edge._replace(from_layer=made, from_port=1)
        self._edges.append(Edge(layer.id, port.id, made, 0, layer.line))

    def convert_output(self, index: int, wanted: ElementType) -> None:
        """Convert the tensor of a Result; its names move to the converted tensor."""
        result = self._layers[index]
        at = next(i for i, edge in enumerate(self._edges) if edge.to_layer == result.id)
        edge = self._edges[at]
        source = next(i for i, layer in enumerate(self._layers) if layer.id == edge.from_layer)
        producer = self._layers[source]
        port = next(port for port in producer.outputs if port.id == edge.from_port)
        names = port.names or (producer.name,)
        plain = tuple(p._replace(names=()) if p is port else p for p in producer.outputs)
        self._layers[source] = producer._replace(outputs=plain)
        made = self._convert(producer, port, wanted, names)
        self._edges[at] = edge._replace(from_layer=made, from_port=1)
        self._edges.append(Edge(edge.from_layer, edge.from_port, made, 0, result.line))

    def _convert(
        self, layer: Layer, port: Port, wanted: ElementType, names: tuple[str, ...]
    ) -> int:
        """Add a layer that converts a tensor of `layer`, and return its id."""
        kind = find_operation("Convert", "opset1")
        assert kind is not None, "Convert is built in"
        operation = kind(destination_type=wanted)
        number, self._next = self._next, self._next + 1
        self._layers.append(
            Layer(
                number,
                f"{layer.name}/{wanted}_{number}",
                operation,
                "Convert",
                "opset1",
                (Port(0, port.shape, port.element_type),),
                (Port(1, port.shape, wanted, names),),
                tuple(format_attributes(operation).items()),
                layer.line,
            )
        )
        return number
