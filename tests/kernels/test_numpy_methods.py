"""The NumPy fallback: sub-convolutions, tiles, the choice of the method, reproducibility."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.cases import Layer
from support import batches

from deconv_ir import kernels
from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.kernels import naive, pack_convolution, pack_deconvolution
from deconv_ir.kernels.numpy.subconvolution import spans, sub_convolutions
from deconv_ir.kernels.problem import Problem

METHODS = ["im2col", "gemm_col2im"]


def problem(kernel, stride, channels_in, channels_out, groups=1, dilation=1, axes=2):
    return Problem(
        groups, channels_in, channels_out, (kernel,) * axes, (stride,) * axes, (dilation,) * axes
    )


def test_sub_convolutions_of_kernel_3_stride_2():
    # full[2u] = x[u] w0 + x[u - 1] w2, full[2u + 1] = x[u] w1
    even, odd = (s.axes[0] for s in sub_convolutions(problem(3, 2, 1, 1, axes=1)))
    assert (even.remainders, even.kernel, even.start, even.step) == ((0,), ((2, 0),), -1, 1)
    assert (odd.remainders, odd.kernel, odd.start) == ((1,), ((1,),), 0)


def test_sub_convolutions_of_dilated_taps():
    # Taps at 0, 3, 6 with stride 2: 0 and 6 are even, three positions u apart.
    parts = sub_convolutions(problem(3, 2, 1, 1, dilation=3, axes=1))
    axes = [part.axes[0] for part in parts]
    assert [(a.remainders, a.kernel, a.start, a.step) for a in axes] == [
        ((0,), ((2, 0),), -3, 3),
        ((1,), ((1,),), -1, 3),
    ]


@pytest.mark.parametrize("forward", [False, True])
def test_positions_that_see_data(forward):
    """By the definition, an output is computed if some tap reaches data."""
    for x, k, s, d, shifted, y in np.ndindex(4, 4, 4, 4, 9, 8):
        stride, dilation, pad = s + 1, d + 1, shifted - 4
        layer = Problem(1, 1, 1, (k + 1,), (stride,), (dilation,), forward)
        (span,) = spans(layer, (x,), (pad,), (y,))
        computed = set()
        for part in sub_convolutions(layer):
            (axis,) = part.axes
            for remainder in axis.remainders:
                first, last = span.clip(remainder, *span.reached(axis))
                computed |= {span.stride * u + remainder - span.pad for u in range(first, last)}
        assert computed <= set(range(y))
        for out in set(range(y)) - computed:
            for tap in range(k + 1):
                at = stride * out + dilation * tap - pad
                if not forward:
                    at, rest = divmod(out + pad - dilation * tap, stride)
                    at = -1 if rest else at
                assert not 0 <= at < x


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("groups", "outs", "extents"),
    [
        *((1, 1, (1,)), (3, 5, (7, 9)), (64, 1, (20, 20)), (1, 600, (4, 4))),
        *((1, 4, (0, 3)), (2, 0, (4,))),
    ],
    ids=str,
)
def test_tiles_give_every_result_once_within_the_scratchpad(method, groups, outs, extents):
    """Scratchpads that hold the image, and that are too small for any tile."""
    ones = (1,) * len(extents)
    layer = Layer(groups, 3, outs, extents, (3, 2)[: len(ones)], (2, 3)[: len(ones)], ones, ones,
                  tuple(2 * n for n in extents))  # fmt: skip
    case = layer.case("transposed", np.dtype(np.float32), 2)
    kernel = case.kernel(algorithm=method)
    for scratch_bytes in (1, 50_000, 1 << 20, 1 << 30):
        budget = ScratchpadBudget(scratch_bytes)
        plan = kernel.plan(case.data.shape, case.pads_begin, case.output, budget)
        assert plan.scratchpad_bytes <= max(scratch_bytes, 1 << 20)
        case.check(plan.run([case.data])[0])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_random_layers(draw_case, method, axes):
    for seed in range(6):
        for threads in [1, 3]:
            element = np.dtype(("float32", "float32", "float64", "float16")[seed % 4])
            case = draw_case(seed, element, axes, channels=20 if axes < 3 else 4)
            kernels.set_threads(threads)
            try:
                actual = case.actual(algorithm=method, scratch_bytes=(64 << 20, 300_000)[seed % 2])
            finally:
                kernels.set_threads(None)
            case.check(actual)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scratch", [40_000, 64 << 20])
def test_images_do_not_depend_on_their_batch(method, scratch):
    """Several images share a job, and tiles of other output channels share a panel."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((7, 2 * 40, 9, 6), dtype=np.float32)
    kernel = pack_deconvolution(
        rng.standard_normal((2 * 40, 70, 4, 3), dtype=np.float32),
        strides=(2, 2),
        dilations=(1, 1),
        groups=2,
        algorithm=method,
        scratch_bytes=scratch,
    )
    where = (1, 0), (18, 13)
    alone = np.concatenate([kernel.run(data[i : i + 1], *where) for i in range(len(data))])
    for threads in (1, 2, 5):
        kernels.set_threads(threads)
        try:
            np.testing.assert_array_equal(kernel.run(data, *where), alone)
        finally:
            kernels.set_threads(None)


