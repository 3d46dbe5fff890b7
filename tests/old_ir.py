"""A builder of IRs of version 2 to 7, whose layers have their own blobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_PRECISIONS = {"float32": "FP32", "float16": "FP16", "int32": "I32", "int64": "I64", "uint8": "U8"}


class Tensor(NamedTuple):
    """An output of a layer: ids of the layer and of its port, and its dims."""

    layer: int
    port: int
    shape: tuple[int, ...]


class OldIR:
    """Collects layers, edges and blobs; `write` makes the two files.

    Parameters
    ----------
    version : int
        That of the IR; version 2 has its own spellings of windows.
    precision : str
        That of layers, and of their blobs.
    """

    def __init__(self, version: int = 7, precision: str = "FP32") -> None:
        self.version = version
        self.precision = precision
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = bytearray()
        self.extras = ""

    def layer(
        self,
        kind: str,
        inputs: Sequence[Tensor] = (),
        *shapes: Sequence[int],
        attributes: Mapping[str, object] | None = None,
        blobs: Mapping[str, Any] | None = None,
        name: str | None = None,
        precision: str | None = None,
        inner: str = "",
    ) -> Any:
        """Add a layer with an output of each shape; return its tensor, or several."""
        number = len(self.layers)
        name = f"{kind.lower()}{number}" if name is None else name
        lines = [
            f'<layer id="{number}" name="{name}" precision="{precision or self.precision}" '
            f'type="{kind}">'
        ]
        if attributes:
            written = " ".join(f'{key}="{_text(value)}"' for key, value in attributes.items())
            lines.append(f"<data {written}/>")
        if inputs:
            lines += ["<input>", *(_port(i, t.shape) for i, t in enumerate(inputs)), "</input>"]
        if shapes:
            first = len(inputs)
            ports = (_port(first + i, shape) for i, shape in enumerate(shapes))
            lines += ["<output>", *ports, "</output>"]
        if blobs:
            places = [self.place(key, array) for key, array in blobs.items()]
            lines += ["<blobs>", *places, "</blobs>"] if self.version > 2 else places
        if inner:
            lines.append(inner)
        self.layers.append("\n".join([*lines, "</layer>"]))
        for i, source in enumerate(inputs):
            self.edges.append(
                f'<edge from-layer="{source.layer}" from-port="{source.port}" '
                f'to-layer="{number}" to-port="{i}"/>'
            )
        made = [Tensor(number, len(inputs) + i, tuple(s)) for i, s in enumerate(shapes)]
        return made[0] if len(made) == 1 else made

    def place(self, key: str, array: Any) -> str:
        """Add an array to the weights file, unless it is there; return its element."""
        if self.precision == "FP16" and array.dtype == np.float32:
            array = array.astype(np.float16)
        data = np.ascontiguousarray(array).tobytes()
        offset = self.weights.find(data)
        if offset < 0:
            offset = len(self.weights)
            self.weights += data
        return f'<{key} offset="{offset}" size="{len(data)}"/>'

    def input(self, *shape: int, name: str = "x", precision: str | None = None) -> Tensor:
        """Add an Input."""
        made: Tensor = self.layer("Input", (), shape, name=name, precision=precision)
        return made

    def const(self, array: Any, name: str | None = None) -> Tensor:
        """Add a Const of an array."""
        array = np.asarray(array)
        precision = _PRECISIONS[str(array.dtype)]
        if precision == "FP32":
            precision = self.precision
        made: Tensor = self.layer(
            "Const", (), array.shape, blobs={"custom": array}, name=name, precision=precision
        )
        return made

    def xml(self) -> str:
        """Return the text of the file."""
        return "\n".join(
            [
                '<?xml version="1.0" ?>',
                f'<net batch="1" name="old" version="{self.version}">',
                "<layers>",
                *self.layers,
                "</layers>",
                "<edges>",
                *self.edges,
                "</edges>",
                self.extras,
                "</net>",
            ]
        )

    def write(self, folder: Path, name: str = "old") -> Path:
        """Write the files; return the path of the XML."""
        path = folder / f"{name}.xml"
        path.write_text(self.xml())
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(_text, value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def _port(number: int, shape: Sequence[int]) -> str:
    return f'<port id="{number}">' + "".join(f"<dim>{d}</dim>" for d in shape) + "</port>"
