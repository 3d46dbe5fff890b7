"""The computation of an IR, apart from its declarations: tells whether a fix broke it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import deconv_ir
from deconv_ir.formats.openvino_xml.entry import read_bytes
from deconv_ir.ir.operation import Operation
from deconv_ir.ops.constants.constant import Const


def meaning(data: bytes, weights: bytes) -> Any:
    """Return operations, edges and the bytes of constants, or None if the file does not load."""
    graph, problems = read_bytes(data)
    if graph is None or problems:
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
    """Run two IRs on the same inputs; return False if one of them does not run."""
    results = []
    for i, text in enumerate((data, other)):
        path = folder / f"{i}.xml"
        path.write_bytes(text)
        path.with_suffix(".bin").write_bytes(weights)
        try:
            results.append(_run(path))
        except deconv_ir.DeconvError:
            results.append(None)
    a, b = results
    return (
        a is not None
        and b is not None
        and len(a) == len(b)
        and all(
            x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
            for x, y in zip(a, b, strict=True)
        )
    )


def _run(path: Path) -> list[Any]:
    model = deconv_ir.load(path)
    choices = np.random.default_rng(1)
    inputs = {}
    for name, port in model.inputs.items():
        shape = tuple(d if isinstance(d, int) else 5 for d in port.shape or ())
        kind = np.dtype(
            (port.element_type.ir_name if port.element_type else "FP32")
            .lower()
            .replace("fp", "float")
            .replace("i6", "int6")
            .replace("i3", "int3")
        )
        inputs[name] = choices.integers(1, 9, shape).astype(kind)
    return list(model.run(inputs).values())
