"""Semantics, 'Numbers': precision, exact integers, NaN and infinity."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from support import in_turn

from deconv_ir.kernels import naive, pack_deconvolution

INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


def run(data, weights, strides, pads_begin, output, algorithm, bias=None):
    return pack_deconvolution(
        weights, strides=strides, dilations=(1,) * len(strides), bias=bias, algorithm=algorithm
    ).run(data, pads_begin, output)


@pytest.mark.parametrize(
    ("corner", "channels"),
    [(("min", "min"), 600), (("min", "max"), 1), (("min", "max"), 600), (("max", "max"), 600)],
    ids=str,
)
def test_integers_wrap_at_the_corners(algorithm, corner, channels):
    for integer in INTEGERS:
        # 600 channels of -128 * -128 need 24 bits, of 255 * 255 more: f32 must not be used then.
        info = np.iinfo(integer)
        data = np.full((1, channels, 5), getattr(info, corner[0]), integer)
        weights = np.full((channels, 2, 3), getattr(info, corner[1]), integer)
        weights[0, 0, 0] = 1
        bias = np.array([info.max, info.min], integer)
        actual = run(data, weights, (2,), (-1,), (13,), algorithm, bias)
        # Python's integers as oracle, so that wrapping in the loops is tested too.
        total = [[int(b)] * 13 for b in bias]
        for x, i, o, k in np.ndindex(5, channels, 2, 3):
            total[o][2 * x + k + 1] += int(data[0, i, x]) * int(weights[i, o, k])
        bits = integer.itemsize * 8
        wrapped = [
            [
                (v + (-info.min)) % (1 << bits) + info.min if info.min else v % (1 << bits)
                for v in row
            ]
            for row in total
        ]
        assert actual[0].tolist() == wrapped


@pytest.mark.parametrize("element", [np.float16, ml_dtypes.bfloat16], ids=str)
def test_half_types_are_rounded_once(algorithm, element):
    # Values with few bits: f32 sums them exactly, so the only rounding is the last one.
    rng = np.random.default_rng(0)
    data = (rng.integers(-64, 65, (1, 40, 9, 9)) / 16).astype(element)
    weights = (rng.integers(-64, 65, (40, 3, 3, 3)) / 16).astype(element)
    bias = (rng.integers(-64, 65, 3) / 64).astype(element)
    exact = naive(
        data.astype(np.float64),
        weights.astype(np.float64),
        strides=(2, 1),
        dilations=(1, 1),
        groups=1,
        pads_begin=(1, 1),
        output=(17, 9),
        bias=bias.astype(np.float64),
    )
    assert np.abs(exact).max() > 100
    actual = run(data, weights, (2, 1), (1, 1), (17, 9), algorithm, bias)
    np.testing.assert_array_equal(actual, exact.astype(element))


def test_half_overflows_to_infinity_without_a_warning(algorithm):
    data = np.full((1, 1, 2), 60000, np.float16)
    weights = np.full((1, 1, 1), 2, np.float16)
    assert np.isposinf(run(data, weights, (1,), (0,), (2,), algorithm)).all()


@pytest.mark.parametrize(
    ("row", "element"),
    in_turn(
        itertools.product(("data", "filter"), ((1, 1), (2, 2), (3, 1)), (np.inf, -np.inf, np.nan)),
        ["float32", "float64", "float16", "float32", "bfloat16"],
        2,
    ),
)
def test_non_finite_values_stay_where_the_sum_puts_them(algorithm, element, row):
    where, strides, value = row
    dtype = np.dtype(getattr(np, element, None) or getattr(ml_dtypes, element))
    rng = np.random.default_rng(1)
    data = rng.integers(1, 5, (1, 3, 4, 5)).astype(dtype)
    weights = rng.integers(1, 5, (3, 2, 3, 3)).astype(dtype)
    if where == "data":
        data[0, 1, 2, 3] = value
    else:
        weights[1, 0, 0, 2] = value
    output = tuple(s * (x - 1) + 5 for s, x in zip(strides, (4, 5), strict=True))
    actual = run(data, weights, strides, (-1, -1), output, algorithm)
    expected = naive(
        data,
        weights,
        strides=strides,
        dilations=(1, 1),
        groups=1,
        pads_begin=(-1, -1),
        output=output,
    )
    assert not np.isfinite(expected.astype(np.float64)).all()
    assert np.isfinite(expected.astype(np.float64)).any()
    np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("pads_begin", [(2, 2), (0, 1), (-3, 5)], ids=str)
def test_infinite_weight_makes_no_nan_at_the_edges(algorithm, pads_begin):
    data = np.ones((1, 1, 6, 6), np.float32)
    weights = np.full((1, 1, 4, 4), np.inf, np.float32)
    actual = run(data, weights, (2, 2), pads_begin, (17, 17), algorithm)
    assert not np.isnan(actual).any()
    assert np.isinf(actual).any()


def test_bias_is_added_where_no_tap_reaches(algorithm, dtype):
    data, weights = np.ones((2, 1, 2), dtype), np.ones((1, 1, 1), dtype)
    actual = run(data, weights, (3,), (-2,), (8,), algorithm, np.array([5], dtype))
    assert actual.astype(int).tolist() == [[[5, 5, 6, 5, 5, 6, 5, 5]]] * 2


def test_zero_extents(algorithm, dtype):
    for shape in [(0, 4, 3, 3), (2, 4, 0, 3), (2, 4, 0, 0)]:
        weights = np.ones((4, 2, 3, 3), dtype)
        actual = run(np.ones(shape, dtype), weights, (2, 2), (1, 1), (4, 5), algorithm)
        assert actual.shape == (shape[0], 2, 4, 5)
        assert not actual.astype(bool).any()


def test_no_input_channels(algorithm):
    weights = np.ones((0, 2, 3), np.float32)
    actual = run(np.ones((1, 0, 4), np.float32), weights, (2,), (0,), (9,), algorithm)
    assert actual.shape == (1, 2, 9)
    assert not actual.any()


@pytest.mark.parametrize("dilation", [65537, 2**40, 2**62, 2**63 - 1])
def test_taps_far_apart(algorithm, dilation):
    """Found by mutation: distances beyond NumPy's strides, and tiles that were all edge."""
    data, weights = np.ones((1, 2, 3, 3), np.float32), np.ones((2, 2, 2, 1), np.float32)
    static = {"strides": (1, 1), "dilations": (dilation, 1), "groups": 1}
    for pad in (0, dilation - 1):
        expected = naive(data, weights, pads_begin=(pad, 0), output=(4, 3), **static)
        found = pack_deconvolution(weights, **static, algorithm=algorithm).run(
            data, (pad, 0), (4, 3)
        )
        np.testing.assert_array_equal(found, expected)
