"""Writing an IR: a graph in, XML and weights out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lxml import etree

from deconv_ir.formats.files import output_errors, replace_file
from deconv_ir.formats.openvino_xml.weights import ExtendedWeights, Weights
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.graph import Graph, Info, Layer, Port, walk_graphs
from deconv_ir.ir.operation import ConstantSource
from deconv_ir.ops.constants.constant import Const


def write(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write the XML of a graph; the weights file is not touched.

    A graph that was read from a bare `layer` is written as a bare `layer`.
    """
    data = to_bytes(graph)
    with output_errors(path, "the IR"), replace_file(Path(path)) as stream:
        stream.write(data)


def to_bytes(graph: Graph) -> bytes:
    """Return the XML of a graph in the form that `write` stores."""
    if graph.bare:
        # Its Parameters and Results have ids after that of the layer.
        root = _layer(min(graph.layers, key=lambda layer: layer.id))
    else:
        root = etree.Element("net", name=graph.name, version=str(graph.ir_version or 11))
        layers = etree.SubElement(root, "layers")
        layers.extend(map(_layer, graph.layers))
        edges = etree.SubElement(root, "edges")
        for edge in graph.edges:
            etree.SubElement(
                edges,
                "edge",
                {
                    "from-layer": str(edge.from_layer),
                    "from-port": str(edge.from_port),
                    "to-layer": str(edge.to_layer),
                    "to-port": str(edge.to_port),
                },
            )
        root.extend(map(_info, graph.extras))
    etree.indent(root, "\t")
    return etree.tostring(root, xml_declaration=True, encoding="utf-8") + b"\n"


def _layer(layer: Layer) -> etree._Element:
    written = {"id": str(layer.id), "name": layer.name, "type": layer.type}
    if layer.version is not None:
        written["version"] = layer.version
    element = etree.Element("layer", written | dict(layer.extra_attributes))
    if layer.attributes:
        etree.SubElement(element, "data", dict(layer.attributes))
    element.extend(_info(info) for info in layer.extras if info.tag == "rt_info")
    for tag, ports in (("input", layer.inputs), ("output", layer.outputs)):
        if ports:
            section = etree.SubElement(element, tag)
            section.extend(map(_port, ports))
    element.extend(_info(info) for info in layer.extras if info.tag != "rt_info")
    return element


def _port(port: Port) -> etree._Element:
    written = {"id": str(port.id)}
    if port.element_type is not None:
        written["precision"] = port.element_type.ir_name
    if port.names:
        written["names"] = ",".join(name.replace(",", "\\,") for name in port.names)
    element = etree.Element("port", written)
    for dim in port.shape or ():
        etree.SubElement(element, "dim").text = "-1" if dim == UNKNOWN else str(dim)
    element.extend(map(_info, port.extras))
    return element


def _info(info: Info) -> etree._Element:
    element = etree.Element(info.tag, dict(info.attributes))
    element.text = info.text or None
    element.extend(map(_info, info.children))
    return element


def save(graph: Graph, weights: ConstantSource | None, path: Path) -> list[str]:
    """Write a graph and its weights, with the same name and .bin; see `Format.save`."""
    has_constants = isinstance(weights, Weights) and any(
        isinstance(layer.operation, Const) for part in walk_graphs(graph) for layer in part.layers
    )
    if not has_constants:
        write(graph, path)
        return [str(path)]
    assert isinstance(weights, Weights)
    if isinstance(weights, ExtendedWeights):  # with bytes that are no longer used
        write_packed(graph, weights, path)
    else:
        write_weights(weights, path.with_suffix(".bin"))
        write(graph, path)
    return [str(path), str(path.with_suffix(".bin"))]


def write_weights(weights: Weights, path: Path) -> None:
    """Copy a weights file; a copy onto itself does nothing."""
    with output_errors(path, "the weights"):
        in_file = weights.descriptor is not None
        if in_file and path.exists() and path.samefile(weights.path):
            return
        _store(weights.chunks(), path)


def write_packed(graph: Graph, weights: Weights, path: Path) -> None:
    """Write a graph and a weights file with only the constants that it uses."""
    from deconv_ir.formats.openvino_xml.packing import Packer

    packer = Packer(weights)
    packed = packer.pack(graph)
    with output_errors(path, "the weights"):
        _store(packer.chunks(), path.with_suffix(".bin"))
    write(packed, path)


def _store(chunks: Iterable[bytes | memoryview], path: Path) -> None:
    with replace_file(path) as stream:
        for chunk in chunks:
            stream.write(chunk)
