"""IRs written by hand, where OpenVINO's builder would not: one layer and what feeds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

__all__ = ["PRECISION", "Constant", "Parameter", "layer", "write_network"]

PRECISION = {
    "f32": "FP32",
    "f16": "FP16",
    "bf16": "BF16",
    "f64": "FP64",
    "boolean": "BOOL",
    "u1": "BIN",
}
"""Element type -> precision, where that is not the upper case of it."""

LAYER_ID = 5


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input of the model; its shape is written as a Parameter has it: ``?,1..8``."""

    name: str
    kind: str
    shape: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A Const, and its bytes in the weights file."""

    name: str
    kind: str
    shape: tuple[int, ...]
    raw: bytes


def precision(kind: str) -> str:
    """Spell an element type as ports do."""
    return PRECISION.get(kind, kind.upper())


def layer(kind: str, attributes: Mapping[str, str], inputs: int, output: str) -> str:
    """Write a layer with ports 0.. and no dims; `output` is an element type."""
    data = "".join(f" {name}={quoteattr(text)}" for name, text in attributes.items())
    ports = "".join(f'<port id="{i}"/>' for i in range(inputs))
    return (
        f'<layer id="{LAYER_ID}" name="layer" type="{kind}" version="opset1">\n'
        f"<data{data}/>\n<input>{ports}</input>\n"
        f'<output><port id="{inputs}" precision="{precision(output)}"/></output></layer>\n'
    )


def write_network(
    path: Path, sources: Sequence[Parameter | Constant], layer: str, output_port: int
) -> Path:
    """Write a network: `sources` feed the ports of `layer` in order, a Result takes its output."""
    weights = b""
    layers, edges = [], []
    for i, source in enumerate(sources):
        if isinstance(source, Parameter):
            kind, data = "Parameter", f'shape="{source.shape}" element_type="{source.kind}"'
        else:
            kind = "Const"
            shape = ", ".join(map(str, source.shape))
            data = (
                f'element_type="{source.kind}" shape="{shape}" '
                f'offset="{len(weights)}" size="{len(source.raw)}"'
            )
            weights += source.raw
        layers.append(
            f'<layer id="{10 + i}" name="{source.name}" type="{kind}" version="opset1">'
            f'<data {data}/><output><port id="0" precision="{precision(source.kind)}" '
            f'names="{source.name}"/></output></layer>\n'
        )
        edges.append(
            f'<edge from-layer="{10 + i}" from-port="0" to-layer="{LAYER_ID}" to-port="{i}"/>\n'
        )
    path.write_text(
        f'<net name="n" version="11">\n<layers>\n{"".join(layers)}{layer}'
        '<layer id="6" name="result" type="Result" version="opset1">'
        f'<input><port id="0"/></input></layer>\n</layers>\n<edges>\n{"".join(edges)}'
        f'<edge from-layer="{LAYER_ID}" from-port="{output_port}" to-layer="6" to-port="0"/>\n'
        "</edges>\n</net>\n"
    )
    if weights:
        path.with_suffix(".bin").write_bytes(weights)
    return path
