"""Write oneDNN Graph files with the structure of the public ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ZEROS = [0] * 12
"""`output_padding`, as serialised graphs write it whatever the rank."""


def tensor(
    number: int,
    shape: Sequence[int],
    dtype: str = "f32",
    tag: str = "",
    **facts: Any,
) -> dict[str, Any]:
    """Return a tensor; `tag` orders its axes in memory, as in ``acdb``."""
    stride, step = [0] * len(shape), 1
    for letter in reversed(tag or "abcdefghijkl"[: len(shape)]):
        stride[ord(letter) - 97] = step
        step *= max(1, shape[ord(letter) - 97])
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
    if isinstance(value, bool):
        return {"type": "bool", "value": int(value)}
    if isinstance(value, str):
        return {"type": "string", "value": value}
    if isinstance(value, int):
        return {"type": "s64", "value": value}
    if isinstance(value, float):
        return {"type": "f32", "value": value}
    kind = "f32[]" if any(isinstance(v, float) for v in value) else "s64[]"
    return {"type": kind, "value": list(value)}


def op(
    number: int,
    kind: str,
    inputs: Sequence[dict[str, Any]],
    outputs: Sequence[dict[str, Any]],
    **attributes: Any,
) -> dict[str, Any]:
    """Return an operation."""
    return {
        "id": number,
        "name": f"{kind.upper()}_{number}",
        "kind": kind,
        "attrs": {name: attribute(value) for name, value in attributes.items()},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def graph(*operations: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a file."""
    return {
        "version": "3.0.0",
        "engine_kind": "cpu",
        "fpmath_mode": "strict",
        **members,
        "graph": list(operations),
    }


def as_bytes(*operations: dict[str, Any], **members: Any) -> bytes:
    """Write a file as bytes, indented as by the library."""
    return json.dumps(graph(*operations, **members), indent=2).encode()


def save(path: Path, *operations: dict[str, Any], **members: Any) -> Path:
    """Write a file to a path."""
    path.write_bytes(as_bytes(*operations, **members))
    return path


def windows(
    strides: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    dilations: Sequence[int] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return the attributes of a window, in the layouts NCX and OIX or IOX."""
    return {
        "strides": list(strides),
        "pads_begin": list(begin),
        "pads_end": list(end),
        "dilations": list(dilations or [1] * len(strides)),
        "auto_pad": "None",
        "data_format": "NCX",
        "groups": 1,
    } | others


def deconvolution(
    data: Sequence[int],
    weights: Sequence[int],
    output: Sequence[int],
    dtype: str = "f32",
    first: int = 0,
    **others: Any,
) -> dict[str, Any]:
    """Return a ConvTranspose of tensors `first`, `first` + 1 -> `first` + 2."""
    spatial = len(data) - 2
    attributes = windows(
        [1] * spatial, [0] * spatial, [0] * spatial, weights_format="IOX", output_padding=ZEROS
    )
    return op(
        0,
        "ConvTranspose",
        [tensor(first, data, dtype), tensor(first + 1, weights, dtype)],
        [tensor(first + 2, output, dtype)],
        **attributes | others,
    )


def attention(unknown: int | None = None) -> list[dict[str, Any]]:
    """Return attention with compressed keys and values; `unknown` is the inner shape."""
    x, inner = [1, 2, 3, 4], [1, 2, 3, 3]
    middle = inner if unknown is None else [unknown]
    facts = {} if unknown is None else {"stride": [unknown]}
    grouped = {"qtype": "per_group", "group_shape": [1, 1, 2, 1], "axis": 2}
    key, scales = [1, 2, 4, 3], [1, 2, 2, 3]
    compressed = [tensor(0, key, "s4"), tensor(1, scales), tensor(2, scales, "s8")]
    return [
        op(0, "DynamicDequantize", compressed, [tensor(3, key)], **grouped),
        op(1, "MatMul", [tensor(4, x), tensor(3, key)], [tensor(5, inner)]),
        op(2, "Divide", [tensor(5, inner), tensor(6, [1])], [tensor(7, inner)]),
        op(3, "Select", [tensor(8, inner, "boolean"), tensor(9, [1]), tensor(7, inner)],
           [tensor(10, middle) | facts]),
        op(4, "SoftMax", [tensor(10, middle) | facts], [tensor(11, middle) | facts], axis=-1),
        op(5, "DynamicDequantize", [tensor(12, x, "u8"), tensor(13, [1]), tensor(14, [1], "s32")],
           [tensor(15, x)], qtype="per_tensor"),
        op(6, "MatMul", [tensor(11, middle) | facts, tensor(15, x)], [tensor(16, x)]),
    ]  # fmt: skip
