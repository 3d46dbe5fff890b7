"""ConvertPromoteTypes-14, with the table of types that OpenVINO 2026.4 infers."""

from __future__ import annotations

import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.elementwise.promote import ConvertPromoteTypes

TABLE = """
boolean u8 u8 u8 u8
boolean f16 f16 f16 f16
u8 i8 i16 - u8
u8 i32 i32 i32 u8
u8 u64 u64 u64 u8
u8 f16 f16 f16 f16
i8 u64 f32 - i8
i8 f32 f32 f32 f32
i32 i64 i64 i64 i32
i32 f16 f16 - f16
i32 f32 f32 - f32
i32 f64 f64 f64 f64
u64 i64 f32 - u64
u64 f64 f64 - f64
f16 bf16 f32 - f16
f16 f32 f32 f32 f16
f64 f64 f64 f64 f64
"""
ROWS = [line.split() for line in TABLE.split("\n") if line]


@pytest.mark.parametrize(("one", "other", "unsafe", "safe", "scalar"), ROWS)
def test_types(one: str, other: str, unsafe: str, safe: str, scalar: str) -> None:
    """The common type with promote_unsafe, without, and with the second input a scalar."""
    a, b = TensorInfo((2,), parse_element_type(one)), TensorInfo((), parse_element_type(other))
    cases = [
        (unsafe, ConvertPromoteTypes(promote_unsafe=True)),
        (safe, ConvertPromoteTypes()),
        (scalar, ConvertPromoteTypes(promote_unsafe=True, pytorch_scalar_promotion=True)),
    ]
    for expected, operation in cases:
        if expected == "-":
            with pytest.raises(ShapeError, match="only with promote_unsafe"):
                operation.infer([a, b], Context())
            continue
        found = operation.infer([a, b], Context())
        assert [str(info.element_type) for info in found] == [expected] * 2
