"""Layers of networks, against loops, SciPy, and values worked by hand."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

from deconv_ir.errors import ShapeError, UnsupportedError
from deconv_ir.kernels import Convolution

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def convolve(data, kernel, strides, dilations, pads, output, groups):
    """The definition of a convolution, in loops."""
    n, c = data.shape[:2]
    per_group = kernel.shape[0] // groups
    result = np.zeros((n, kernel.shape[0], *output), np.float64)
    for y in np.ndindex(*output):
        for k in np.ndindex(*kernel.shape[2:]):
            x = [
                s * i + d * j - p
                for s, i, d, j, p in zip(strides, y, dilations, k, pads, strict=True)
            ]
            if all(0 <= xi < extent for xi, extent in zip(x, data.shape[2:], strict=True)):
                for o in range(kernel.shape[0]):
                    g = o // per_group
                    part = data[(slice(None), slice(g * c // groups, (g + 1) * c // groups), *x)]
                    result[(slice(None), o, *y)] += (
                        part.astype(np.float64) @ kernel[(o, slice(None), *k)]
                    )
    return result


PROBLEMS = [
    ((2, 4, 9), (6, 4, 3), (2,), (1,), (1,), (5,), 1),
    ((1, 4, 6, 7), (4, 2, 3, 2), (1, 2), (2, 1), (2, -1), (5, 3), 2),
    ((2, 4, 5, 6), (8, 1, 3, 3), (1, 1), (1, 1), (1, 1), (5, 6), 4),
    ((1, 2, 4, 5, 4), (3, 2, 2, 2, 3), (1, 2, 1), (1, 1, 1), (0, 1, 3), (3, 3, 8), 1),
    ((2, 3, 4, 4), (5, 3, 1, 1), (1, 1), (1, 1), (0, 0), (4, 4), 1),
]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("scratch", [1 << 10, 64 << 20])
def test_convolution_is_its_definition(problem, scratch: int) -> None:
    data_shape, kernel_shape, strides, dilations, pads, output, groups = problem
    data, kernel, bias = normal(*data_shape), normal(*kernel_shape), normal(kernel_shape[0])
    expected = convolve(data, kernel, strides, dilations, pads, output, groups)
    expected += bias.reshape(-1, *(1 for _ in output))
    found = Convolution(
        kernel,
        strides=strides,
        dilations=dilations,
        groups=groups,
        bias=bias,
        scratch_bytes=scratch,
    ).run(data, pads, output)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64])
def test_convolution_of_integers_is_exact(dtype) -> None:
    info = np.iinfo(dtype)
    data = RNG.integers(info.min, info.max, (1, 3, 6), dtype, endpoint=True)
    kernel = RNG.integers(info.min, info.max, (2, 3, 3), dtype, endpoint=True)
    found = Convolution(kernel, strides=(1,), dilations=(1,)).run(data, (0,), (4,))
    for o, y in itertools.product(range(2), range(4)):
        exact = sum(
            int(data[0, c, y + k]) * int(kernel[o, c, k]) for c in range(3) for k in range(3)
        )
        assert (exact - int(found[0, o, y])) % 2**info.bits == 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_convolution_in_half_precision_is_rounded_once(dtype) -> None:
    data, kernel = normal(1, 8, 6).astype(dtype), normal(4, 8, 3).astype(dtype)
    how = {"strides": (1,), "dilations": (1,)}
    wide = Convolution(kernel.astype(np.float32), **how).run(data.astype(np.float32), (0,), (4,))
    np.testing.assert_array_equal(
        Convolution(kernel, **how).run(data, (0,), (4,)), wide.astype(dtype)
    )


def test_convolution_against_scipy(run) -> None:
    data, kernel = normal(1, 1, 7, 8), normal(1, 1, 3, 4)
    expected = scipy.signal.correlate2d(data[0, 0], kernel[0, 0], "valid")
    np.testing.assert_allclose(run("Convolution", data, kernel)[0, 0], expected, atol=1e-5)


# X, K, stride, auto_pad -> pad_begin, Y (Convolution-1 and pooling, 'auto_pad').
AUTO_PADS = [
    (5, 3, 2, "same_upper", 1, 3),
    (6, 3, 2, "same_upper", 0, 3),
    (6, 3, 2, "same_lower", 1, 3),
    (6, 2, 1, "same_lower", 1, 6),
    (6, 1, 3, "same_upper", 0, 2),
    (7, 3, 2, "valid", 0, 3),
]


@pytest.mark.parametrize(("x", "k", "stride", "auto_pad", "begin", "y"), AUTO_PADS)
def test_auto_pad(
    run, infer, x: int, k: int, stride: int, auto_pad: str, begin: int, y: int
) -> None:
    """The pads attributes do not count, whatever they are."""
    attributes = {"strides": stride, "pads_begin": 9, "pads_end": 9, "auto_pad": auto_pad}
    assert infer("Convolution", f"f32[1,1,{x}]", f"f32[1,1,{k}]", **attributes) == f"[1,1,{y}]"
    data, kernel = normal(1, 1, x), normal(1, 1, k)
    expected = convolve(data, kernel, (stride,), (1,), (begin,), (y,), 1)
    np.testing.assert_allclose(run("Convolution", data, kernel, **attributes), expected, atol=1e-5)


SHAPES = [
    ("Convolution", ("f32[?,3,2..9]", "f32[4,3,3]"), {"strides": "2"}, "[?,4,1..4]"),
    (
        "Convolution",
        ("f32[1,?,8]", "f32[4,3,?]"),
        {"pads_begin": "1", "pads_end": "1"},
        "[1,4,1..10]",
    ),
    ("Convolution", ("f32[...]", "f32[4,3,3,3]"), {}, "[?,4,1..,1..]"),
    (
        "Convolution",
        ("f32[1,3,?]", "f32[4,3,?]"),
        {"strides": "2", "auto_pad": "same_upper"},
        "[1,4,?]",
    ),
    ("GroupConvolution", ("f32[1,4,8]", "f32[2,3,2,3]"), {}, "[1,6,6]"),
    ("MaxPool", ("f32[1,2,?]",), {"kernel": "2", "strides": "2"}, "[1,2,1..]"),
    (
        "AvgPool",
        ("f32[1,2,7]",),
        {"kernel": "2", "strides": "2", "rounding_type": "ceil", "exclude-pad": "true"},
        "[1,2,4]",
    ),
    ("MatMul", ("f32[?,2,3]", "f32[4,3,5]"), {}, "[4,2,5]"),
    ("MatMul", ("f32[2..4,3]", "f32[3]"), {}, "[2..4]"),
    (
        "Interpolate-11",
        ("f32[1,2,3..5,?]", [1.5, 2.0], [2, 3]),
        {"mode": "nearest", "shape_calculation_mode": "scales"},
        "[1,2,4..7,?]",
    ),
    (
        "Interpolate-11",
        ("f32[1,2,3..5,?]", [7, 9], [2, 3]),
        {"mode": "cubic", "shape_calculation_mode": "sizes"},
        "[1,2,7,9]",
    ),
    (
        "GroupNormalization-12",
        ("f32[1,6,?]", "f32[6]", "f32[6]"),
        {"num_groups": "3", "epsilon": "0"},
        "[1,6,?]",
    ),
    (
        "GRUCell-3",
        ("f32[?,3]", "f32[2,4]", "f32[12,3]", "f32[12,4]", "f32[12]"),
        {"hidden_size": "4"},
        "[2,4]",
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "expected"), SHAPES)
def test_dynamic_shapes(infer, kind: str, inputs, attributes, expected: str) -> None:
    assert infer(kind, *inputs, **attributes) == expected


REJECTED = [
    (
        "Convolution",
        ("f32[1,3,8]", "f32[4,2,3]"),
        {},
        "channels do not fit: data has 3, filter takes 2",
    ),
    ("Convolution", ("f32[1,3,8]", "f32[4,3,3,3]"), {}, "ranks do not fit"),
    (
        "Convolution",
        ("f32[1,3,2]", "f32[4,3,3]"),
        {},
        "the window does not fit the padded data on spatial axis 0",
    ),
    (
        "Convolution",
        ("f32[1,3,8]", "f32[4,3,3]"),
        {"strides": "1,1"},
        "strides must have 1 elements",
    ),
    ("GroupConvolution", ("f32[1,5,8]", "f32[2,3,2,3]"), {}, r"filter takes 2 groups \* 2 = 4"),
    ("MaxPool", ("f32[1,2,8]",), {"kernel": "2,2"}, "kernel must have 1 elements"),
    ("MatMul", ("f32[2,3]", "f32[4,5]"), {}, "inner dims differ"),
    (
        "MatMul",
        ("f32[2,4,3]", "f32[5,3,4]"),
        {},
        r"batch dims of a \[2,4,3\] and b \[5,3,4\] do not broadcast",
    ),
    (
        "GroupNormalization-12",
        ("f32[1,5]", "f32[5]", "f32[5]"),
        {"num_groups": "2", "epsilon": "0"},
        "5 channels do not make 2 groups",
    ),
    (
        "BatchNormInference-5",
        ("f32[1,5]", "f32[4]", "f32[5]", "f32[5]", "f32[5]"),
        {"epsilon": "0"},
        r"gamma must have shape \[5\]",
    ),
    (
        "LSTMCell-4",
        ("f32[2,3]", "f32[2,4]", "f32[2,4]", "f32[16,5]", "f32[16,4]", "f32[16]"),
        {"hidden_size": "4"},
        "W .* does not fit: 5 where 3 is needed",
    ),
    (
        "Interpolate-11",
        ("f32[1,2,3]", [2.0], [1, 2]),
        {"mode": "cubic", "shape_calculation_mode": "scales"},
        "2 axes, but 1 sizes or scales",
    ),
    (
        "Interpolate-11",
        ("f32[1,2,3]", [-2.0], [2]),
        {"mode": "cubic", "shape_calculation_mode": "scales"},
        "must be positive",
    ),
    (
        "FakeQuantize",
        ("f32[2]", "f32[]", "f32[]", "f32[]", "f32[]"),
        {"levels": "1"},
        "levels must be 2 or greater",
    ),
    ("Einsum-7", ("f32[2,3]", "f32[4,5]"), {"equation": "ij,jk->ik"}, "label 'j' is 3 and 4"),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "message"), REJECTED)
def test_rejected(infer, kind: str, inputs, attributes, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer(kind, *inputs, **attributes)


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
    """Semantics, 'Numbers': NaN propagates as IEEE arithmetic says."""
    data = np.array([[[1.0, math.nan, 3.0, 4.0]]], np.float32)
    found, where = run("MaxPool-8", data, kernel="2", strides="2")
    assert math.isnan(found[0, 0, 0])
    assert found[0, 0, 1] == 4
    assert where.tolist() == [[[1, 3]]]


NORMALISATIONS = [
    (
        "MVN-6",
        ([[1.0, 3.0]], [1]),
        {"normalize_variance": "true", "eps": "3", "eps_mode": "inside_sqrt"},
        [[-0.5, 0.5]],
    ),
    (
        "MVN-6",
        ([[1.0, 3.0]], [1]),
        {"normalize_variance": "true", "eps": "3", "eps_mode": "outside_sqrt"},
        [[-0.25, 0.25]],
    ),
    ("MVN-2", ([[[1.0, 3.0]]],), {"normalize_variance": "false"}, [[[-1, 1]]]),
    ("NormalizeL2", ([[3.0, 4.0]], [1]), {"eps": "0", "eps_mode": "add"}, [[0.6, 0.8]]),
    ("NormalizeL2", ([[3.0, 4.0]], [1]), {"eps": "100", "eps_mode": "max"}, [[0.3, 0.4]]),
    # Bias 1.5 counts as it is; OpenVINO's CPU plugin takes it for 1.
    (
        "LRN",
        ([[[2.0], [4.0]]], [1]),
        {"alpha": "3", "beta": "1", "bias": "1.5", "size": "3"},
        [[[2 / 21.5], [4 / 21.5]]],
    ),
    (
        "BatchNormInference-5",
        ([[1.0, 2.0]], [2.0, 3.0], [1.0, 0.0], [0.0, 1.0], [3.0, 8.0]),
        {"epsilon": "1"},
        [[2, 1]],
    ),
    (
        "BatchNormInference",
        ([2.0, 3.0], [1.0, 0.0], [[1.0, 2.0]], [0.0, 1.0], [3.0, 8.0]),
        {"epsilon": "1"},
        [[2, 1]],
    ),
    (
        "GroupNormalization-12",
        ([[1.0, 3.0, 2.0, 6.0]], [1.0, 1.0, 2.0, 1.0], [0.0, 0.0, 1.0, 0.0]),
        {"num_groups": "2", "epsilon": "0"},
        [[-1, 1, -1, 1]],
    ),
    (
        "FakeQuantize",
        ([-1.0, 0.2, 0.5, 0.9, 2.0], 0.0, 1.0, 10.0, 20.0),
        {"levels": "3"},
        [10, 10, 15, 20, 20],
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "expected"), NORMALISATIONS)
def test_normalisation(run, kind: str, inputs, attributes, expected) -> None:
    np.testing.assert_allclose(run(kind, *inputs, **attributes), expected, rtol=1e-6)


# The 1-D example of each coordinate rule: 2 elements to 4, worked by hand.
INTERPOLATIONS = [
    ("linear_onnx", "half_pixel", [0, 2.5, 7.5, 10]),
    ("linear_onnx", "asymmetric", [0, 5, 10, 10]),
    ("linear_onnx", "align_corners", [0, 10 / 3, 20 / 3, 10]),
    ("linear", "half_pixel", [0, 2.5, 7.5, 10]),
    ("nearest", "asymmetric", [0, 0, 10, 10]),
    ("cubic", "align_corners", [0, 10 * 0.3148148, 10 * 0.6851852, 10]),
]


@pytest.mark.parametrize(("mode", "where", "expected"), INTERPOLATIONS)
def test_interpolation(run, mode: str, where: str, expected) -> None:
    found = run(
        "Interpolate-4", [0.0, 10.0], [4], [2.0], mode=mode, shape_calculation_mode="sizes",
        coordinate_transformation_mode=where, nearest_mode="floor",
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("round_prefer_floor", [1, 2, 4]),
        ("round_prefer_ceil", [1, 3, 4]),
        ("floor", [1, 2, 4]),
        ("ceil", [1, 3, 4]),
        ("simple", [1, 3, 4]),
    ],
)
def test_nearest_mode(run, mode: str, expected) -> None:
    """4 elements to 3 with aligned corners: coordinates 0, 1.5 and 3."""
    found = run(
        "Interpolate-4", [1.0, 2.0, 3.0, 4.0], [3], [1.0], mode="nearest",
        shape_calculation_mode="sizes", coordinate_transformation_mode="align_corners",
        nearest_mode=mode,
    )  # fmt: skip
    assert found.tolist() == expected


def test_interpolation_of_padded_data(run) -> None:
    found = run(
        "Interpolate-11", [1.0, 2.0], [2.0], mode="nearest", shape_calculation_mode="scales",
        pads_begin="1", pads_end="0", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )  # fmt: skip
    assert found.tolist() == [0, 0, 1, 1, 2, 2]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_lstm_cell_is_its_formula(run) -> None:
    """LSTMCell-4, 'Detailed description'; gates f, i, c, o."""
    n, i, h = 2, 3, 4
    x, h0, c0 = normal(n, i), normal(n, h), normal(n, h)
    w, r, b = normal(4 * h, i), normal(4 * h, h), normal(4 * h)
    gates = x @ w.T + h0 @ r.T + b
    f, enter, c, o = (gates[:, k * h : (k + 1) * h] for k in range(4))
    cell = sigmoid(f) * c0 + sigmoid(enter) * np.tanh(c)
    hidden, state = run("LSTMCell-4", x, h0, c0, w, r, b, hidden_size="4")
    np.testing.assert_allclose(state, cell, atol=1e-5)
    np.testing.assert_allclose(hidden, sigmoid(o) * np.tanh(cell), atol=1e-5)
    # Gates f, i, c, o put in the order i, o, f, c.
    moved = [np.concatenate([np.split(m, 4)[k] for k in (1, 3, 0, 2)]) for m in (w, r, b)]
    again, _ = run("LSTMCell", x, h0, c0, *moved, hidden_size="4", weights_format="iofc")
    np.testing.assert_allclose(again, hidden, atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_sequence_is_its_cell_over_time(run, direction: str) -> None:
    """Shorter sequences end early: later outputs are 0, and the state is that of their end."""
    n, t, i, h = 2, 4, 3, 2
    lengths = [4, 2]
    ways = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}[direction]
    x, h0 = normal(n, t, i), normal(n, len(ways), h)
    w, r, b = normal(len(ways), 3 * h, i), normal(len(ways), 3 * h, h), normal(len(ways), 3 * h)
    expected = np.zeros((n, len(ways), t, h), np.float32)
    last = h0.copy()
    for d, way in enumerate(ways):
        for k in range(n):
            for step in list(range(lengths[k]))[::way]:
                state = run(
                    "GRUCell-3",
                    x[k : k + 1, step],
                    last[k : k + 1, d],
                    w[d],
                    r[d],
                    b[d],
                    hidden_size="2",
                )
                last[k, d] = expected[k, d, step] = state[0]
    found, final = run(
        "GRUSequence-5", x, h0, lengths, w, r, b, hidden_size="2", direction=direction
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(final, last, atol=1e-6)


def test_peepholes_are_refused(run) -> None:
    n, i, h = 1, 2, 2
    inputs = (normal(n, i), normal(n, h), normal(n, h), normal(8, i), normal(8, h), normal(8))
    run("LSTMCell", *inputs, np.zeros(6, np.float32), hidden_size="2")
    with pytest.raises(UnsupportedError, match="peephole"):
        run("LSTMCell", *inputs, np.ones(6, np.float32), hidden_size="2")


def test_attention_is_its_formula(run) -> None:
    query, key, value = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)
    weights = np.exp(query @ key.swapaxes(1, 2) / 2)
    expected = weights / weights.sum(-1, keepdims=True) @ value
    found = run("ScaledDotProductAttention-13", query, key, value, causal="false")
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_fourier_transforms_invert_each_other(run) -> None:
    data = normal(3, 8)
    spectrum = run("RDFT-9", data, [1])
    np.testing.assert_allclose(
        spectrum[..., 0] + 1j * spectrum[..., 1], np.fft.rfft(data), atol=1e-5
    )
    np.testing.assert_allclose(run("IRDFT-9", spectrum, [1]), data, atol=1e-5)
    pair = normal(3, 8, 2)
    np.testing.assert_allclose(run("IDFT-7", run("DFT-7", pair, [0, 1]), [0, 1]), pair, atol=1e-5)
