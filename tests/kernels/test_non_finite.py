"""Weights that are not finite: NaN and infinity appear where the loops give them."""

from __future__ import annotations

import numpy as np
import pytest
from support import batches

from deconv_ir import kernels
from deconv_ir.kernels import (
    Activation,
    ActivationType,
    naive,
    naive_convolution,
    pack_convolution,
    pack_deconvolution,
)
from deconv_ir.kernels.numpy.kernel import NonFiniteKernel

KINDS = {pack_deconvolution: naive, pack_convolution: naive_convolution}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", ["one", "some", "all"])
@pytest.mark.parametrize("seeds", batches(12, 12), ids=str)
def test_patterns(algorithm, kind, share, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        element = ("float32", "float16", "float64")[seed // 3 % 3]
        axes, groups = 1 + seed % 3, (1, 1, 3)[seed % 3]

        def vector(low, high, rng=rng, axes=axes):
            return tuple(int(v) for v in rng.integers(low, high + 1, axes))

        strides, dilations, kernel = vector(1, 3), vector(1, 2), vector(1, 4)
        arguments = {"strides": strides, "dilations": dilations, "groups": groups}
        where = {"pads_begin": vector(-2, 3), "output": vector(1, 9)}
        data = rng.integers(-2, 3, (2, 4 * groups, *vector(2, 6))).astype(element)
        weights = rng.integers(1, 4, (4 * groups, 4, *kernel)).astype(element)
        bias = rng.integers(-3, 4, 4 * groups).astype(element)
        number = {"one": 1, "some": 5, "all": weights.size}[share]
        for at in rng.choice(weights.size, number, replace=False):
            weights.flat[at] = rng.choice([np.inf, -np.inf, np.nan])
        if seed % 4 == 3:
            data.flat[rng.choice(data.size)] = np.inf
        expected = KINDS[kind](data, weights, bias=bias, **arguments, **where)
        algorithm = (
            "im2col" if kind is pack_convolution and algorithm == "gemm_col2im" else algorithm
        )
        packed = kind(weights, bias=bias, algorithm=algorithm, **arguments)
        np.testing.assert_array_equal(packed.run(data, *where.values()), expected)
        tight = kind(weights, bias=bias, algorithm=algorithm, scratch_bytes=2000, **arguments)
        np.testing.assert_array_equal(tight.run(data, *where.values()), expected)
        relu = Activation(ActivationType.RELU)
        packed = kind(weights, bias=bias, algorithm=algorithm, activation=relu, **arguments)
        actual = packed.plan(data.shape, *where.values()).run([data])[0]
        np.testing.assert_array_equal(actual, np.maximum(expected, 0))


def test_other_channels_and_images_keep_their_bits(algorithm):
    """The weights of one output channel contain an infinity, and one image contains a NaN."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((3, 16, 20, 21)).astype(np.float32)
    weights = rng.standard_normal((16, 12, 3, 3)).astype(np.float32)
    static = {"strides": (2, 2), "dilations": (1, 1), "algorithm": algorithm}
    expected = pack_deconvolution(weights, **static).run(data, (1, 1), (39, 41))
    weights[3, 5, 1, 1] = np.inf
    kernel = pack_deconvolution(weights, **static)
    actual = kernel.run(data, (1, 1), (39, 41))
    others = [o for o in range(12) if o != 5]
    tolerance = 1e-4 if algorithm == "im2col" else 0  # this algorithm then sums tap by tap
    np.testing.assert_allclose(actual[:, others], expected[:, others], 0, tolerance)
    assert not np.isfinite(actual[:, 5, ::2, ::2]).any()
    if algorithm == "winograd":
        return  # a NaN anywhere makes the compiled kernel sum directly
    data[1, 0, 4, 4] = np.nan
    after = kernel.run(data, (1, 1), (39, 41))
    np.testing.assert_array_equal(after[[0, 2]], actual[[0, 2]])


@pytest.mark.parametrize("threads", [1, 4])
def test_work_beside_the_finite_weights_is_that_of_the_channels_they_lead_to(algorithm, threads):
    """One of 64 channels has an infinite weight: the results of the others are computed once."""
    weights = np.ones((8, 64, 3, 3), np.float32)
    weights[2, 40, 1, 1] = np.inf
    kernels.set_threads(threads)
    try:
        kernel = pack_deconvolution(weights, strides=(1, 1), dilations=(1, 1), algorithm=algorithm)
        if isinstance(kernel, NonFiniteKernel):
            assert kernel.others.outs == slice(40, 41)
        actual = kernel.run(np.ones((1, 8, 9, 9), np.float32), (1, 1), (9, 9))
    finally:
        kernels.set_threads(None)
    # 3 x 3 taps of 8 channels within, 2 x 3 at edges, 2 x 2 in the corners.
    ends = np.array([2, *[3] * 7, 2])
    np.testing.assert_array_equal(actual[0, 0], 8 * np.outer(ends, ends))
    assert np.isposinf(actual[0, 40]).all()
