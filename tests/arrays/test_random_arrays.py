"""Arrays of random values: made in the input's own type, without temporary memory."""

from __future__ import annotations

import numpy as np
import pytest
from support import traced_peak

from deconv_ir.arrays.fitting import random_array
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.geometry import interval

FLOATS = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "boolean"])
def test_memory_is_that_of_the_array(name: str) -> None:
    """2,000,000 elements: f64 temporaries would be 16 MB."""
    element_type = parse_element_type(name)
    array = random_array((2, 1000, 1000), element_type, 0, 0)
    peak = traced_peak(lambda: random_array((2, 1000, 1000), element_type, 0, 0))
    assert array.dtype == element_type.numpy()
    assert array.shape == (2, 1000, 1000)
    assert peak < array.nbytes + 2**20


@pytest.mark.parametrize("name", ["f64", "f32", "f16", "bf16"])
def test_floats_are_standard_normal(name: str) -> None:
    """Mean 0 and variance 1, each within 5 standard errors (sqrt(1/n) and sqrt(2/n))."""
    values = random_array((400_000,), parse_element_type(name), 1, 0).astype(np.float64)
    assert abs(values.mean()) < 5 * values.size**-0.5
    assert abs(values.var() - 1) < 5 * (2 / values.size) ** 0.5


def test_f64_has_more_digits_than_f32_holds() -> None:
    values = random_array((1000,), parse_element_type("f64"), 0, 0)
    assert np.count_nonzero(values != values.astype(np.float32)) > 900


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_digits(name: str) -> None:
    values = random_array((100_000,), parse_element_type(name), 0, 0)
    assert sorted(set(values.tolist())) == list(range(10))


def test_seed_and_place_decide_the_values() -> None:
    f32 = parse_element_type("f32")
    first = random_array((100_000,), f32, 3, 1)
    assert np.array_equal(first, random_array((100_000,), f32, 3, 1))
    # The number of blocks does not affect the values before.
    assert np.array_equal(first[:70_000], random_array((70_000,), f32, 3, 1))
    assert not np.array_equal(first, random_array((100_000,), f32, 3, 2))
    assert not np.array_equal(first, random_array((100_000,), f32, 4, 1))


def test_unknown_dims_take_the_least_that_is_not_zero() -> None:
    shape = (interval(0, None), 3, interval(2, 8), 0)
    assert random_array(shape, None, 0, 0).shape == (1, 3, 2, 0)
    assert random_array((), None, 0, 0).shape == ()
