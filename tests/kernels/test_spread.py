"""Strides far beyond the kernel: gaps only cost the time to write them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deconv_ir.kernels import Activation, ActivationType, naive, pack_deconvolution

ALGORITHMS = ["auto", "im2col", "gemm_col2im"]
FAR = 70_000


@pytest.mark.parametrize(
    ("algorithm", "element"),
    [("auto", "float32"), ("auto", "int8"), ("im2col", "float16"), ("gemm_col2im", "float32")],
)
@pytest.mark.parametrize("pad", [0, 1, 3, -2, FAR - 1, FAR + 2, 3 * FAR, 9 * FAR])
@pytest.mark.parametrize("extent", [1, 5, FAR + 1, 2 * FAR + 9])
def test_products_lie_where_the_oracle_has_them(algorithm, element, pad, extent):
    rng = np.random.default_rng(0)
    data = rng.integers(-4, 5, (2, 4, 4)).astype(element)
    weights = rng.integers(-4, 5, (4, 3, 3)).astype(element)
    bias = rng.integers(-4, 5, 6).astype(element)
    arguments = {"strides": (FAR,), "dilations": (2,), "groups": 2, "bias": bias}
    kernel = pack_deconvolution(weights, algorithm=algorithm, **arguments)
    found = kernel.run(data, (pad,), (extent,))
    expected = naive(data, weights, pads_begin=(pad,), output=(extent,), **arguments)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("strides", [(300, 1, 300), (1, FAR, 2), (400, 400, 3)])
def test_several_axes(algorithm, strides):
    """Axes without gaps are computed in the usual way."""
    rng = np.random.default_rng(0)
    data = rng.integers(-4, 5, (1, 3, 2, 3, 2)).astype(np.float32)
    weights = rng.integers(-4, 5, (3, 2, 2, 3, 2)).astype(np.float32)
    arguments = {"strides": strides, "dilations": (1, 2, 1), "groups": 1}
    output = tuple(min(s + 4, 410) for s in strides)
    kernel = pack_deconvolution(weights, algorithm=algorithm, **arguments)
    for pads in itertools.product((0, 2), repeat=3):
        found = kernel.run(data, pads, output)
        expected = naive(data, weights, pads_begin=pads, output=output, **arguments)
        np.testing.assert_array_equal(found, expected)


def test_gaps_hold_the_activated_bias_whatever_the_data():
    """An infinite weight and a NaN only affect their own products."""
    weights = np.float32([[[np.inf, 2]], [[1, 1]]])
    kernel = pack_deconvolution(
        weights,
        strides=(10**6,),
        dilations=(1,),
        bias=np.float32([-3]),
        activation=Activation(ActivationType.LEAKY_RELU, slope=0.5),
    )
    found = kernel.run(np.float32([[[1, 5], [np.nan, 0]]]), (0,), (10**6 + 2,))[0, 0]
    expected = np.full(10**6 + 2, -1.5, np.float32)
    expected[[0, 1, -2, -1]] = np.nan, np.nan, np.inf, 7
    np.testing.assert_array_equal(found, expected)
