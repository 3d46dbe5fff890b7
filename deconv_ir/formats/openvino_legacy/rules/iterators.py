"""TensorIterator: a body that is run for each slice of its inputs.

Old bodies have no Parameters and Results: the port map and the back edges name ports of their
layers.  Source: catalogue, section TensorIterator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.formats.openvino_legacy.layer import OldBody, OldLayer
from deconv_ir.formats.openvino_xml.port_maps import number
from deconv_ir.ir.body import NONE, Body, Joint, Slices
from deconv_ir.ir.graph import Edge, Graph, Port, Source
from deconv_ir.ops.control_flow.loops import TensorIterator

_End = tuple[int, int]
"""A layer of the body, and one of its ports or outputs."""


class _BodyInputs:
    """Adds an Input to a body for each port that the port map or a back edge feeds."""

    def __init__(self, step: LayerConversion, body: OldBody) -> None:
        self.step = step
        self.layers = list(body.layers)
        self.edges = list(body.edges)
        self.index = {old.id: i for i, old in reversed(list(enumerate(self.layers)))}
        self._next = 1 + max(self.index, default=0)
        self._made: dict[_End, int] = {}

    def input(self, end: _End) -> int:
        """Return the index of the Input of a port."""
        if end in self._made:
            return self._made[end]
        old = self.owner(end[0])
        if old.type == "Input":
            return self.index[end[0]]
        port = self.port(old.inputs, end, "input")
        made = old._replace(
            id=self._next,
            name=f"{old.name}/input_{end[1]}",
            type="Input",
            attributes={},
            inputs=(),
            outputs=(port._replace(id=0),),
            blobs={},
            body=None,
        )
        self.edges.append(Edge(made.id, 0, *end, old.line))
        self._made[end] = len(self.layers)
        self.layers.append(made)
        self._next += 1
        return self._made[end]

    def output(self, end: _End) -> _End:
        """Return the index of a layer and that of its output."""
        old = self.owner(end[0])
        port = self.port(old.outputs, end, "output")
        return self.index[end[0]], old.outputs.index(port)

    def owner(self, layer: int) -> OldLayer:
        """Return the layer of an id."""
        if layer not in self.index:
            raise self.step.unsupported(f"the port map names layer {layer}, the body has none")
        return self.layers[self.index[layer]]

    def port(self, ports: tuple[Port, ...], end: _End, side: str) -> Port:
        """Return the port of an id."""
        found = next((port for port in ports if port.id == end[1]), None)
        if found is None:
            message = f"the port map names {side} port {end[1]} of layer {end[0]}, it has none"
            raise self.step.unsupported(message)
        return found


def tensor_iterator(step: LayerConversion) -> list[Source]:
    """Convert TensorIterator."""
    old = step.layer
    if old.body is None:
        raise step.unsupported("the TensorIterator has no <body>")
    inner = _BodyInputs(step, old.body)
    entries = [(row, inner.input(_inner(row))) for row in old.body.inputs]
    results = [(row, inner.output(_inner(row))) for row in old.body.outputs]
    back = [
        (
            inner.output((_whole(row, "from-layer"), _whole(row, "from-port"))),
            inner.input((_whole(row, "to-layer"), _whole(row, "to-port"))),
        )
        for row in old.body.back_edges
    ]
    conversion, computed = step.convert_body(inner.layers, inner.edges)
    ends: dict[_End, int] = {}
    for end in [*(end for _, end in results), *(end for end, _ in back)]:
        if end not in ends:
            source = computed[end[0]][end[1]]
            ends[end] = conversion.add_result(inner.layers[end[0]], end[1], source)
    body = Body(
        name="body",
        graph=Graph(
            name="",
            layers=tuple(conversion.layers),
            edges=tuple(conversion.edges),
            file=conversion.file,
        ),
        inputs=tuple(
            Joint(_position(old.inputs, row), computed[index][0][0], _slices(row))
            for row, index in entries
        ),
        outputs=tuple(
            Joint(_position(old.outputs, row), ends[end], _slices(row)) for row, end in results
        ),
        back_edges=tuple((ends[start], computed[index][0][0]) for start, index in back),
    )
    error = body.error()
    if error is not None:
        raise step.unsupported(error)
    made = step.apply(TensorIterator(body=body), *step.inputs, outputs=len(old.outputs))
    index = len(step.conversion.layers) - 1
    step.conversion.bodies.append((index, conversion, inner.layers, body.graph))
    return list(made)


def _whole(row: Mapping[str, str], name: str) -> int:
    return number(row.get(name))


def _inner(row: Mapping[str, str]) -> _End:
    return _whole(row, "internal_layer_id"), _whole(row, "internal_port_id")


def _position(ports: tuple[Port, ...], row: Mapping[str, str]) -> int:
    wanted = _whole(row, "external_port_id")
    return next((i for i, port in enumerate(ports) if port.id == wanted), NONE)


def _slices(row: Mapping[str, str]) -> Slices | None:
    axis = number(row.get("axis"), -1)
    if axis == -1:
        return None
    return Slices(
        axis,
        number(row.get("start", "0"), 0),
        number(row.get("end"), -1),
        number(row.get("stride", "1"), 0),
        number(row.get("part_size", "1"), 0),
    )


RULES: Final[dict[str, Rule]] = {"TensorIterator": tensor_iterator}
