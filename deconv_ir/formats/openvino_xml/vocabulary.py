"""Elements and attributes of an IR."""

from __future__ import annotations

from typing import Final

LAYER_ATTRIBUTES: Final = frozenset({"id", "name", "type", "version"})
"""Attributes of every layer; a `Layer` keeps the others apart."""

_SUBGRAPH: Final = frozenset(
    {"body", "then_body", "else_body", "port_map", "then_port_map", "else_port_map", "back_edges"}
)

CHILDREN: Final = {
    "net": frozenset({"layers", "edges", "rt_info", "meta_data", "statistics", "pre-process"})
    | {"quantization_parameters", "framework_meta", "runtime_options"},
    "layers": frozenset({"layer"}),
    "layer": frozenset({"data", "input", "output", "rt_info", "weights", "biases", "blobs"})
    | _SUBGRAPH,
    "input": frozenset({"port"}),
    "output": frozenset({"port"}),
    "port": frozenset({"dim", "rt_info"}),
    "edges": frozenset({"edge"}),
    "edge": frozenset({"rt_info"}),
}

ATTRIBUTES: Final = {
    "net": frozenset({"name", "version", "precision", "batch"}),
    "layer": LAYER_ATTRIBUTES | {"output_names", "precision"},
    "input": frozenset[str](),
    "output": frozenset[str](),
    "port": frozenset({"id", "precision", "names"}),
    "edge": frozenset({"from-layer", "from-port", "to-layer", "to-port"}),
}
