"""Helpers that run an operation, or infer its shapes, by type and version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from operation_forms import make

from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import format_shape, parse_shape


@pytest.fixture(scope="session")
def run() -> Callable[..., Any]:
    """Run on arrays, or lists with a dtype of i64 or f32; return one array or a tuple."""

    def execute(kind: str, *inputs: Any, **attributes: Any) -> Any:
        arrays = [_array(i) for i in inputs]
        found = make(kind, **attributes).execute(arrays, Context())
        return found[0] if len(found) == 1 else tuple(found)

    return execute


def _array(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    array = np.array(value)
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    return array.astype(bool if array.dtype.kind == "b" else np.int64)


@pytest.fixture(scope="session")
def infer() -> Callable[..., str]:
    """Infer from ``"f32[2,?]"`` or lists of integers; return the shapes of the outputs."""

    def shapes(kind: str, *inputs: str | Sequence[Any], **attributes: Any) -> str:
        infos = [_info(i) for i in inputs]
        found = make(kind, **attributes).infer(infos, Context())
        return " ".join(format_shape(info.shape) for info in found)

    return shapes


def _info(value: Any) -> TensorInfo:
    if isinstance(value, TensorInfo):
        return value
    if isinstance(value, str):
        name, _, dims = value.partition("[")
        return TensorInfo(parse_shape(dims.removesuffix("]")), parse_element_type(name))
    if isinstance(value, int):
        return TensorInfo((), parse_element_type("i64"), (value,))
    if all(isinstance(v, float) for v in value) and value:
        return TensorInfo((len(value),), parse_element_type("f32"), None, tuple(value))
    return TensorInfo((len(value),), parse_element_type("i64"), tuple(value))
