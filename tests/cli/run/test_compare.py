"""--expect: how far an output is from its reference, and how the difference is printed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from deconv_cli.run.compare import compare
from support import IR, invoke, traced_peak


@pytest.mark.parametrize(
    ("actual", "expected", "within"),
    [
        ([1, np.nan, np.inf], [1, np.nan, np.inf], True),
        ([1, np.nan], [1, 2], False),
        ([1, 2], [1, np.nan], False),
        ([1, np.inf], [1, -np.inf], False),
        ([1, 2], [1, np.inf], False),
        ([], [], True),
        ([1.0], [1.0 + 1e-9], True),
    ],
)
def test_comparison_of_special_values(actual: list, expected: list, within: bool) -> None:
    found = compare("y", np.array(actual, "f4"), np.array(expected, "f4"), 1e-5, 1e-6)
    assert found.within is within


def test_comparison_of_large_integers_is_exact() -> None:
    a = np.array([2**62, 5], np.int64)
    found = compare("y", a, a + np.array([1, 0]), 0, 0)
    assert (found.largest_absolute, found.position, found.outside) == (1.0, (0,), 1)


def test_comparison_of_shapes_that_differ() -> None:
    found = compare("y", np.zeros((2, 3)), np.zeros(6), 0, 0)
    assert not found.within
    assert "shape [2, 3], the reference has [6]" in str(found)


def test_a_reference_of_zeros_makes_an_infinite_relative_error() -> None:
    """The relative error is printed as in numpy.testing.assert_allclose: inf."""
    zeros = np.zeros((2, 3), np.float32)
    found = compare("y", zeros + np.float32(0.5), zeros, 1e-5, 1e-6)
    assert (found.largest_absolute, found.largest_relative) == (0.5, math.inf)
    assert str(found) == (
        "y: DIFFERS: largest absolute error 0.5 at [0,0] (0.5, the reference has 0.0), "
        "largest relative error inf, 6 of 6 elements out of tolerance"
    )


def test_a_small_error_at_a_zero_does_not_hide_the_relative_errors_elsewhere() -> None:
    found = compare("y", np.array([1e-7, 4.0]), np.array([0.0, 5.0]), 1e-5, 1e-6)
    assert (found.outside, found.elements) == (1, 2)
    assert found.largest_relative == pytest.approx(0.2)


def test_a_finite_element_where_infinity_is_expected_is_infinitely_off() -> None:
    found = compare("y", np.array([1.0, 2.0]), np.array([np.inf, 2.0]), 1e-5, 1e-6)
    assert (found.largest_absolute, found.largest_relative, found.outside) == (np.inf, np.inf, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint64, np.bool_])
def test_scalars_are_compared_as_arrays_are(dtype: type) -> None:
    one, zero = np.array(1, dtype), np.array(0, dtype)
    same = compare("y", one, one, 0, 0)
    assert (same.within, same.position, same.outside) == (True, (), 0)
    assert str(same).startswith("y: agrees: largest absolute error 0, ")
    off = compare("y", one, zero, 0, 0)
    assert (off.within, off.largest_absolute, off.outside) == (False, 1.0, 1)


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [
        *(("float32", "C"), ("float32", "F"), ("float32", "strided")),
        *(("bfloat16", "F"), ("int64", "strided"), ("uint8", "C")),
    ],
)
def test_large_arrays_are_compared_in_blocks(dtype: str, layout: str) -> None:
    """Three elements differ, in three blocks; f64 copies of both would be 19 MB."""
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    reference = np.ones((600, 2, 1000), kind, order="F" if layout == "F" else "C")
    reference = (
        reference[:, :, ::1] if layout != "strided" else np.ones((600, 4, 1000), kind)[:, ::2]
    )
    actual = reference.copy(order="K")
    for where, value in (((20, 1, 999), 3), ((300, 0, 5), 17), ((599, 1, 999), 17)):
        actual[where] = value
    found = compare("y", actual, reference, 0, 0)
    peak = traced_peak(lambda: compare("y", actual, reference, 0, 0))
    assert found[1:7] == (False, 16.0, 16.0, (300, 0, 5), 3, 1_200_000)
    assert found.note == f" ({kind.type(17)}, the reference has {kind.type(1)})"
    assert peak < 8 << 20


@pytest.mark.parametrize(("reference", "code", "verdict"), [(2.5, 0, "agrees"), (3, 1, "DIFFERS")])
def test_a_model_that_returns_a_mean(
    tmp_path: Path, reference: float, code: int, verdict: str
) -> None:
    """The mean of 1, 2, 3, 4 is 2.5, an array without axes."""
    ir = IR()
    axes = ir.const(np.array([0], np.int64))
    ir.result(ir.layer("ReduceMean", [ir.parameter("x", "4"), axes], {"keep_dims": "false"}))
    model = ir.save(tmp_path)
    np.save(tmp_path / "x.npy", np.array([1, 2, 3, 4], np.float32))
    np.save(tmp_path / "y.npy", np.float32(reference))
    arguments = [model, "--input", tmp_path / "x.npy", "--expect", tmp_path / "y.npy"]
    done = invoke(*arguments)
    assert done.exit_code == code, done.stderr
    assert f": {verdict}: largest absolute error {abs(2.5 - reference):.3g}" in done.stderr
    (found,) = json.loads(invoke(*arguments, "--json").stdout)["comparisons"]
    assert (found["position"], found["elements"]) == ([], 1)