@pytest.mark.parametrize("algorithm", ["auto", *METHODS])
@pytest.mark.parametrize("seeds", batches(48, 24), ids=str)
def test_odd_geometries(draw_odd_case, algorithm, seeds):
    """Up to six axes, extents of 0, data outside the output's receptive field, depthwise."""
    for seed in seeds:
        case = draw_odd_case(seed, np.dtype(("float32", "int16", "float64", "float16")[seed % 4]))
        scratch = (64 << 20, 3000)[seed // 2 % 2]
        case.check(
            case.actual(algorithm=algorithm, scratch_bytes=scratch),
            algorithm.replace("auto", "compiled"),
        )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_interleaving(draw_case, method, axes):
    """Sub-convolutions may begin anywhere, and the output may have any strides."""
    for stride in [2, 3, 4]:
        for kernel in [1, 2, 3, 4, 7]:
            seed, element = kernel + stride + axes, ("float32", "float16")[(kernel + stride) % 2]
            fixed = {"kernel": (kernel,) * axes, "strides": (stride,) * axes}
            case = draw_case(seed, np.dtype(element), axes, **fixed)
            packed = pack_deconvolution(case.filter, algorithm=method, **case.static)
            case.check(packed.run(case.data, case.pads_begin, case.output))
            out = np.empty(case.expected().shape[::-1], element).T
            case.check(packed.run(case.data, case.pads_begin, case.output, out))


def test_outputs_that_no_tap_reaches_are_exact_zeros():
    # Stride 2 and dilation 3: by the definition no pair of x and k contributes there.
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 5, 11, 12)).astype(np.float32)
    weights = rng.standard_normal((5, 4, 2, 2)).astype(np.float32)
    static = {"strides": (2, 2), "dilations": (3, 3)}
    full = {"pads_begin": (0, 0), "output": (26, 28)}
    ones = naive(np.ones_like(data), np.ones_like(weights), groups=1, **static, **full)
    assert (ones == 0).any()
    for algorithm in METHODS:
        actual = pack_deconvolution(weights, algorithm=algorithm, **static).run(
            data, *full.values()
        )
        assert np.all(actual[ones == 0] == 0)


