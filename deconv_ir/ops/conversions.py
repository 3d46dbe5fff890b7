"""Conversions of element types, put between the layers of a graph."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.graph import Edge, Graph, Layer, Port
from deconv_ir.ir.operation import Operation
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import format_attributes

STORING: Final = frozenset({"Result", "Assign"})
"""Layers that store a tensor outside of the graph."""


class Conversions:
    """Puts Convert layers behind the last layer of a graph, so that indices of layers stay valid.

    Parameters
    ----------
    graph : Graph
        A graph whose layers are connected.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.layers = list(graph.layers)
        self._edges = list(graph.edges)
        self._next = 1 + max((layer.id for layer in graph.layers), default=0)
        self._indices = {layer.id: index for index, layer in enumerate(graph.layers)}
        self._into: dict[int, list[int]] = {}
        self._from: dict[int, list[int]] = {}
        for number, edge in enumerate(graph.edges):
            self._into.setdefault(edge.to_layer, []).append(number)
            self._from.setdefault(edge.from_layer, []).append(number)

    def graph(self) -> Graph:
        """Return the new graph."""
        return self._graph.replace(layers=tuple(self.layers), edges=tuple(self._edges))

    def set_operation(self, index: int, operation: Operation) -> None:
        """Replace the operation of a layer by one with other attributes."""
        attributes = tuple(format_attributes(operation).items())
        self.layers[index] = self.layers[index]._replace(operation=operation, attributes=attributes)

    def set_types(self, index: int, old: ElementType, new: ElementType) -> None:
        """Change the declared types of a layer's outputs."""
        layer = self.layers[index]
        if any(port.element_type is old for port in layer.outputs):
            outputs = tuple(
                port._replace(element_type=new) if port.element_type is old else port
                for port in layer.outputs
            )
            self.layers[index] = layer._replace(outputs=outputs)

    def convert_output(
        self, index: int, output: int, to: ElementType, storing: Collection[str] = STORING
    ) -> None:
        """Convert an output of a layer for the layers that compute with it.

        Layers of the types in `storing` still read the output itself.
        """
        layer = self.layers[index]
        port = layer.outputs[output]
        users = [
            number
            for number in self._from.get(layer.id, ())
            if self._edges[number].from_port == port.id and self._reader(number) not in storing
        ]
        if not users:
            return
        made = self._convert(layer, port, to, ())
        for number in users:
            self._edges[number] = self._edges[number]._replace(from_layer=made, from_port=1)

    def convert_input(self, index: int, position: int, to: ElementType) -> None:
        """Convert an input of a layer; the names of the tensor move along to a Result."""
        layer = self.layers[index]
        ports = {port.id: place for place, port in enumerate(layer.inputs)}
        (number,) = (n for n in self._into[layer.id] if ports[self._edges[n].to_port] == position)
        edge = self._edges[number]
        at = self._indices[edge.from_layer]
        producer = self.layers[at]
        port = next(port for port in producer.outputs if port.id == edge.from_port)
        names: tuple[str, ...] = ()
        if layer.type == "Result":
            names = port.names or (producer.name,)
            plain = tuple(p._replace(names=()) if p is port else p for p in producer.outputs)
            self.layers[at] = producer._replace(outputs=plain)
        made = self._convert(producer, port, to, names)
        self._edges[number] = edge._replace(from_layer=made, from_port=1)

    def _reader(self, number: int) -> str:
        """Return the type of the layer to which an edge leads."""
        return self.layers[self._indices[self._edges[number].to_layer]].type

    def _convert(self, layer: Layer, port: Port, to: ElementType, names: tuple[str, ...]) -> int:
        """Add a layer that converts a tensor of `layer`, and return its id."""
        cls = find_operation("Convert", "opset1")
        assert cls is not None, "Convert is built in"
        operation = cls(destination_type=to)
        number, self._next = self._next, self._next + 1
        self.layers.append(
            Layer(
                number,
                f"{layer.name}/{to}_{number}",
                operation,
                operation.type,
                "opset1",
                (Port(0, port.shape, port.element_type),),
                (Port(1, port.shape, to, names),),
                tuple(format_attributes(operation).items()),
                layer.line,
            )
        )
        self._edges.append(Edge(layer.id, port.id, number, 0, layer.line))
        return number
