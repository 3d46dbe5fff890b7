"""Rows of layers: how they are written, and the tensors that several use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from old_ir import OldIR

import deconv_ir

Array = np.ndarray
Row = tuple[str, Sequence[Any], Mapping[str, object], Mapping[str, Any], Sequence[Any]]
"""Type, inputs (a `Const` for constants), attributes, blobs and expected outputs."""

RNG = np.random.default_rng(7)


class Const:
    """An input that the file has as a Const."""

    def __init__(self, array: Any, kind: Any = np.int32) -> None:
        self.array = np.asarray(array, kind)


def real(*shape: int) -> Array:
    """Return random numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


def network_of(
    row: Row, version: int = 7, precision: str = "FP32"
) -> tuple[OldIR, dict[str, Array]]:
    """Return a network of one layer, and its inputs."""
    kind, inputs, attributes, blobs, expected = row
    ir = OldIR(version, precision)
    tensors, given = [], {}
    for number, array in enumerate(inputs):
        if isinstance(array, Const):
            tensors.append(ir.const(array.array))
            continue
        name = f"x{number}"
        types = {"int32": "I32", "int64": "I64"}
        tensors.append(ir.input(*array.shape, name=name, precision=types.get(str(array.dtype))))
        given[name] = array
    shapes = map(np.shape, expected)
    ir.layer(kind, tensors, *shapes, attributes=attributes, blobs=blobs, name="it")
    return ir, given


def single(row: Row, folder: Path, version: int = 7, precision: str = "FP32") -> list[Array]:
    """Run a network of one layer."""
    ir, given = network_of(row, version, precision)
    return list(deconv_ir.load(ir.write(folder)).run(given).values())


X = real(2, 6, 7, 8)
SQUARE = real(2, 3, 4, 5)
POSITIVE = np.abs(SQUARE) + 0.5
COLUMN = real(2, 3, 1, 1)
N34 = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
FLAT = real(2, 336)
FC = real(5, 336)


def identify(row: Row) -> str:
    return row[0]


def check(row: Row, found: Sequence[Array]) -> None:
    expected = row[4]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(one, other, 2e-5, 2e-5)
