"""Attention and its gradients in graphs with the structure of most public oneDNN graphs.

Source: oneDNN, tests/benchdnn/inputs/graph/complex_fusion/mha/jsons.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onednn_forms import as_bytes, op, tensor

import deconv_ir
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

UNKNOWN = {"stride": [-(2**63)], "layout_type": "undef"}
BATCH, HEADS, ROWS, COLUMNS, DEPTH = 1, 2, 4, 5, 3
SCORES = [BATCH, HEADS, ROWS, COLUMNS]
QUERY, KEY = [BATCH, HEADS, ROWS, DEPTH], [BATCH, HEADS, COLUMNS, DEPTH]
STATS = [BATCH, HEADS, ROWS, 1]
BROADCAST = {"auto_broadcast": "numpy"}
SCALE = 0.6


class Writer:
    """Numbers operations and inner tensors while a graph is written."""

    def __init__(self) -> None:
        self.operations: list[dict[str, Any]] = []

    def add(self, kind: str, inputs: Any, shape: Any, dtype: str = "f32", **attributes: Any) -> Any:
        made = tensor(100 + len(self.operations), shape, dtype) | UNKNOWN
        self.operations.append(op(len(self.operations), kind, inputs, [made], **attributes))
        return made

    def multiply(self, a: Any, b: Any, shape: Any, dtype: str = "f32", turn: str = "") -> Any:
        turns = {"transpose_a": turn == "a", "transpose_b": turn == "b"}
        return self.add("MatMul", [a, b], shape, dtype, accumulation_mode="strict", **turns)

    def scores(self, query: Any, key: Any, mask: str) -> Any:
        """Return operations that scale scores and mask them by Add or by a later operation."""
        found = self.multiply(query, key, SCORES, turn="b")
        scale = tensor(6, [], property_type="host_scalar")
        found = self.add("Multiply", [found, scale], SCORES, **BROADCAST)
        if mask == "add":
            added = tensor(8, [BATCH, 1, ROWS, COLUMNS])
            return self.add("Add", [found, added], SCORES, **BROADCAST)
        if mask == "causal":
            rows = self.add("GenIndex", [found], SCORES, "s32", axis=-2)
            columns = self.add("GenIndex", [found], SCORES, "s32", axis=-1)
            before = self.add("GreaterEqual", [rows, columns], SCORES, "boolean", **BROADCAST)
            low = tensor(7, [], property_type="host_scalar")
            return self.add("Select", [before, found, low], SCORES, **BROADCAST)
        return found


def inputs(dtype: str) -> dict[str, Any]:
    """Return the input tensors, with heads inside rows in memory."""
    shapes = {"query": (1, QUERY), "key": (2, KEY), "value": (3, KEY)}
    shapes |= {"out": (4, QUERY), "gradient": (0, QUERY)}
    return {k: tensor(n, shape, dtype, tag="acbd") for k, (n, shape) in shapes.items()}


def forward(dtype: str, mask: str) -> bytes:
    given, writer = inputs(dtype), Writer()
    scores = writer.scores(given["query"], given["key"], mask)
    part = writer.add("SoftMax", [scores], SCORES, dtype, axis=-1, mode="inf_as_zero")
    writer.operations[-1]["outputs"].append(tensor(5, STATS))
    writer.multiply(part, given["value"], QUERY, dtype)
    return as_bytes(*writer.operations, output_ports=[5, 100 + len(writer.operations) - 1])


def backward(dtype: str, mask: str) -> bytes:
    given, writer = inputs(dtype), Writer()
    out, dy = given["out"], given["gradient"]
    scores = writer.scores(given["query"], given["key"], mask)
    less = writer.add("Subtract", [scores, tensor(5, STATS)], SCORES, **BROADCAST)
    part = writer.add("Exp", [less], SCORES)
    cast = writer.add("TypeCast", [part], SCORES, dtype)
    value = writer.multiply(cast, dy, KEY, dtype, "a")
    spread = writer.multiply(dy, given["value"], SCORES, turn="b")
    both = writer.add("Multiply", [out, dy], QUERY, **BROADCAST)
    total = writer.add("ReduceSum", [both], STATS, axes=[-1], keep_dims=True)
    less = writer.add("Subtract", [spread, total], SCORES, **BROADCAST)
    found = writer.add("Multiply", [part, less], SCORES, **BROADCAST)
    scale = tensor(6, [], property_type="host_scalar")
    found = writer.add("Multiply", [found, scale], SCORES, **BROADCAST)
    found = writer.add("TypeCast", [found], SCORES, dtype)
    query = writer.multiply(found, given["key"], QUERY, dtype)
    key = writer.multiply(found, given["query"], KEY, dtype, "a")
    ports = [made["id"] for made in (query, key, value)]
    operations = writer.operations[::-1] if mask == "add" else writer.operations  # any order
    return as_bytes(*operations, output_ports=ports)


def attend(query: Any, key: Any, value: Any, added: Any) -> tuple[Any, Any]:
    """Compute attention and the logarithm of the sum of exponentials, in f64."""
    scores = SCALE * query @ np.swapaxes(key, -1, -2) + added
    stats = np.log(np.exp(scores).sum(-1, keepdims=True))
    return np.exp(scores - stats) @ value, stats


@pytest.mark.parametrize("mask", ["", "add", "causal"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_attention_and_its_gradients(dtype: str, mask: str) -> None:
    """Gradients are differences of sums over attention in f64."""
    rng = np.random.default_rng(len(mask))
    files = [forward(dtype, mask), backward(dtype, mask)]
    model, gradients = (deconv_ir.load(data, strict=True) for data in files)
    for data in files:
        assert not check_bytes(data, "g.json", choose(severity="info")).findings
    element_type = model.inputs["1"].element_type
    assert element_type is not None
    arrays = {
        name: rng.uniform(-1, 1, one["shape"]).astype(element_type.numpy())
        for name, one in inputs(dtype).items()
    }
    query, key, value, _, dy = (array.astype(float) for array in arrays.values())
    added = np.zeros((BATCH, 1, ROWS, COLUMNS), np.float32)
    if mask == "add":
        added = rng.uniform(-1, 1, added.shape).astype(np.float32)
    if mask == "causal":
        added[..., ~np.tri(ROWS, COLUMNS, dtype=bool)] = -1e9
    out, stats = attend(query, key, value, added)
    arrays["out"] = out.astype(element_type.numpy())
    values = {str(one["id"]): arrays[name] for name, one in inputs(dtype).items()}
    values |= {"5": stats.astype(np.float32), "6": np.float32(SCALE), "7": np.float32(-1e9)}
    values["8"] = added
    tolerance = 2e-5 if dtype == "f32" else 2e-2

    def run(graph: deconv_ir.Model) -> list[Any]:
        return list(graph.run({name: values[name] for name in graph.inputs}).values())

    for found, wanted in zip(run(model), (stats, out), strict=True):
        np.testing.assert_allclose(found.astype(float), wanted, tolerance, tolerance)
    for position, found in enumerate(run(gradients)):
        wanted = np.zeros(found.shape)
        for at in np.ndindex(*found.shape):
            sums = []
            for step in (1e-5, -1e-5):
                moved = [query.copy(), key.copy(), value.copy()]
                moved[position][at] += step
                sums.append((attend(*moved, added)[0] * dy).sum())
            wanted[at] = (sums[0] - sums[1]) / 2e-5
        np.testing.assert_allclose(found.astype(float), wanted, tolerance, tolerance)
