"""Large arrays, computed in blocks on several threads, give the same results as small ones."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from operation_forms import make

from deconv_ir.ir.operation import Context
from deconv_ir.ops.elementwise.blocks import Blocks, in_blocks


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# Shapes larger than a block, which are divided differently: flat, by rows, within a row.
SHAPES = [((70_001,), (70_001,)), ((3, 5, 7_001), (5, 1)), ((2, 1, 40_000), (1, 3, 1)),
          ((2, 40_001), (1,)), ((3, 40_000), (3, 40_000))]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["Add", "Power", "SquaredDifference"])
def test_large_arrays_are_as_small_ones(kind: str, shapes, dtype) -> None:
    """Blocks write into an array or over an input, in every type; each result is rounded once."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 2, shape).astype(dtype) for shape in shapes)
    operation = make(kind)
    (expected,) = operation.execute([a, b], Context())
    if dtype is np.float32:
        function = {"Add": np.add, "Power": np.power, "SquaredDifference": None}[kind]
        exact = (a - b) ** 2 if function is None else function(a, b)
        np.testing.assert_array_equal(expected, exact)
    out = np.empty(expected.shape, dtype)
    operation.execute_into([a, b], Context(), out)
    np.testing.assert_array_equal(out, expected)
    if a.shape == expected.shape:
        operation.execute_into([a, b], Context(), a)
        np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_views_and_slopes_in_blocks(dtype) -> None:
    """PReLU-1 with a slope for each channel, of data whose elements are not contiguous."""
    data = np.random.default_rng(0).standard_normal((300, 4, 50)).astype(dtype).transpose(2, 1, 0)
    slope = np.array([0.5, 0, -1, 0.25], dtype)
    wide, factor = data.astype(np.float64), slope.astype(np.float64)[:, None]
    expected = np.where(wide < 0, wide * factor, wide).astype(dtype)
    out = np.empty(data.shape, dtype)
    make("PReLU").execute_into([data, slope], Context(), out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("axes", [[1], [2, 3], [1, 2, 3], [0, 2]], ids=str)
def test_large_arrays_are_normalised_by_blocks(run, axes: list[int]) -> None:
    """MVN-6, 'Detailed description': arrays larger than a thread's block, along any axes."""
    data = normal(3, 40, 70, 60)
    wide, where = data.astype(np.float64), tuple(axes)
    centred = wide - wide.mean(where, keepdims=True)
    expected = centred / np.sqrt(wide.var(where, keepdims=True) + 1e-3)
    found = run("MVN-6", data, axes, normalize_variance=True, eps=1e-3, eps_mode="inside_sqrt")
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["MaxPool", "MaxPool-8", "AvgPool"])
def test_large_arrays_are_pooled_by_blocks(run, kind: str) -> None:
    """Adjacent windows of 2x2, on arrays larger than a thread's block."""
    data = normal(5, 7, 130, 128)
    windows = data.reshape(5, 7, 65, 2, 64, 2)
    attributes = {"exclude__pad": "true"} if kind == "AvgPool" else {}
    found = run(
        kind, data, kernel="2,2", strides="2,2", pads_begin="0,0", pads_end="0,0", **attributes
    )
    expected = windows.mean((3, 5)) if kind == "AvgPool" else windows.max((3, 5))
    np.testing.assert_allclose(found[0] if kind == "MaxPool-8" else found, expected, atol=1e-6)


def test_one_element_of_several_axes_beside_rows() -> None:
    rows = np.arange(6 * 50_000, dtype=np.float32).reshape(2, 3, 50_000)[:, ::2]
    out = np.empty(rows.shape, np.float32)
    number = np.full((1, 1, 1), 2, np.float32)
    in_blocks(lambda a, b, to: np.multiply(a, b, out=to), [rows, number], out, Blocks(4096, 1))
    np.testing.assert_array_equal(out, 2 * rows)
