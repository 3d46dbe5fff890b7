"""Operations of oneDNN Graph against loops in f64 and exact integers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onednn_forms import ZEROS, as_bytes, deconvolution, op, tensor, windows

import deconv_ir

RNG = np.random.default_rng(20)


def scatter(
    data: Any,
    weights: Any,
    strides: Sequence[int],
    begin: Sequence[int],
    extents: Sequence[int],
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Any:
    """Transposed convolution, [N, C, X...] and [I, O / groups, K...], by its definition."""
    dilations = dilations or [1] * len(strides)
    batch, channels, *spatial = data.shape
    _, per_group, *kernel = weights.shape
    result = np.zeros(
        (batch, per_group * groups, *extents), object if data.dtype == object else float
    )
    share = channels // groups
    for c, x, k in itertools.product(range(channels), np.ndindex(*spatial), np.ndindex(*kernel)):
        y = [
            s * a + d * b - p for s, a, d, b, p in zip(strides, x, dilations, k, begin, strict=True)
        ]
        if all(0 <= v < e for v, e in zip(y, extents, strict=True)):
            first = c // share * per_group
            for n in range(batch):
                result[(n, slice(first, first + per_group), *y)] += (
                    data[(n, c, *x)] * weights[(c, slice(None), *k)]
                )
    return result


def gather(
    data: Any,
    weights: Any,
    strides: Sequence[int],
    begin: Sequence[int],
    extents: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
) -> Any:
    """Convolution, [N, C, X...] and [O, I / groups, K...], by its definition."""
    batch, _, *spatial = data.shape
    outputs, share, *kernel = weights.shape
    result = np.zeros((batch, outputs, *extents))
    for n, o, y, k in itertools.product(
        range(batch), range(outputs), np.ndindex(*extents), np.ndindex(*kernel)
    ):
        x = [
            s * a + d * b - p for s, a, d, b, p in zip(strides, y, dilations, k, begin, strict=True)
        ]
        if all(0 <= v < e for v, e in zip(x, spatial, strict=True)):
            first = o // (outputs // groups) * share
            result[(n, o, *y)] += (
                data[(n, slice(first, first + share), *x)] @ weights[(o, slice(None), *k)]
            )
    return result


def run(*operations: Any, arrays: Sequence[Any], **options: Any) -> list[Any]:
    """Run a graph on arrays in the order of its inputs."""
    model = deconv_ir.load(as_bytes(*operations), **options)
    return list(model.run(list(arrays)).values())


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def last(array: Any) -> Any:
    return np.moveaxis(array, 1, -1)


def close(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype(np.float64), wanted, tolerance, tolerance * 10)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_grouped_conv_transpose_takes_weights_as_ic_by_oc_over_groups(dtype: str) -> None:
    """Weights (IC, OC / groups, X) with strides, dilations and output_padding."""
    kind = deconv_ir.load(as_bytes(deconvolution([1, 4, 3], [4, 2, 2], [1, 2, 4], dtype)))
    element = kind.inputs["0"].element_type
    assert element is not None
    x = floats(2, 4, 3, 4).astype(element.numpy())
    w = floats(4, 3, 2, 3).astype(element.numpy())
    graph = deconvolution(
        x.shape,
        w.shape,
        [2, 6, 7, 9],
        dtype,
        strides=[2, 2],
        dilations=[2, 1],
        pads_begin=[0, 1],
        pads_end=[0, 0],
        output_padding=[0, 1, *ZEROS[2:]],
        groups=2,
    )
    (found,) = run(graph, arrays=[x, w])
    wanted = scatter(x.astype(float), w.astype(float), [2, 2], [0, 1], [7, 9], [2, 1], 2)
    assert found.dtype == element.numpy()
    close(found, wanted, {"f32": 1e-5, "bf16": 1e-2, "f16": 2e-3}[dtype])


def test_layouts_of_data_and_weights_are_the_same_computation() -> None:
    """NXC and XOI, with a bias."""
    x, w, b = floats(1, 4, 5, 5), floats(4, 3, 3, 3), floats(3)
    wanted = scatter(x, w, [1, 1], [1, 1], [5, 5]) + b.reshape(-1, 1, 1)
    graph = op(
        0,
        "ConvTranspose",
        [tensor(0, [1, 5, 5, 4]), tensor(1, [3, 3, 3, 4]), tensor(2, [3])],
        [tensor(3, [1, 5, 5, 3])],
        **windows([1, 1], [1, 1], [1, 1], data_format="NXC", filter_format="XOI"),
    )
    (found,) = run(graph, arrays=[last(x), np.moveaxis(w, (0, 1), (-1, -2)), b])
    close(found, last(wanted))


@pytest.mark.parametrize(("pad", "begin"), [("SAME_UPPER", 0), ("SAME_LOWER", 1), ("VALID", 0)])
def test_auto_pad_of_conv_transpose(pad: str, begin: int) -> None:
    """SAME_UPPER puts the odd pad at the end (S3); the declared pads are ignored."""
    x, w = floats(1, 2, 4), floats(2, 3, 3)
    extent = 9 if pad == "VALID" else 8
    graph = deconvolution(
        x.shape, w.shape, [1, 3, extent], strides=[2], auto_pad=pad, pads_begin=[7], pads_end=[7]
    )
    (found,) = run(graph, arrays=[x, w])
    close(found, scatter(x, w, [2], [begin], [extent]))


@pytest.mark.parametrize("stated", ["attribute", "zeros", "absent", "input"])
def test_the_shape_of_convolution_backward_data(stated: str) -> None:
    """dst_shape as attribute or input; absent, or zeros: the declared shape of the output."""
    x, w = floats(1, 4, 3, 3), floats(4, 2, 3, 3)
    attributes = windows([2, 2], [1, 0], [1, 0], weights_format="OIX", output_padding=ZEROS)
    inputs, arrays = [tensor(0, x.shape), tensor(1, w.shape)], [x, w]
    if stated == "attribute":
        attributes["dst_shape"] = [1, 2, 5, 7]
    elif stated == "zeros":
        attributes["dst_shape"] = ZEROS
    elif stated == "input":
        inputs.append(tensor(2, [4], "s32"))
        arrays.append(np.array([1, 2, 5, 7], np.int32))
    graph = op(0, "ConvolutionBackwardData", inputs, [tensor(9, [1, 2, 5, 7])], **attributes)
    (found,) = run(graph, arrays=arrays)
    close(found, scatter(x, w, [2, 2], [1, 0], [5, 7]))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_convolution_with_bias(groups: int, layout: str) -> None:
    """OIX and XIO, in groups."""
    x, w, b = floats(2, 4, 6, 5), floats(6, 4 // groups, 3, 2), floats(6)
    wanted = gather(x, w, [2, 1], [1, 0], [3, 3], [1, 2], groups) + b.reshape(-1, 1, 1)
    attributes = windows([2, 1], [1, 0], [0, 0], [1, 2], groups=groups, data_format=layout)
    weights, data, result = w, x, wanted
    if layout == "NXC":
        data, result = last(x), last(wanted)
        weights = np.moveaxis(w, (0, 1), (-1, -2))
    attributes["weights_format"] = "OIX" if layout == "NCX" else "XIO"
    graph = op(
        0,
        "Convolution",
        [tensor(0, data.shape), tensor(1, weights.shape), tensor(2, [6])],
        [tensor(3, result.shape)],
        **attributes,
    )
    (found,) = run(graph, arrays=[data, weights, b])
    close(found, result)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_gradients_are_the_adjoints_of_conv_transpose(groups: int, layout: str) -> None:
    """<dy, f(x, w)> is linear in x and in w: its gradients, by the definition of f."""
    x, w, dy = floats(2, 4, 3, 4), floats(4, 6 // groups, 3, 2), floats(2, 6, 6, 8)
    settings = windows([2, 2], [1, 0], [0, 1], [1, 2], groups=groups, data_format=layout)
    turned = layout == "NXC"
    form = {"weights_format": "XOI" if turned else "IOX"}
    data, grad = (last(x), last(dy)) if turned else (x, dy)
    weights = np.moveaxis(w, (0, 1), (-1, -2)) if turned else w

    def value(x: Any, w: Any) -> Any:
        return scatter(x, w, [2, 2], [1, 0], [6, 8], [1, 2], groups)

    wanted = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        one = np.zeros(x.shape)
        one[at] = 1
        wanted[at] = (value(one, w.astype(float)) * dy).sum()
    graph = op(
        0,
        "ConvTransposeBackwardData",
        [tensor(0, grad.shape), tensor(1, weights.shape)],
        [tensor(2, data.shape)],
        **settings | form,
    )
    (found,) = run(graph, arrays=[grad, weights])
    close(found, last(wanted) if turned else wanted)

    wanted = np.zeros(w.shape)
    for at in np.ndindex(*w.shape):
        one = np.zeros(w.shape)
        one[at] = 1
        wanted[at] = (value(x.astype(float), one) * dy).sum()
    graph = op(
        0,
        "ConvTransposeBackwardWeights",
        [tensor(0, data.shape), tensor(1, grad.shape)],
        [tensor(2, weights.shape)],
        weights_shape=list(weights.shape),
        **settings | form,
    )
    (found,) = run(graph, arrays=[data, grad])
    close(found, np.moveaxis(wanted, (0, 1), (-1, -2)) if turned else wanted)


def test_gradient_of_convolution_with_respect_to_its_weights() -> None:
    """In groups, strided, with weights_shape as an input."""
    x, dy = floats(2, 4, 7), floats(2, 6, 4)
    wanted = np.zeros((6, 2, 3))
    for at in np.ndindex(*wanted.shape):
        one = np.zeros(wanted.shape)
        one[at] = 1
        wanted[at] = (gather(x.astype(float), one, [2], [1], [4], [1], 2) * dy).sum()
    graph = op(
        0,
        "ConvolutionBackwardWeights",
        [tensor(0, x.shape), tensor(1, dy.shape), tensor(2, [3], "s32")],
        [tensor(3, [6, 2, 3])],
        **windows([2], [1], [1], groups=2, weights_format="OIX"),
    )
    (found,) = run(graph, arrays=[x, dy, np.array([6, 2, 3], np.int32)])
    close(found, wanted)


def quantized_graph(
    source: str, scales: Sequence[float], zps: Sequence[int], groups: int, *, added: bool
) -> list[dict[str, Any]]:
    """State the int8 pattern: Dequantize twice, ConvTranspose, [Add], Quantize."""
    one: dict[str, Any] = {"qtype": "per_tensor", "axis": 1}
    channel = {"qtype": "per_channel", "axis": 1} if len(scales) > 4 else one
    x, w, y = [2, 4, 5, 5], [4, 6 // groups, 3, 3], [2, 6, 5, 5]
    pads = windows(
        [1, 1], [1, 1], [1, 1], groups=groups, weights_format="IOX", output_padding=ZEROS
    )
    result = [
        op(
            7,
            "Dequantize",
            [tensor(0, x, source)],
            [tensor(1, x)],
            scales=[scales[0]],
            zps=[zps[0]],
            **one,
        ),
        op(
            8,
            "Dequantize",
            [tensor(2, w, "s8")],
            [tensor(3, w)],
            scales=list(scales[3:]),
            zps=[zps[1]] * len(scales[3:]),
            **channel,
        ),
        op(9, "ConvTranspose", [tensor(1, x), tensor(3, w)], [tensor(4, y)], **pads),
    ]
    last_tensor = 4
    if added:
        result += [
            op(
                10,
                "Dequantize",
                [tensor(5, y, "s8")],
                [tensor(6, y)],
                scales=[scales[1]],
                zps=[zps[2]],
                **one,
            ),
            op(11, "Add", [tensor(4, y), tensor(6, y)], [tensor(7, y)], auto_broadcast="none"),
        ]
        last_tensor = 7
    result.append(
        op(
            12,
            "Quantize",
            [tensor(last_tensor, y)],
            [tensor(8, y, "u8")],
            scales=[scales[2]],
            zps=[zps[3]],
            **one,
        )
    )
    return result


@pytest.mark.parametrize("source", ["u8", "s8"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("per_channel", [False, True])
def test_int8_patterns_sum_exact_integers(source: str, groups: int, per_channel: bool) -> None:
    """Before Quantize: the exact rational number, rounded to f32 once."""
    weights = [0.37, 0.11, 2.25, 0.013, 1.7, 0.6][: 6 // groups] if per_channel else [0.37]
    scales = [0.12, 1.0, 3.3, *weights]
    if per_channel and groups == 2:
        scales = [0.12, 1.0, 3.3, 0.37, 0.11, 2.25]
    zps = [3, -5, 0, 100]
    graph = quantized_graph(source, scales, zps, groups, added=False)
    low, high = (0, 256) if source == "u8" else (-128, 128)
    x = RNG.integers(low, high, (2, 4, 5, 5)).astype("u1" if source == "u8" else "i1")
    w = RNG.integers(-128, 128, (4, 6 // groups, 3, 3)).astype("i1")
    model = deconv_ir.load(as_bytes(*graph))
    found = model.run({"0": x, "2": w}, outputs=["4", "8"])
    total = scatter(
        x.astype(object) - zps[0], w.astype(object) - zps[1], [1, 1], [1, 1], [5, 5], groups=groups
    )
    factors = [Fraction(float(np.float32(s))) for s in scales[3:]]
    source_scale = Fraction(float(np.float32(scales[0])))
    exact = np.zeros(total.shape, np.float32)
    levels = np.zeros(total.shape, np.uint8)
    step = Fraction(float(np.float32(scales[2])))
    for at in np.ndindex(*total.shape):
        factor = factors[at[1] % len(factors)]
        exact[at] = np.float32(float(total[at] * source_scale * factor))
        level = round(Fraction(float(exact[at])) / step + zps[3])
        levels[at] = min(255, max(0, level))
    np.testing.assert_array_equal(found["4"], exact)
    np.testing.assert_array_equal(found["8"], levels)


def test_the_pattern_with_a_residual_and_a_bias() -> None:
    """Dequantize, Dequantize, ConvTranspose with bias; Add of a dequantized tensor; Quantize."""
    graph = quantized_graph("s8", [1.0, 0.5, 1.0, 2.25], [2, 0, 1, 3], 1, added=True)
    graph[2]["inputs"].append(tensor(20, [6]))
    x = RNG.integers(-128, 128, (2, 4, 5, 5)).astype("i1")
    w = RNG.integers(-20, 20, (4, 6, 3, 3)).astype("i1")
    b = floats(6)
    r = RNG.integers(-128, 128, (2, 6, 5, 5)).astype("i1")
    model = deconv_ir.load(as_bytes(*graph))
    found = model.run({"0": x, "2": w, "20": b, "5": r})["8"]
    total = scatter(x.astype(float) - 2, w.astype(float), [1, 1], [1, 1], [5, 5]) * 2.25
    added = (total + b.reshape(-1, 1, 1)).astype(np.float32) + ((r - 1.0) * 0.5).astype(np.float32)
    wanted = np.clip(np.rint(added.astype(float) + 3), 0, 255)
    np.testing.assert_array_equal(found, wanted)


def test_quantize_rounds_half_to_even_and_saturates() -> None:
    """round(src / scale + zp): the sum is rounded, not the quotient."""
    values = np.array([0.5, 1.5, 2.5, -0.5, 1e9, -1e9, np.nan, 0.25], np.float32)
    graph = op(
        0,
        "Quantize",
        [tensor(0, [8])],
        [tensor(1, [8], "s8")],
        scales=[1.0],
        zps=[1],
        qtype="per_tensor",
    )
    (found,) = run(graph, arrays=[values])
    assert found.tolist() == [2, 2, 4, 0, 127, -128, 0, 1]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_per_channel_quantization_on_any_axis(axis: int) -> None:
    """One scale and zero point for each element of the axis."""
    data = RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    count = data.shape[axis]
    scales, zps = [0.5 + i for i in range(count)], list(range(count))
    graph = op(
        0,
        "Dequantize",
        [tensor(0, data.shape, "u8")],
        [tensor(1, data.shape)],
        qtype="per_channel",
        axis=axis,
        scales=scales,
        zps=zps,
    )
    (found,) = run(graph, arrays=[data])
    moved = np.moveaxis(data, axis, -1).astype(float)
    wanted = np.moveaxis((moved - zps) * scales, -1, axis)
    np.testing.assert_array_equal(found, wanted)


def test_dynamic_dequantize_by_groups() -> None:
    """Scales of shape data / group_shape."""
    data = RNG.integers(-8, 8, (4, 6)).astype(np.int8)
    scales, zps = floats(2, 6), RNG.integers(-3, 3, (2, 6)).astype(np.int8)
    graph = op(
        0,
        "DynamicDequantize",
        [tensor(0, [4, 6], "s8"), tensor(1, [2, 6]), tensor(2, [2, 6], "s8")],
        [tensor(3, [4, 6])],
        qtype="per_group",
        axis=0,
        group_shape=[2, 1],
    )
    (found,) = run(graph, arrays=[data, scales, zps])
    wanted = np.zeros((4, 6))
    for i, j in np.ndindex(4, 6):
        wanted[i, j] = (int(data[i, j]) - int(zps[i // 2, j])) * float(scales[i // 2, j])
    close(found, wanted, 1e-6)


def _softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


UNARY: list[tuple[str, dict[str, Any], Any]] = [
    ("Abs", {}, abs),
    ("Clamp", {"min": -0.5, "max": 0.75}, lambda x: min(0.75, max(-0.5, x))),
    ("Elu", {"alpha": 0.7}, lambda x: x if x > 0 else 0.7 * math.expm1(x)),
    ("Exp", {}, math.exp),
    ("GELU", {}, _gelu),
    (
        "GELU",
        {"mode": "gelu_tanh"},
        lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    ("HardSigmoid", {"alpha": 0.2, "beta": 0.4}, lambda x: max(0, min(1, 0.2 * x + 0.4))),
    ("HardSwish", {}, lambda x: x * max(0, min(6, x + 3)) / 6),
    ("LeakyReLU", {"alpha": 0.1}, lambda x: x if x > 0 else 0.1 * x),
    ("Mish", {}, lambda x: x * math.tanh(math.log1p(math.exp(x)))),
    ("ReLU", {}, lambda x: max(0, x)),
    ("Reciprocal", {}, lambda x: 1 / x),
    ("Round", {}, round),
    ("Sigmoid", {}, lambda x: 1 / (1 + math.exp(-x))),
    ("SoftPlus", {"beta": 2.0}, lambda x: math.log1p(math.exp(2 * x)) / 2),
    ("Square", {}, lambda x: x * x),
    ("Tanh", {}, math.tanh),
    ("Reorder", {}, float),
    ("TypeCast", {}, float),
]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(("kind", "attributes", "function"), UNARY)
def test_operations_on_one_array(kind: str, attributes: Any, function: Any, dtype: str) -> None:
    """Each element, by the formula of the document; bf16 is rounded once."""
    graph = op(0, kind, [tensor(0, [2, 3, 4], dtype)], [tensor(1, [2, 3, 4], dtype)], **attributes)
    model = deconv_ir.load(as_bytes(graph))
    element = model.inputs["0"].element_type
    assert element is not None
    x = floats(2, 3, 4).astype(element.numpy())
    (found,) = model.run(x).values()
    wanted = np.vectorize(lambda v: float(function(v)))(x.astype(float))
    assert found.dtype == element.numpy()
    close(found, wanted, 2e-6 if dtype == "f32" else 5e-3)


BINARY: list[tuple[str, Any]] = [
    ("Add", np.add),
    ("Subtract", np.subtract),
    ("Multiply", np.multiply),
    ("Divide", np.divide),
    ("Maximum", np.maximum),
    ("Minimum", np.minimum),
    ("SquaredDifference", lambda a, b: (a - b) ** 2),
]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("kind", "function"), BINARY)
def test_operations_on_two_arrays(kind: str, function: Any, mixed: bool) -> None:
    """Broadcast as NumPy does; different float types are computed in f32."""
    second = "bf16" if mixed else "f32"
    graph = op(
        0,
        kind,
        [tensor(0, [2, 3, 4]), tensor(1, [3, 1], second)],
        [tensor(2, [2, 3, 4])],
        auto_broadcast="numpy",
    )
    model = deconv_ir.load(as_bytes(graph))
    element = model.inputs["1"].element_type
    assert element is not None
    a, b = floats(2, 3, 4), floats(3, 1).astype(element.numpy())
    (found,) = model.run([a, b]).values()
    assert found.dtype == np.float32
    close(found, function(a.astype(float), b.astype(float)), 1e-6)


@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_operations_by_channel(layout: str) -> None:
    """BiasAdd, PReLU, BatchNormInference and GroupNorm, channels first and last."""
    x = floats(2, 4, 3, 5)
    turn = last if layout == "NXC" else np.asarray
    data = turn(x)
    lists = [tensor(i, [4]) for i in range(1, 5)]
    a, b, m, v = floats(4), floats(4), floats(4), np.abs(floats(4)) + 0.1
    wide = [p.reshape(-1, 1, 1).astype(float) for p in (a, b, m, v)]

    def one(kind: str, count: int, arrays: Any, **attributes: Any) -> Any:
        graph = op(
            0,
            kind,
            [tensor(0, data.shape), *lists[:count]],
            [tensor(9, data.shape)],
            data_format=layout,
            **attributes,
        )
        return run(graph, arrays=[data, *arrays])[0]

    close(one("BiasAdd", 1, [a]), turn(x + wide[0]))
    close(one("PReLU", 1, [a], per_channel_broadcast=True), turn(np.where(x > 0, x, x * wide[0])))
    normal = (x - wide[2]) / np.sqrt(wide[3] + 1e-3) * wide[0] + wide[1]
    close(one("BatchNormInference", 4, [a, b, m, v], epsilon=1e-3), turn(normal))
    grouped = x.astype(float).reshape(2, 2, -1)
    mean, variance = grouped.mean(-1, keepdims=True), grouped.var(-1, keepdims=True)
    normal = ((grouped - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * wide[0] + wide[1]
    close(one("GroupNorm", 2, [a, b], groups=2, keep_stats=False, epsilon=1e-5), turn(normal))


def test_layer_norm_returns_its_statistics() -> None:
    """keep_stats: mean and variance of the last axes are outputs."""
    x, gamma, beta = floats(2, 3, 8), floats(8), floats(8)
    graph = op(
        0,
        "LayerNorm",
        [tensor(0, [2, 3, 8]), tensor(1, [8]), tensor(2, [8])],
        [tensor(3, [2, 3, 8]), tensor(4, [2, 3]), tensor(5, [2, 3])],
        keep_stats=True,
    )
    found = run(graph, arrays=[x, gamma, beta])
    wide = x.astype(float)
    mean, variance = wide.mean(-1), wide.var(-1)
    normal = (wide - mean[..., None]) / np.sqrt(variance + 1e-5)[..., None] * gamma + beta
    for one, wanted in zip(found, (normal, mean, variance), strict=True):
        close(one, wanted)


def test_rms_norm() -> None:
    """x / sqrt(mean of squares + epsilon) * gamma."""
    x, gamma = floats(2, 3, 8), floats(8)
    graph = op(
        0, "RMSNorm", [tensor(0, [2, 3, 8]), tensor(1, [8])], [tensor(3, [2, 3, 8])], epsilon=1e-3
    )
    (found,) = run(graph, arrays=[x, gamma])
    wide = x.astype(float)
    close(found, wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-3) * gamma)


@pytest.mark.parametrize("kind", ["SoftMax", "LogSoftmax"])
def test_softmax_along_its_default_axis(kind: str) -> None:
    """SoftMax: axis 1; LogSoftmax: axis -1."""
    x = floats(2, 3, 4)
    graph = op(0, kind, [tensor(0, [2, 3, 4])], [tensor(1, [2, 3, 4])])
    (found,) = run(graph, arrays=[x])
    wide = x.astype(float)
    close(found, _softmax(wide, 1) if kind == "SoftMax" else np.log(_softmax(wide, -1)))


@pytest.mark.parametrize("keep", [False, True])
def test_reductions(keep: bool) -> None:
    """Along axes that an attribute or an input gives; negative ones count from the end."""
    x = floats(2, 3, 4)
    shape = [2, 1, 1] if keep else [2]
    for kind, function in (
        ("ReduceSum", np.sum),
        ("ReduceMean", np.mean),
        ("ReduceMax", np.max),
        ("ReduceMin", np.min),
        ("ReduceProd", np.prod),
        ("ReduceL1", lambda a, axis, keepdims: np.abs(a).sum(axis, keepdims=keepdims)),
        ("ReduceL2", lambda a, axis, keepdims: np.sqrt((a * a).sum(axis, keepdims=keepdims))),
    ):
        graph = op(
            0, kind, [tensor(0, [2, 3, 4])], [tensor(1, shape)], axes=[-1, 1], keep_dims=keep
        )
        (found,) = run(graph, arrays=[x])
        wanted = function(x.astype(float), axis=(1, 2), keepdims=keep)
        close(found, wanted)
        given = op(
            0,
            kind,
            [tensor(0, [2, 3, 4]), tensor(2, [2], "s32")],
            [tensor(1, shape)],
            keep_dims=keep,
        )
        (found,) = run(given, arrays=[x, np.array([1, 2], np.int32)])
        close(found, wanted)


@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_pooling(layout: str) -> None:
    """Windows of 3 with stride 2, pads that are excluded from the mean or not, floor and ceil."""
    x = floats(1, 2, 7, 6)
    turn = last if layout == "NXC" else np.asarray
    data = turn(x)

    def window(y: int, extent: int) -> range:
        return range(max(0, 2 * y - 1), min(extent, 2 * y + 2))

    for kind, extra in (
        ("MaxPool", {}),
        ("AvgPool", {"exclude_pad": True}),
        ("AvgPool", {"exclude_pad": False}),
    ):
        wanted = np.zeros((1, 2, 4, 3))
        for c, i, j in np.ndindex(2, 4, 3):
            part = x[0, c][np.ix_(window(i, 7), window(j, 6))].astype(float)
            count = part.size if extra.get("exclude_pad") else 9
            wanted[0, c, i, j] = part.max() if kind == "MaxPool" else part.sum() / count
        result = turn(wanted)
        graph = op(
            0,
            kind,
            [tensor(0, data.shape)],
            [tensor(1, result.shape)],
            strides=[2, 2],
            kernel=[3, 3],
            pads_begin=[1, 1],
            pads_end=[1, 1],
            data_format=layout,
            rounding_type="floor",
            **extra,
        )
        (found,) = run(graph, arrays=[data])
        close(found, result)


@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_interpolation(mode: str, coordinates: str) -> None:
    """By the coordinates of the document; nearest takes the upper one of two."""
    x = floats(1, 2, 4, 6)
    height, width = 6, 3

    def position(y: int, size: int, extent: int) -> float:
        if coordinates == "half_pixel":
            return (y + 0.5) * extent / size - 0.5
        return y * (extent - 1) / (size - 1)

    def weights(y: int, size: int, extent: int) -> dict[int, float]:
        at = position(y, size, extent)
        if mode == "nearest":
            return {min(extent - 1, max(0, math.floor(at + 0.5))): 1.0}
        low = math.floor(at)
        found: dict[int, float] = {}
        for index, share in ((low, 1 - (at - low)), (low + 1, at - low)):
            inside = min(extent - 1, max(0, index))
            found[inside] = found.get(inside, 0) + share
        return found

    wanted = np.zeros((1, 2, height, width))
    for i, j in np.ndindex(height, width):
        for (a, u), (b, v) in itertools.product(
            weights(i, height, 4).items(), weights(j, width, 6).items()
        ):
            wanted[:, :, i, j] += u * v * x[:, :, a, b]
    for extra in ({"sizes": [height, width]}, {"scales": [1.5, 0.5]}):
        graph = op(
            0,
            "Interpolate",
            [tensor(0, x.shape)],
            [tensor(1, [1, 2, height, width])],
            mode=mode,
            coordinate_transformation_mode=coordinates,
            data_format="NCX",
            **extra,
        )
        (found,) = run(graph, arrays=[x])
        close(found, wanted)


def test_movement_and_products() -> None:
    """StaticReshape, StaticTranspose, Concat, Select, GreaterEqual and MatMul with a bias."""
    x = floats(2, 3, 4)
    graph = op(
        0,
        "StaticReshape",
        [tensor(0, [2, 3, 4])],
        [tensor(1, [2, 12])],
        shape=[0, -1],
        special_zero=True,
    )
    assert np.array_equal(run(graph, arrays=[x])[0], x.reshape(2, 12))
    graph = op(
        0, "StaticTranspose", [tensor(0, [2, 3, 4])], [tensor(1, [4, 2, 3])], order=[-1, 0, 1]
    )
    assert np.array_equal(run(graph, arrays=[x])[0], x.transpose(2, 0, 1))
    graph = op(
        0, "Concat", [tensor(0, [2, 3, 4]), tensor(1, [2, 3, 4])], [tensor(2, [2, 6, 4])], axis=1
    )
    assert np.array_equal(run(graph, arrays=[x, -x])[0], np.concatenate([x, -x], 1))
    chosen = [
        op(
            0,
            "GreaterEqual",
            [tensor(0, [2, 3, 4]), tensor(1, [1])],
            [tensor(2, [2, 3, 4], "boolean")],
        ),
        op(
            1,
            "Select",
            [tensor(2, [2, 3, 4], "boolean"), tensor(0, [2, 3, 4]), tensor(1, [1])],
            [tensor(3, [2, 3, 4])],
        ),
    ]
    zero = np.zeros(1, np.float32)
    assert np.array_equal(run(*chosen, arrays=[x, zero])[0], np.maximum(x, 0))
    a, b, c = floats(3, 2), floats(4, 3), floats(4)
    graph = op(
        0,
        "MatMul",
        [tensor(0, [3, 2]), tensor(1, [4, 3]), tensor(2, [4])],
        [tensor(3, [2, 4])],
        transpose_a=True,
        transpose_b=True,
    )
    wanted = a.T.astype(float) @ b.T.astype(float) + c
    close(run(graph, arrays=[a, b, c])[0], wanted)
