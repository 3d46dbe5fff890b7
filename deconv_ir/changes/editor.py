"""Changes to the layers, edges and constants of a graph."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.formats.openvino_xml.weights import ExtendedWeights, Weights, WeightsInMemory
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.graph import Edge, Graph, Layer, Port
from deconv_ir.ir.operation import ConstantSource, Operation
from deconv_ir.ir.shapes import Shape
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import format_attributes
from deconv_ir.ops.constants.constant import Const

_ALIGNMENT = 64


class Editor:
    """Changes a graph whose layers are connected.

    Parameters
    ----------
    graph : Graph
    weights : Weights or None
        Those of the graph; new constants are appended.
    """

    def __init__(self, graph: Graph, weights: ConstantSource | None) -> None:
        assert weights is None or isinstance(weights, Weights), "the weights of a file"
        self.layers = list(graph.layers)
        self._graph = graph
        self._weights = weights
        self._edges = list(graph.edges)
        self._next = 1 + max((layer.id for layer in graph.layers), default=0)
        self._names = {layer.name for layer in graph.layers}
        self._appended = bytearray()

    def graph(self) -> Graph:
        """Return the changed graph."""
        # Parameters that were made for a single layer have no attributes to write yet.
        layers = tuple(
            with_operation(layer, layer.operation)
            if layer.type == "Parameter" and not layer.attributes
            else layer
            for layer in self.layers
        )
        return self._graph.replace(layers=layers, edges=tuple(self._edges), changed=True)

    @property
    def weights(self) -> Weights | None:
        """The weights with all constants."""
        if not self._appended:
            return self._weights
        # Such weights are packed when they are saved, so that no gaps are written.
        return ExtendedWeights(self._weights or WeightsInMemory(b""), bytes(self._appended))

    def store(self, data: bytes, element_type: ElementType, shape: Sequence[int]) -> Const:
        """Return a constant of these bytes, which are appended to the weights."""
        self._appended += bytes(-len(self._appended) % _ALIGNMENT)
        first = 0 if self._weights is None else len(self._weights)
        offset = first + -first % _ALIGNMENT + len(self._appended)
        self._appended += data
        return Const(element_type=element_type, shape=tuple(shape), offset=offset, size=len(data))

    def set_operation(self, index: int, operation: Operation) -> None:
        """Give a layer an operation with other attributes."""
        self.layers[index] = with_operation(self.layers[index], operation)

    def add(
        self,
        name: str,
        type_name: str | Operation,
        sources: Sequence[tuple[Layer, Port]],
        shape: Shape,
        element_type: ElementType | None,
    ) -> tuple[Layer, Port]:
        """Add a layer of opset1 with one output, and return both."""
        operation = type_name if isinstance(type_name, Operation) else _operation(type_name)
        own, self._next = self._next, self._next + 1
        while name in self._names:
            name += "_"
        self._names.add(name)
        inputs = tuple(port._replace(id=i, names=()) for i, (_, port) in enumerate(sources))
        output = Port(len(inputs), shape, element_type)
        made = Layer(own, name, operation, operation.type, "opset1", inputs, (output,))
        made = with_operation(made, operation)
        self.layers.append(made)
        for i, (layer, port) in enumerate(sources):
            self._edges.append(Edge(layer.id, port.id, own, i))
        return made, output

    def users(self, layer: Layer, port: Port) -> list[Edge]:
        """Return the edges from an output."""
        return [e for e in self._edges if (e.from_layer, e.from_port) == (layer.id, port.id)]

    def move(self, edges: Sequence[Edge], to: tuple[Layer, Port]) -> None:
        """Let the inputs at the ends of edges come from another output."""
        moved = set(edges)
        layer, port = to
        self._edges = [
            e._replace(from_layer=layer.id, from_port=port.id) if e in moved else e
            for e in self._edges
        ]

    def edge_into(self, layer: Layer, port: Port) -> Edge:
        """Return the edge into an input."""
        return next(e for e in self._edges if (e.to_layer, e.to_port) == (layer.id, port.id))

    def drop_unused(self, own: int) -> None:
        """Remove a layer without users by its id, and the layers that only it used."""
        pending = [own]
        while pending:
            own = pending.pop()
            if any(edge.from_layer == own for edge in self._edges):
                continue
            pending += [edge.from_layer for edge in self._edges if edge.to_layer == own]
            self._edges = [edge for edge in self._edges if edge.to_layer != own]
            self.layers = [layer for layer in self.layers if layer.id != own]


def with_operation(layer: Layer, operation: Operation) -> Layer:
    """Return a layer with another operation of its type, and the attributes that write it."""
    written = dict(layer.attributes) | format_attributes(operation)
    return layer._replace(operation=operation, attributes=tuple(written.items()))


def _operation(type_name: str, version: str = "opset1") -> Operation:
    found = find_operation(type_name, version)
    assert found is not None, "it is built in"
    return found()
