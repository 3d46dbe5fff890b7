"""The last step of loading: constants get places in the weights, ports their inferred dims."""

from __future__ import annotations

from deconv_ir.formats.openvino_legacy.bodies import with_elements
from deconv_ir.formats.openvino_legacy.literal import AddedConstant
from deconv_ir.formats.openvino_xml.weights import ExtendedWeights, Weights, WeightsInMemory
from deconv_ir.ir.graph import Graph, Layer, Port
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ops.base import format_attributes
from deconv_ir.ops.constants.constant import Const

_ALIGNMENT = 64


class _AddedPlaces:
    """Places of literals behind the weights; equal ones share a place."""

    def __init__(self, weights: Weights | None) -> None:
        size = 0 if weights is None else len(weights)
        self.base = size + -size % _ALIGNMENT
        self.data = bytearray()
        self._known: dict[AddedConstant, Const] = {}

    def layer(self, layer: Layer) -> Layer:
        """Return a layer whose literals, and those of its bodies, are constants."""
        operation = layer.operation
        if operation.bodies:
            bodies = {b.name: b.replace(graph=self.graph(b.graph)) for b in operation.bodies}
            return layer._replace(operation=operation.replace(**bodies))
        if not isinstance(operation, AddedConstant):
            return layer
        const = self._known.get(operation)
        if const is None:
            data = operation.array().tobytes()
            self.data += bytes(-len(self.data) % 8)
            const = self._known[operation] = Const(
                element_type=operation.element_type,
                shape=operation.shape,
                offset=self.base + len(self.data),
                size=len(data),
            )
            self.data += data
        return layer._replace(operation=const, attributes=tuple(format_attributes(const).items()))

    def graph(self, graph: Graph) -> Graph:
        """Return a graph whose literals are constants."""
        return graph.replace(layers=tuple(map(self.layer, graph.layers)))


def complete(graph: Graph, weights: Weights | None) -> tuple[Graph, Weights | None]:
    """Return a graph as one of version 11, and its weights with the constants that were added.

    Dims that the old file declares stay; those of the layers between are inferred.
    """
    places = _AddedPlaces(weights)
    placed = places.graph(graph)
    extended = weights
    if places.data:
        added = bytes(places.data)
        extended = WeightsInMemory(added) if weights is None else ExtendedWeights(weights, added)
    return _filled(placed, Context(weights=extended)).replace(ir_version=11), extended


def _filled(graph: Graph, context: Context) -> Graph:
    """Return a graph with the inferred dims and types, and the elements of bodies."""
    inference = infer(graph, context, collect=True)
    layers = []
    for index, layer in enumerate(graph.layers):
        row = graph.topology.sources[index]
        sources = [None if s is None else inference.outputs[s[0]][s[1]] for s in row]
        operation = layer.operation
        if operation.bodies:
            bodies = {b.name: b.replace(graph=_filled(b.graph, context)) for b in operation.bodies}
            operation = operation.replace(**bodies)
        filled = layer._replace(
            operation=operation,
            inputs=tuple(_fill(p, s) for p, s in zip(layer.inputs, sources, strict=True)),
            outputs=tuple(
                _fill(port, info)
                for port, info in zip(layer.outputs, inference.outputs[index], strict=False)
            ),
        )
        layers.append(with_elements(filled))
    return graph.replace(layers=tuple(layers))


def _fill(port: Port, info: TensorInfo | None) -> Port:
    if info is None:
        return port
    return port._replace(
        shape=port.shape if port.shape is not None else info.shape,
        element_type=info.element_type or port.element_type,
    )
