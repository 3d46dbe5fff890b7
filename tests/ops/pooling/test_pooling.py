"""MaxPool and AvgPool against SciPy, and against values worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.ndimage

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_max_pool_against_scipy(run) -> None:
    data = normal(1, 1, 8, 9)
    expected = scipy.ndimage.maximum_filter(data[0, 0], 3, mode="constant", cval=-np.inf)
    found, where = run(
        "MaxPool-8", data, kernel="3,3", strides="1,1", pads_begin="1,1", pads_end="1,1"
    )
    np.testing.assert_array_equal(found[0, 0], expected)
    np.testing.assert_array_equal(data.ravel()[where], found)


POOLS = [
    # X = 1..5, window 2, stride 2: ceil counts the half window, floor does not.
    ("MaxPool", {"rounding_type": "floor"}, [2, 4]),
    ("MaxPool", {"rounding_type": "ceil"}, [2, 4, 5]),
    ("AvgPool", {"rounding_type": "ceil", "exclude-pad": "true"}, [1.5, 3.5, 5]),
    ("AvgPool", {"pads_begin": "1", "exclude-pad": "true"}, [1, 2.5, 4.5]),
    ("AvgPool", {"pads_begin": "1", "exclude-pad": "false"}, [0.5, 2.5, 4.5]),
    # torch.nn.functional.avg_pool1d(ceil_mode=True, padding=1): the last window is cut at the pad.
    (
        "AvgPool-14",
        {"pads_begin": "1", "pads_end": "1", "rounding_type": "ceil_torch", "exclude-pad": "false"},
        [0.5, 2.5, 4.5],
    ),
]


@pytest.mark.parametrize(("kind", "attributes", "expected"), POOLS)
def test_pool(run, kind: str, attributes, expected) -> None:
    data = np.arange(1.0, 6.0, dtype=np.float32).reshape(1, 1, 5)
    written = {"kernel": "2", "strides": "2", "pads_begin": "0", "pads_end": "0"} | attributes
    found = run(kind, data, **written)
    np.testing.assert_allclose((found[0] if isinstance(found, tuple) else found)[0, 0], expected)


def test_a_pool_hands_nan_on(run) -> None:
    """Semantics, 'Numbers': NaN propagates as in IEEE arithmetic."""
    data = np.array([[[1.0, math.nan, 3.0, 4.0]]], np.float32)
    found, where = run("MaxPool-8", data, kernel="2", strides="2")
    assert math.isnan(found[0, 0, 0])
    assert found[0, 0, 1] == 4
    assert where.tolist() == [[[1, 3]]]


def test_adaptive_pools_of_many_positions_pool_each_window_once(run) -> None:
    """Two elements have three different windows, whatever the number of positions."""
    data = np.array([[[1.0, 3.0]]], np.float32)
    found = run("AdaptiveAvgPool-8", data, [100_001])
    assert found[0, 0, [0, 50_000, 100_000]].tolist() == [1, 2, 3]
    greatest, where = run("AdaptiveMaxPool-8", data, [3])
    assert greatest.tolist() == [[[1, 3, 3]]]
    assert where.tolist() == [[[0, 1, 1]]]
