"""MaxPool and AvgPool against SciPy, and against values worked by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.ndimage
from operation_forms import make

from deconv_ir import Semantics
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.operation import Context, TensorInfo

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


ALONE = [
    # Windows of 2 over 5 elements, by hand: what is not data is -inf (MaxPool-1, -8 and -14).
    ({"pads_begin": "2", "strides": "2"}, [None, 2, 4]),
    ({"pads_end": "4", "strides": "2"}, [2, 4, 5, None]),
    # A window that rounding up adds, and that begins behind the data.
    ({"kernel": "1", "strides": "3", "pads_end": "1", "rounding_type": "ceil"}, [1, 4, None]),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("kind", ["MaxPool-1", "MaxPool-8", "MaxPool-14"])
@pytest.mark.parametrize(("attributes", "expected"), ALONE)
def test_a_window_of_padding_alone(kind: str, attributes, expected, dtype) -> None:
    """-inf by the documents, the lowest finite number in the runtime; the layer is reported."""
    written = {"kernel": "2", "pads_begin": "0", "pads_end": "0"} | attributes
    layer = make(kind, **written)
    data = np.arange(1, 6).astype(dtype).reshape(1, 1, 5)
    floats = data.dtype.kind == "f"
    for semantics in Semantics:
        # The runtime computes f64 in f32.
        lowest = np.finfo(np.float32).min if floats else np.iinfo(dtype).min
        if floats and semantics is not Semantics.OPENVINO:
            lowest = -np.inf
        found, *where = layer.execute([data], Context(semantics))
        wanted = [lowest if value is None else value for value in expected]
        assert found.ravel().tolist() == wanted
        assert all(index.shape == found.shape for index in where)
    info = TensorInfo(data.shape, parse_element_type("f32" if floats else "i32"))
    assert (layer.compare_semantics([info], Context()) is not None) == floats


def test_windows_of_padding_alone_are_reported_by_the_definition() -> None:
    """Of all pads, strides, kernels and dilations."""
    seen = set()
    for extent, kernel, stride, dilation, begin, end in itertools.product(
        (1, 2, 5), (1, 2, 3), (1, 2, 3), (1, 2), (0, 1, 2, 3), (0, 1, 3)
    ):
        count = (extent + begin + end - dilation * (kernel - 1) - 1) // stride + 1
        if count < 1:
            continue
        taps = [[o * stride - begin + dilation * t for t in range(kernel)] for o in range(count)]
        expected = any(not any(0 <= at < extent for at in window) for window in taps)
        layer = make(
            "MaxPool-8",
            kernel=str(kernel),
            strides=str(stride),
            dilations=str(dilation),
            pads_begin=str(begin),
            pads_end=str(end),
        )
        info = TensorInfo((1, 1, extent), parse_element_type("f32"))
        reported = layer.compare_semantics([info], Context()) is not None
        assert reported == expected, (extent, kernel, stride, dilation, begin, end)
        seen.add(expected)
    assert seen == {True, False}


def test_windows_that_all_meet_data_are_not_reported() -> None:
    layer = make("MaxPool-8", kernel="2", strides="2", pads_begin="1", pads_end="1")
    info = TensorInfo((1, 1, 5), parse_element_type("f32"))
    assert layer.compare_semantics([info], Context()) is None
