"""Reader of port maps and back edges, which connect a layer to its body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deconv_ir.formats.openvino_xml.scanner import Element
from deconv_ir.ir.body import NONE, Body, Joint, Slices
from deconv_ir.ir.graph import Graph, Port

PORT_MAPS: Final = {
    "body": "port_map",
    "then_body": "then_port_map",
    "else_body": "else_port_map",
}
"""Element of a body -> element of its port map."""


def number(text: str | None, default: int = NONE) -> int:
    """Return a whole number as the port map writes it; `default` for other text."""
    try:
        return int(text or "") if len(text or "") <= 20 else default
    except ValueError:
        return default


def join(
    name: str, graph: Graph, layer: Element, inputs: Sequence[Port], outputs: Sequence[Port]
) -> Body:
    """Make a body of its graph; references to missing ports or layers become `NONE`."""
    index = {layer.id: i for i, layer in reversed(list(enumerate(graph.layers)))}
    places = {
        "input": {port.id: i for i, port in reversed(list(enumerate(inputs)))},
        "output": {port.id: i for i, port in reversed(list(enumerate(outputs)))},
    }
    type_names = {"input": "Parameter", "output": "Result"}

    def inner(text: str | None, side: str) -> int:
        found = index.get(number(text), NONE)
        return found if found != NONE and graph.layers[found].type == type_names[side] else NONE

    joints: dict[str, list[Joint]] = {"input": [], "output": []}
    port_map = layer.first(PORT_MAPS[name])
    for entry in () if port_map is None else port_map.children:
        if entry.tag not in joints:
            continue
        written = entry.attributes()
        joints[entry.tag].append(
            Joint(
                places[entry.tag].get(number(written.get("external_port_id")), NONE),
                inner(written.get("internal_layer_id"), entry.tag),
                _slices(written),
                written.get("purpose", ""),
            )
        )
    back_edges = layer.first("back_edges")
    return Body(
        name=name,
        graph=graph,
        inputs=tuple(joints["input"]),
        outputs=tuple(joints["output"]),
        back_edges=tuple(
            (inner(ends.get("from-layer"), "output"), inner(ends.get("to-layer"), "input"))
            for ends in (
                edge.attributes() for edge in (() if back_edges is None else back_edges.children)
            )
        ),
    )


def _slices(written: dict[str, str]) -> Slices | None:
    if "axis" not in written:
        return None
    return Slices(
        number(written["axis"]),
        number(written.get("start", "0"), 0),
        number(written.get("end"), -1),
        number(written.get("stride", "1"), 0),
        number(written.get("part_size", "1"), 0),
    )
