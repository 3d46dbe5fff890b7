"""Bodies of layers as elements of a version 11 IR, which the writer stores as they are."""

from __future__ import annotations

from collections.abc import Iterable

from deconv_ir.ir.body import Body, Joint
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.graph import Edge, Info, Layer, Port


def with_elements(layer: Layer) -> Layer:
    """Return a layer with the elements of its body."""
    bodies = layer.operation.bodies
    if not bodies:
        return layer
    (body,) = bodies
    return layer._replace(extras=(_port_map(layer, body), _back_edges(body), _body(body)))


def _port_map(layer: Layer, body: Body) -> Info:
    def entry(tag: str, joint: Joint, ports: tuple[Port, ...]) -> Info:
        written = {
            "external_port_id": ports[joint.port].id,
            "internal_layer_id": body.graph.layers[joint.inner].id,
        }
        if joint.slices is not None:
            written |= joint.slices._asdict()
        return Info(tag, tuple((key, str(value)) for key, value in written.items()))

    inputs = (entry("input", joint, layer.inputs) for joint in body.inputs)
    outputs = (entry("output", joint, layer.outputs) for joint in body.outputs)
    return Info("port_map", (), (*inputs, *outputs))


def _back_edges(body: Body) -> Info:
    layers = body.graph.layers
    edges = (
        Info("edge", (("from-layer", str(layers[a].id)), ("to-layer", str(layers[b].id))))
        for a, b in body.back_edges
    )
    return Info("back_edges", (), tuple(edges))


def _body(body: Body) -> Info:
    layers = Info("layers", (), tuple(map(_layer, body.graph.layers)))
    return Info("body", (), (layers, Info("edges", (), tuple(map(_edge, body.graph.edges)))))


def _edge(edge: Edge) -> Info:
    names = ("from-layer", "from-port", "to-layer", "to-port")
    return Info("edge", tuple(zip(names, map(str, edge[:4]), strict=True)))


def _layer(layer: Layer) -> Info:
    children = [Info("data", layer.attributes)] if layer.attributes else []
    for tag, ports in (("input", layer.inputs), ("output", layer.outputs)):
        if ports:
            children.append(_ports(tag, ports))
    written = (("id", str(layer.id)), ("name", layer.name), ("type", layer.type))
    version = ("version", layer.version or "opset1")
    return Info("layer", (*written, version), (*children, *layer.extras))


def _ports(tag: str, ports: Iterable[Port]) -> Info:
    return Info(tag, (), tuple(map(_port, ports)))


def _port(port: Port) -> Info:
    written = [("id", str(port.id))]
    if port.element_type is not None:
        written.append(("precision", port.element_type.ir_name))
    dims = (Info("dim", text="-1" if dim == UNKNOWN else str(dim)) for dim in port.shape or ())
    return Info("port", tuple(written), tuple(dims))
