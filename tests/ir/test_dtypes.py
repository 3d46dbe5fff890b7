"""Element types in all of their spellings."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.ir.dtypes import ELEMENT_TYPES, from_numpy, parse_element_type


@pytest.mark.parametrize(
    ("attribute", "precision", "bits"),
    [
        # layer attribute and port precision, as OpenVINO 2026.4 writes them
        ("f32", "FP32", 32),
        ("f16", "FP16", 16),
        ("bf16", "BF16", 16),
        ("f64", "FP64", 64),
        ("i8", "I8", 8),
        ("i16", "I16", 16),
        ("i32", "I32", 32),
        ("i64", "I64", 64),
        ("u8", "U8", 8),
        ("u16", "U16", 16),
        ("u32", "U32", 32),
        ("u64", "U64", 64),
        ("boolean", "BOOL", 8),
        ("u1", "BIN", 1),
        ("u4", "U4", 4),
        ("i4", "I4", 4),
        ("nf4", "NF4", 4),
        ("f8e4m3", "F8E4M3", 8),
        ("f8e5m2", "F8E5M2", 8),
    ],
)
def test_both_spellings(attribute: str, precision: str, bits: int) -> None:
    found = parse_element_type(attribute)
    assert parse_element_type(precision) is found
    assert parse_element_type(precision.lower()) is found
    assert (found.name, found.ir_name, found.bits) == (attribute, precision, bits)


def test_unknown_type_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"invalid element type 'f31' \(expected one of f32, f16"):
        parse_element_type("f31")


@pytest.mark.parametrize("element_type", ELEMENT_TYPES)
def test_numpy_form(element_type: object) -> None:
    dtype = element_type.numpy()  # type: ignore[attr-defined]
    back = from_numpy(dtype)
    if element_type.name in ("u1", "u3", "u6"):  # type: ignore[attr-defined]
        assert dtype == np.uint8
    elif element_type.name == "nf4":  # type: ignore[attr-defined]
        assert dtype == np.float32
    else:
        assert back is element_type


@pytest.mark.parametrize(
    ("name", "elements", "expected"),
    [
        ("f32", 3, 12),
        ("u1", 9, 2),
        ("u4", 3, 2),
        ("i4", 4, 2),
        ("u3", 8, 3),
        ("u3", 9, 6),
        ("u6", 4, 3),
    ],
)
def test_size_in_the_weights_file(name: str, elements: int, expected: int) -> None:
    assert parse_element_type(name).size_of(elements) == expected
