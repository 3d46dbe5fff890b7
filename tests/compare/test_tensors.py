"""Statistics of two tensors, compared with NumPy's formulas over the whole arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deconv_ir.compare.tensors import TensorDifference, compare_tensors


def compare(
    a: np.ndarray, b: np.ndarray, rtol: float = 1e-4, atol: float = 0.0
) -> TensorDifference:
    return compare_tensors("t", "'t' (Add, id 1)", 1, a, b, rtol, atol)


@pytest.mark.parametrize("shape", [(3, 4, 5), (1 << 18,), (3, (1 << 18) + 7), ()])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_figures(shape: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal(shape).astype(dtype)
    b = (a + 1e-2 * rng.standard_normal(shape)).astype(dtype)
    found = compare(np.asarray(a), np.asarray(b))
    x, y = np.float64(a), np.float64(b)
    scale = np.abs(x).max()
    assert found.scale == scale
    assert found.largest == np.abs(x - y).max()
    assert found.relative == found.largest / scale
    assert found.rms == pytest.approx(math.sqrt(np.mean((x - y) ** 2)), rel=1e-9)
    cosine = np.sum(x * y) / math.sqrt(np.sum(x * x) * np.sum(y * y))
    assert found.cosine == pytest.approx(cosine, rel=1e-9)
    bad = np.abs(x - y) > 1e-4 * scale
    assert found.outside == bad.sum()
    assert found.elements == a.size
    assert found.first == tuple(np.argwhere(np.atleast_1d(bad))[0])[: np.ndim(a)]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("a", "b", "within", "nans", "infinities"),
    [
        ([1, NAN], [1, NAN], True, (1, 1), (0, 0)),
        ([1, NAN], [1, 2], False, (1, 0), (0, 0)),
        ([1, 2], [1, NAN], False, (0, 1), (0, 0)),
        ([1, INF], [1, INF], True, (0, 0), (1, 1)),
        ([1, INF], [1, -INF], False, (0, 0), (1, 1)),
        ([INF, INF], [INF, 3], False, (0, 0), (2, 1)),
        ([NAN], [NAN], True, (1, 1), (0, 0)),
        ([0.0], [-0.0], True, (0, 0), (0, 0)),
    ],
)
def test_special_values(a, b, within, nans, infinities) -> None:
    found = compare(np.float32(a), np.float32(b))
    assert (found.within, found.nans, found.infinities) == (within, nans, infinities)
    assert math.isinf(found.largest) is not within


def test_elements_around_the_tolerance() -> None:
    a = np.float64([100.0, 0.0, 0.0])
    assert compare(a, a + np.float64((0, 0.009, 0))).within
    assert compare(a, a + np.float64((0, 0.011, 0))).first == (1,)
    assert compare(a, a + np.float64((0, 0.011, 0)), atol=0.01).within
    assert compare(a, a + np.float64((0, 0.011, 0)), rtol=0).outside == 1


@pytest.mark.parametrize(("a", "b"), [((2, 3), (3, 2)), ((4,), (2, 2)), ((), (1, 1)), ((), (2,))])
def test_other_shapes_differ(a, b) -> None:
    found = compare(np.zeros(a), np.zeros(b))
    assert not found.within
    assert found.first is None
    assert str(list(a)) in found.note
    assert str(list(b)) in found.note


@pytest.mark.parametrize("shapes", [((), (1,)), ((1,), ())])
def test_a_scalar_may_have_shape_1(shapes: tuple[tuple[int, ...], ...]) -> None:
    """ONNX has trip counts and sizes of shape [] where an IR has [1], and the reverse."""
    a, b = (np.full(shape, 3.0) for shape in shapes)
    found = compare(a, b)
    assert found.within
    assert found.note == f"shape {list(shapes[0])} in A, {list(shapes[1])} in B"
    wrong = compare(a, b + 1)
    assert not wrong.within
    assert wrong.first == (0,) * len(shapes[0])
    assert wrong.note == "3.0 in A, 4.0 in B"


def test_empty_and_zero_tensors_agree() -> None:
    assert compare(np.zeros((0, 3)), np.zeros((0, 3))) == compare(np.ones((0, 3)), np.ones((0, 3)))
    assert compare(np.zeros(3), np.zeros(3)).within
    assert compare(np.zeros(3), np.ones(3)).relative == INF


def test_integers_and_booleans() -> None:
    assert compare(np.int64([3, 4]), np.int64([3, 5])).largest == 1
    assert compare(np.array([True, False]), np.array([True, True])).outside == 1


def test_squares_do_not_overflow() -> None:
    found = compare(np.float32([3e38, 1e38]), np.float32([3e38, 1e38]))
    assert found.cosine == pytest.approx(1)
    assert found.rms == 0
