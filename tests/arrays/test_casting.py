"""Conversion of inputs: misfits are refused with index and value, or wrapped on demand.

Expected values are Python's own integers and IEEE 754 (f16: largest 65504, smallest 2^-24).
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from deconv_ir.arrays.casting import convert
from deconv_ir.errors import InputError
from deconv_ir.ir.dtypes import from_numpy, parse_element_type

INF, NAN = math.inf, math.nan


def cast(values: object, source: object, wanted: str, *, wrap: bool = False) -> np.ndarray:
    array = np.array(values).astype(source)
    return convert(array, parse_element_type(wanted), name="x", wrap=wrap)


@pytest.mark.parametrize(
    ("source", "wanted", "value"),
    [
        ("i8", "i32", 2**31),
        ("i8", "i32", -(2**31) - 1),
        ("i8", "u64", -1),
        ("u8", "i64", 2**63),
        ("i4", "i8", 200),
        ("i4", "u8", 256),
        ("i4", "boolean", 2),
        ("u1", "u4", 16),
        ("u1", "u1", 2),
        ("f8", "f32", 1e39),
        ("f4", "f16", 1e6),
        ("f4", "f16", 65520.0),
        ("f4", "f8e4m3", 480.0),
        ("f4", "f8e4m3", INF),  # this type has NaN but not infinity: it saturates
        ("f4", "f4e2m1", 100.0),  # it saturates
        ("f4", "f4e2m1", NAN),
        ("f8", "i64", 2.0**63),
        ("f4", "i32", 0.5),
        ("f4", "i32", NAN),
        ("f4", "i32", INF),
        ("f4", "u8", -1.0),
        ("f4", "boolean", NAN),
        ("i8", "f16", 70000),
    ],
)
def test_what_does_not_fit_is_refused_with_its_index(
    source: str, wanted: str, value: float
) -> None:
    values = np.zeros((2, 3)).astype(source)
    values[1, 2] = 1
    values[1, 1] = value
    with pytest.raises(InputError) as caught:
        cast(values, source, wanted)
    assert f"input 'x': element [1,1] is {values[1, 1]}, which does not fit {wanted}" in str(
        caught.value
    )
    assert '(cast="wrap" converts it all the same)' in str(caught.value)


@pytest.mark.parametrize(
    ("source", "wanted", "values"),
    [
        ("i8", "i32", [2**31 - 1, -(2**31)]),
        ("f8", "i64", [-(2.0**63), 2.0**62]),
        ("f8", "f32", [1e-50, 0.1, INF, -INF, NAN, 3.4e38]),
        ("f4", "f16", [65504.0, 65519.0, 2.0**-24, 2.0**-30, -0.0]),
        ("f4", "bf16", [1e38, 0.1, NAN, INF]),
        ("f4", "f8e4m3", [448.0, NAN, 0.3]),
        ("i8", "f32", [2**24 + 1, 2**62 + 1]),
        ("?", "f32", [True, False]),
        ("f4", "boolean", [0.0, 1.0]),
        ("f4", "u8", [0.0, 255.0]),
        ("i4", "u3", [0, 7]),
    ],
)
def test_what_fits_is_what_numpy_makes_of_it(source: str, wanted: str, values: list) -> None:
    dtype = parse_element_type(wanted).numpy()
    found = cast(values, source, wanted)
    assert found.dtype == dtype
    with np.errstate(all="ignore"):
        expected = np.array(values).astype(source).astype(dtype)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("wanted", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "u3"])
@pytest.mark.parametrize("source", ["i8", "f8", "f4", "i2"])
def test_wrapped_integers_are_modulo_two_to_the_bits(source: str, wanted: str) -> None:
    element_type = parse_element_type(wanted)
    rng = np.random.default_rng(0)
    exponents = rng.uniform(0, 66 if source.startswith("f") else 14, 400)
    values = (rng.choice([-1, 1], 400) * np.exp2(exponents)).astype(source)
    found = cast(values, source, wanted, wrap=True)
    for value, got in zip(values, found, strict=True):
        expected = int(value) % 2**element_type.bits  # int() drops the fraction, towards zero
        if element_type.kind == "int" and expected >= 2 ** (element_type.bits - 1):
            expected -= 2**element_type.bits
        assert int(got) == expected, value


def test_wrapping_to_floats_and_booleans() -> None:
    assert cast([1e6, -1e6, NAN], "f4", "f16", wrap=True).tolist()[:2] == [INF, -INF]
    assert cast([0.0, 0.5, NAN], "f4", "boolean", wrap=True).tolist() == [False, True, True]


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_nan_and_infinities_have_no_integer(value: float) -> None:
    with pytest.raises(InputError, match=rf"\[2\] is {value}, which does not fit i64") as caught:
        cast([0.0, 1.5, value], "f8", "i64", wrap=True)
    assert "wrap" not in str(caught.value)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
def test_arrays_without_axes_or_elements(shape: tuple[int, ...]) -> None:
    assert cast(np.zeros(shape), "f8", "f32").shape == shape


def test_the_first_of_many_is_named() -> None:
    values = np.zeros(1_000_000, np.int64)
    values[[700_000, 900_000]] = 2**40
    with pytest.raises(InputError, match=r"element \[700000\] is 1099511627776"):
        cast(values, "i8", "i32")


def test_every_pair_of_types_comes_through() -> None:  # 0 and 1 fit all types
    names = ["f32", "f16", "bf16", "f64", "i8", "i64", "u8", "u64", "boolean", "u1", "u2", "i4",
             "f8e4m3", "f8e5m2"]  # fmt: skip
    for source in names:
        for wanted in names:
            found = cast([0, 1, 1], parse_element_type(source).numpy(), wanted)
            assert found.astype(np.float64).tolist() == [0, 1, 1], (source, wanted)


def test_values_of_types_that_numpy_lacks() -> None:
    values = np.array([1.5, 300.0]).astype(ml_dtypes.bfloat16)
    assert from_numpy(values.dtype) is not None
    with pytest.raises(InputError, match=r"element \[0\] is 1.5, which does not fit i32"):
        cast(values, ml_dtypes.bfloat16, "i32")
    assert cast(values, ml_dtypes.bfloat16, "f32").tolist() == [1.5, 300.0]
