"""Make the two sample graphs, and arrays for their inputs and outputs computed by loops.

upsample.json: a ConvTranspose with a channels-last output.  int8.json: the pattern of a
quantized network, two Dequantize, ConvTranspose, ReLU and Quantize.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def tensor(number: int, shape: Sequence[int], dtype: str = "f32", **facts: Any) -> dict[str, Any]:
    """Return a tensor, dense unless `stride` is given."""
    stride = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    return {
        "id": number,
        "dtype": dtype,
        "shape": list(shape),
        "stride": stride,
        "layout_type": "strided",
        "property_type": "undef",
    } | facts


def attribute(value: Any) -> dict[str, Any]:
    """Return an attribute with its type."""
    one = value[0] if isinstance(value, list) else value
    kind = {int: "s64", float: "f32", str: "string"}[type(one)]
    return {"type": f"{kind}[]" if isinstance(value, list) else kind, "value": value}


def operation(number: int, name: str, kind: str, *tensors: Any, **attributes: Any) -> Any:
    """Return an operation; the last tensor is its output."""
    return {
        "id": number,
        "name": name,
        "kind": kind,
        "attrs": {key: attribute(value) for key, value in attributes.items()},
        "inputs": list(tensors[:-1]),
        "outputs": [tensors[-1]],
    }


def save(name: str, *operations: Any, **ports: Any) -> None:
    """Write a graph in the form of the library."""
    head = {"version": "3.0.0", "engine_kind": "cpu", "fpmath_mode": "strict"}
    text = json.dumps({**head, **ports, "graph": list(operations)}, indent=2)
    (HERE / f"{name}.json").write_text(text + "\n")


def save_arrays(name: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    """Write arrays by tensor id."""
    np.savez(HERE / f"{name}.npz", **inputs)
    np.savez(HERE / f"{name}_expected.npz", **outputs)


def transposed(x: Any, w: Any, extent: int) -> Any:
    """Compute a transposed convolution of stride 2 by its definition, in f64."""
    result = np.zeros((1, w.shape[1], extent, extent))
    for c, i, j, a, b in np.ndindex(*x.shape[1:], *w.shape[2:]):
        result[0, :, 2 * i + a, 2 * j + b] += x[0, c, i, j] * w[c, :, a, b]
    return result


WINDOW = {
    "strides": [2, 2],
    "pads_begin": [0, 0],
    "pads_end": [0, 0],
    "dilations": [1, 1],
    "auto_pad": "None",
    "data_format": "NCX",
    "groups": 1,
    "weights_format": "IOX",
    "output_padding": [0] * 12,
}
rng = np.random.default_rng(2026)

x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 5, 5), (3, 2, 3, 3)))
save(
    "upsample",
    operation(
        0,
        "up",
        "ConvTranspose",
        tensor(0, x.shape),
        tensor(1, w.shape, property_type="constant"),
        tensor(2, (1, 2, 11, 11), stride=[242, 1, 22, 2]),
        **WINDOW,
    ),
    input_ports=[0, 1],
    output_ports=[2],
)
wanted = transposed(x.astype(float), w.astype(float), 11).astype(np.float32)
save_arrays("upsample", {"0": x, "1": w}, {"2": wanted})

q = rng.integers(0, 256, (1, 4, 4, 4)).astype(np.uint8)
v = rng.integers(-128, 128, (4, 2, 2, 2)).astype(np.int8)
scales, shape = [0.25, 0.125], (1, 2, 8, 8)
one = {"qtype": "per_tensor", "axis": 1}
channel = {"scales": scales, "zps": [0, 0], "qtype": "per_channel", "axis": 1}
save(
    "int8",
    operation(
        0,
        "dequantize_x",
        "Dequantize",
        tensor(0, q.shape, "u8"),
        tensor(1, q.shape),
        scales=[0.5],
        zps=[8],
        **one,
    ),
    operation(
        1,
        "dequantize_w",
        "Dequantize",
        tensor(2, v.shape, "s8", property_type="constant"),
        tensor(3, v.shape),
        **channel,
    ),
    operation(
        2, "up", "ConvTranspose", tensor(1, q.shape), tensor(3, v.shape), tensor(4, shape), **WINDOW
    ),
    operation(3, "relu", "ReLU", tensor(4, shape), tensor(5, shape)),
    operation(
        4,
        "quantize",
        "Quantize",
        tensor(5, shape),
        tensor(6, shape, "u8"),
        scales=[2.0],
        zps=[0],
        **one,
    ),
)
total = transposed(q.astype(int) - 8, v.astype(int), 8) * 0.5 * np.reshape(scales, (2, 1, 1))
levels = np.clip(np.rint(np.maximum(total, 0) / 2.0), 0, 255)
save_arrays("int8", {"0": q, "2": v}, {"6": levels.astype(np.uint8)})