@pytest.mark.parametrize("algorithm", METHODS)
def test_a_large_bias_is_added_last(algorithm):
    # Sums of the data are near 1.  Beside a bias of 2^20 each of 64 * 9 terms would be rounded to
    # 2^-4 if the bias were the first value of the sums.
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 64, 9, 9)).astype(np.float32)
    weights = (rng.standard_normal((64, 8, 3, 3)) / 24).astype(np.float32)
    bias = np.full(8, 2.0**20, np.float32)
    static = {"strides": (1, 1), "dilations": (1, 1)}
    exact = naive(
        data.astype(np.float64),
        weights.astype(np.float64),
        groups=1,
        pads_begin=(1, 1),
        output=(9, 9),
        bias=bias.astype(np.float64),
        **static,
    )
    actual = pack_deconvolution(weights, bias=bias, algorithm=algorithm, **static).run(
        data, (1, 1), (9, 9)
    )
    # Half an ulp of the result, and a little for the error of the sums.
    assert np.abs(actual - exact).max() <= 2.0**-4 * 1.01


LAYERS = {
    "stride 1": ((3, 40, 33, 37), (40, 48, 3, 3), (1, 1), (1, 1), 1),
    "few output channels": ((3, 96, 33, 37), (96, 8, 4, 4), (2, 2), (1, 1), 1),
    "small planes": ((3, 256, 4, 4), (256, 128, 4, 4), (2, 2), (1, 1), 1),
    "depthwise": ((3, 64, 40, 44), (64, 1, 4, 4), (2, 2), (1, 1), 64),
    "one axis": ((3, 64, 5001), (64, 32, 16), (8,), (4,), 1),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("algorithm", METHODS)
def test_bits_depend_on_the_layer_and_one_image_alone(layer, algorithm):
    shape, weights_shape, strides, pads, groups = LAYERS[layer]
    rng = np.random.default_rng(0)
    data = rng.standard_normal(shape).astype(np.float32)
    weights = rng.standard_normal(weights_shape).astype(np.float32)
    kernel = pack_deconvolution(
        weights, strides=strides, dilations=(1,) * len(strides), groups=groups, algorithm=algorithm
    )
    output = tuple(s * x for s, x in zip(strides, shape[2:], strict=True))
    try:
        kernels.set_threads(1)
        expected = kernel.run(data, pads, output)
        for threads in (2, 3, 8):
            kernels.set_threads(threads)
            np.testing.assert_array_equal(kernel.run(data, pads, output), expected)
        for image in range(len(data)):
            alone = kernel.run(data[image : image + 1], pads, output)
            np.testing.assert_array_equal(alone[0], expected[image])
        # A run with another shape comes first, and the other image contains a NaN.
        kernel.run(data[..., :3], pads, output)
        data[1, 2] = np.nan
        actual = kernel.run(data, pads, output)
        np.testing.assert_array_equal(actual[[0, 2]], expected[[0, 2]])
        assert np.isnan(actual[1]).any()
    finally:
        kernels.set_threads(None)


@pytest.mark.parametrize("algorithm", METHODS)
@pytest.mark.parametrize("exponent", [-20, -10, 10, 20])
def test_channels_are_not_mixed_before_the_product(algorithm, exponent):
    """A channel times r, its weights times 1/r: powers of two do not change any bit."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 32, 17, 19)).astype(np.float32)
    weights = rng.standard_normal((32, 16, 4, 4)).astype(np.float32)
    static = {"strides": (2, 2), "dilations": (1, 1), "algorithm": algorithm}
    expected = pack_deconvolution(weights, **static).run(data, (1, 1), (34, 38))
    data[:, 5] *= 2.0**exponent
    weights[5] *= 2.0**-exponent
    actual = pack_deconvolution(weights, **static).run(data, (1, 1), (34, 38))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kind", [pack_convolution, pack_deconvolution])
def test_a_small_layer_needs_a_small_scratchpad(kind):
    """The plan once reserved 8 MiB for 18 KiB of weights."""
    weights = np.ones((32, 16, 3, 3), np.float32)
    kernel = kind(weights, strides=(1, 1), dilations=(1, 1), algorithm="numpy")
    channels = kernel.problem.channels_in
    plan = kernel.plan((1, channels, 8, 8), (1, 1), (8, 8))
    assert 0 < plan.scratchpad_bytes < 200_000
