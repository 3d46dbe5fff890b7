"""The computation of an IR, apart from its declarations: tells whether a fix broke it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import deconv_ir
from deconv_ir.formats.openvino_xml.entry import read_bytes
from deconv_ir.ir.geometry import Dim, bounds
from deconv_ir.ir.operation import Operation
from deconv_ir.ops.constants.constant import Const


def meaning(data: bytes, weights: bytes) -> Any:
    """Return operations, edges and the bytes of constants, or None if the file does not load."""
    graph, errors = read_bytes(data)
    if graph is None or errors:
        return None
    layers = [_layer(layer.type, layer.operation, weights) for layer in graph.layers]
    return layers, graph.topology.sources


def _layer(kind: str, operation: Operation, weights: bytes) -> Any:
    if isinstance(operation, Const):
        end = operation.offset + operation.size
        content = weights[operation.offset : end]
        return kind, operation.element_type, operation.shape, content
    return kind, operation


def computes_the_same(data: bytes, other: bytes, weights: bytes, folder: Path) -> bool:
    """Run two IRs on the same inputs of two sizes; return False if one of them does not run."""
    paths = []
    for i, text in enumerate((data, other)):
        paths.append(folder / f"{i}.xml")
        paths[i].write_bytes(text)
        paths[i].with_suffix(".bin").write_bytes(weights)
    try:
        a, b = (deconv_ir.load(path, warn=False) for path in paths)
        inputs = [_inputs(a, size, sign) for size, sign in ((8, 1), (12, -1))]
        return all(_equal(a.run(given), b.run(given)) for given in inputs)
    except deconv_ir.DeconvError:
        return False


def _equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return len(a) == len(b) and all(
        x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        for x, y in zip(a.values(), b.values(), strict=True)
    )


def _inputs(model: deconv_ir.Model, size: int, sign: int) -> dict[str, Any]:
    """Draw inputs; `size` is the extent of unknown dims, where they allow it."""
    choices = np.random.default_rng(1)
    inputs = {}
    for name, port in model.inputs.items():
        shape = tuple(_extent(dim, size) for dim in port.shape or ())
        element_type = port.element_type
        kind = np.dtype(np.float32) if element_type is None else element_type.numpy()
        drawn = choices.integers(1, 9, shape)
        inputs[name] = (drawn if kind.kind == "u" else sign * drawn).astype(kind)
    return inputs


def _extent(dim: Dim, size: int) -> int:
    least, most = bounds(dim)
    return min(max(size, least), size if most is None else most)
