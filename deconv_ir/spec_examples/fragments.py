"""The XML of an example: in the form of documents, and as a loadable network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from deconv_ir.formats.openvino_xml.writer import to_bytes
from deconv_ir.ir.graph import Edge, Graph, Layer, Port
from deconv_ir.ir.operation import Operation
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.constants.parameter import Parameter, Result
from deconv_ir.spec_examples.golden import little_endian
from deconv_ir.spec_examples.specfile import ExampleSpec, Spec

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

_STEP = "    "


def fragment(spec: Spec, example: ExampleSpec) -> str:
    """Write the layer in the form of documents: no version, precision only on outputs.

    The value of an input is in a comment next to its dims.
    """
    data = "".join(f" {key}={quoteattr(value)}" for key, value in example.attributes)
    lines = [
        f'<layer id="{example.layer_id}" name={quoteattr(example.layer_name)} '
        f"type={quoteattr(spec.operation)}>"
    ]
    if data:
        lines.append(f"{_STEP}<data{data}/>")
    lines.append(f"{_STEP}<input>")
    for i, given in enumerate(example.inputs):
        notes = [""] * len(given.shape)
        if given.value is not None:
            value = ", ".join(map(str, given.value))
            notes = [f" <!-- {given.name} value is: [{value}]-->"]
        lines += _port(f'id="{i}"', given.shape, notes)
    lines += [f"{_STEP}</input>", f"{_STEP}<output>"]
    for i, shape in enumerate(example.outputs):
        precision = example.output_types[i].ir_name
        lines += _port(f'id="{i}" precision="{precision}"', shape, [""] * len(shape))
    lines += [f"{_STEP}</output>", "</layer>"]
    return "\n".join(lines) + "\n"


def _port(head: str, shape: Sequence[int], notes: Sequence[str]) -> list[str]:
    dims = [f"{3 * _STEP}<dim>{d}</dim>{n}" for d, n in zip(shape, notes, strict=True)]
    return [f"{2 * _STEP}<port {head}>", *dims, f"{2 * _STEP}</port>"]


def network(
    spec: Spec, example: ExampleSpec, inputs: Sequence[Array | None]
) -> tuple[bytes, bytes]:
    """Write the example as a network: the .xml and the .bin.

    `inputs` are the constants; None makes it an input of the network.  Constants are sorted by
    decreasing element size, so that each is aligned without padding.
    """
    weights = bytearray()
    offsets: dict[int, int] = {}
    constants = [(i, array) for i, array in enumerate(inputs) if array is not None]
    for i, constant in sorted(constants, key=lambda pair: -pair[1].dtype.itemsize):
        offsets[i] = len(weights)
        weights += little_endian(constant)
    layers = []
    edges = []
    own = len(example.inputs)
    for i, (given, array) in enumerate(zip(example.inputs, inputs, strict=True)):
        element_type = given.element_type
        port = Port(0, given.shape, element_type, (given.name,))
        shape = ",".join(map(str, given.shape))
        operation: Operation
        if array is None:
            operation = Parameter(shape=given.shape, element_type=element_type)
            written = {"shape": shape, "element_type": element_type.name}
        else:
            size = array.nbytes
            operation = Const(
                shape=given.shape, element_type=element_type, offset=offsets[i], size=size
            )
            written = {
                "element_type": element_type.name,
                "shape": shape,
                "offset": str(offsets[i]),
                "size": str(size),
            }
        layers.append(_layer(i, given.name, operation, "opset1", (), (port,), written))
        edges.append(Edge(i, 0, own, i))
    ports = tuple(Port(i, g.shape, g.element_type) for i, g in enumerate(example.inputs))
    results = tuple(
        Port(own + i, shape, example.output_types[i], (_output_name(i),))
        for i, shape in enumerate(example.outputs)
    )
    body = _layer(
        own,
        example.layer_name,
        example.operation,
        spec.version or None,
        ports,
        results,
        dict(example.attributes),
    )
    layers.append(body)
    for i, port in enumerate(results):
        name = f"{_output_name(i)}/result"
        end = Port(0, port.shape, port.element_type)
        layers.append(_layer(own + 1 + i, name, Result(), "opset1", (end,), (), {}))
        edges.append(Edge(own, port.id, own + 1 + i, 0))
    graph = Graph(name=example.name, layers=tuple(layers), edges=tuple(edges), ir_version=11)
    return to_bytes(graph), bytes(weights)


def _output_name(index: int) -> str:
    return f"output{index or ''}"


def _layer(
    id_: int,
    name: str,
    operation: Operation,
    version: str | None,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    attributes: dict[str, str],
) -> Layer:
    return Layer(
        id_, name, operation, operation.type, version, inputs, outputs, tuple(attributes.items())
    )
