"""Convolutions of quantised data and filters are summed in integers, and rounded once.

The oracle evaluates the definitions in float64: FakeQuantize-1 ("Detailed description") and sums by
loops.  Codes between layers may not change a bit.
"""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import RNG, Network, convolve, deconvolve, fake_quantize, nearly

import deconv_ir
from deconv_ir.kernels.runtime.cpu import has_dots
from deconv_ir.kernels.runtime.extension import compiled_module

RANGE = (-1.28, 1.27)
POSITIVE = (0.0, 2.55)


@pytest.mark.parametrize("ends", [RANGE, POSITIVE], ids=["signed", "relu"])
@pytest.mark.parametrize("channels", [3, 8])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_equals_the_definition_rounded_once(
    tmp_path: Any, ends: Any, channels: int, stride: int
) -> None:
    net = Network(f"2,{channels},9,21")
    w, values = net.weights(5, channels, 3, 3)
    net.ir.result(net.convolution(net.quantize(net.x, *ends), w, stride))
    x = RNG.standard_normal((2, channels, 9, 21), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    nearly(found, convolve(fake_quantize(x.astype(float), *ends), values, stride))


def test_a_model_runs_again_on_data_elsewhere(tmp_path: Any) -> None:
    """The first layer has the caller's arrays, of any strides, and its output is the result."""
    net = Network("1,8,9,21")
    w, values = net.weights(5, 8, 3, 3)
    net.ir.result(net.convolution(net.quantize(net.x, *RANGE), w))
    model = deconv_ir.load(net.ir.save(tmp_path))
    for order in ("C", "C", "F", "C"):
        x = np.array(RNG.standard_normal((1, 8, 9, 21), dtype=np.float32), order=order)
        (found,) = model.run(x).values()
        nearly(found, convolve(fake_quantize(x.astype(float), *RANGE), values))


def test_weights_of_a_fake_quantize_and_with_a_zero_point(tmp_path: Any) -> None:
    x = RNG.standard_normal((1, 4, 7, 7), dtype=np.float32)
    net = Network("1,4,7,7")
    raw = RNG.uniform(-1.27, 1.27, (6, 4, 3, 3)).astype(np.float32)
    ends = [net.ir.const(np.float32(end)) for end in (-1.27, 1.27, -1.27, 1.27)]
    w = net.ir.layer("FakeQuantize", [net.ir.const(raw), *ends], {"levels": "255"})
    net.ir.result(net.convolution(net.quantize(net.x, *RANGE), w))
    other, values = net.weights(6, 4, 3, 3, zero_point=20)
    net.ir.result(net.convolution(net.quantize(net.x, *RANGE), other))
    first, second = net.run(tmp_path, x)
    data = fake_quantize(x.astype(float), *RANGE)
    nearly(first, convolve(data, fake_quantize(raw.astype(float), -1.27, 1.27, 255)))
    nearly(second, convolve(data, values))


@pytest.mark.skipif(not compiled_module(), reason="BLAS sums codes in f32")
@pytest.mark.parametrize("stored", ["i8", "FakeQuantize"])
@pytest.mark.parametrize("axis", [0, 1], ids=["convolution", "transposed"])
def test_a_filter_becomes_codes_without_a_copy_in_f32(
    tmp_path: Any, stored: str, axis: int
) -> None:
    """Python's arrays, while a filter of 2.4 MB in f32 is packed, stay below 1 MB."""
    net, shape = Network("1,256,6,6"), (256, 256, 3, 3)
    if stored == "i8":
        w, values = net.weights(*shape, axis=axis)
    else:
        high = RNG.uniform(1, 2, (256, 1, 1, 1) if axis == 0 else (1, 256, 1, 1))
        high = high.astype(np.float32)
        # Not near the middle of two levels, where rounding errors decide.
        levels = RNG.integers(-127, 128, shape) + RNG.uniform(-0.49, 0.49, shape)
        raw = (levels / 127 * high).astype(np.float32)
        ends = [net.ir.const(end) for end in (-high, high, -high, high)]
        w = net.ir.layer("FakeQuantize", [net.ir.const(raw), *ends], {"levels": "255"})
        values = fake_quantize(raw.astype(float), -high, high, 255)
    data = net.quantize(net.x, *RANGE)
    if axis == 0:
        net.ir.result(net.convolution(data, w))
    else:
        attributes = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
        net.ir.result(net.ir.layer("ConvolutionBackpropData", [data, w], attributes))
    path = net.ir.save(tmp_path)
    x = RNG.standard_normal((1, 256, 6, 6), dtype=np.float32)
    deconv_ir.load(path).bind([x])  # imports modules, which take memory
    model = deconv_ir.load(path)
    tracemalloc.start()
    bound = model.bind([x])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "i8" in bound.plan.precisions.values()
    assert peak < 1 << 20
    (found,) = bound.run().values()
    compute = convolve if axis == 0 else deconvolve
    nearly(found, compute(fake_quantize(x.astype(float), *RANGE), values))


def test_codes_pass_from_layer_to_layer(tmp_path: Any) -> None:
    """Convolution, MaxPool, a skip connection by Concat, a transposed convolution, an addition."""
    net = Network("1,4,12,16")
    ir = net.ir
    w1, v1 = net.weights(8, 4, 3, 3)
    w2, v2 = net.weights(8, 8, 3, 3)
    w3, v3 = net.weights(8, 8, 2, 2, axis=1)
    w4, v4 = net.weights(4, 16, 3, 3)
    bias = RNG.standard_normal((1, 8, 1, 1), dtype=np.float32)
    first = ir.layer("Add", [net.convolution(net.quantize(net.x, *RANGE), w1), ir.const(bias)])
    skip = net.quantize(ir.layer("ReLU", [first]), *POSITIVE, name="skip", names="skip")
    window = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
    pooled = ir.layer("MaxPool", [skip], window | {"rounding_type": "floor"})
    inner = net.quantize(ir.layer("ReLU", [net.convolution(pooled, w2)]), *POSITIVE)
    places = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    up = ir.layer("ConvolutionBackpropData", [inner, w3], places)
    joined = ir.layer("Concat", [net.quantize(up, *POSITIVE), skip], {"axis": "1"})
    ir.result(ir.layer("Tanh", [net.convolution(joined, w4)], name="y", names="y"))
    x = RNG.standard_normal((1, 4, 12, 16), dtype=np.float32)
    (found,) = net.run(tmp_path, x)

    def between(values: Any) -> Any:
        """Round to f32 where a FakeQuantize reads."""
        return fake_quantize(np.maximum(values, 0).astype(np.float32).astype(float), *POSITIVE)

    a = between(convolve(fake_quantize(x.astype(float), *RANGE), v1) + bias)
    b = between(convolve(a.reshape(1, 8, 6, 2, 8, 2).max(axis=(3, 5)), v2))
    c = np.concatenate([between(deconvolve(b, v3)), a], axis=1)
    expected = np.tanh(convolve(c, v4).astype(np.float32))
    assert np.abs(found - expected).max() < 1e-6
    # A tensor that is asked for is f32, and no bit of the others changes.
    shown = deconv_ir.load(tmp_path / "model.xml").run([x], outputs=["skip", "y"])
    assert np.array_equal(shown["y"], found)
    assert np.array_equal(shown["skip"], a.astype(np.float32))


ENDS = [(-2.03, 2.01), (-1.31, 3.11), (-4.1, 4.3), (0.0, 3.7)]


@pytest.mark.parametrize("channels", [4, 6])
@pytest.mark.parametrize("act", ["", "ReLU", "PReLU", "Clamp"])
def test_tensors_of_levels_are_added_as_codes(tmp_path: Any, channels: int, act: str) -> None:
    """The sum is read by quantisers, directly and through an activation, and by another layer."""
    net = Network(f"2,{channels},5,7")
    ir = net.ir
    w1, v1 = net.weights(channels, channels, 3, 3)
    w2, v2 = net.weights(4, channels, 3, 3)
    first = net.quantize(net.x, *ENDS[0])
    second = net.quantize(net.convolution(first, w1), *ENDS[1])
    total = ir.layer("Add", [second, first])
    bent = total
    if act:
        slope = [ir.const(np.float32(-0.25))] if act == "PReLU" else []
        bent = ir.layer(act, [total, *slope], {"min": "-1", "max": "1.5"} if act == "Clamp" else {})
    again = ir.layer("Add", [net.quantize(bent, *ENDS[2]), net.quantize(total, *ENDS[3])])
    ir.result(net.convolution(net.quantize(again, *ENDS[2]), w2))
    ir.result(ir.layer("Sqrt", [ir.layer("Abs", [again])]))
    x = RNG.standard_normal((2, channels, 5, 7), dtype=np.float32)
    found, roots = net.run(tmp_path, x)

    def level(values: Any, ends: tuple[float, float]) -> Any:
        """Return a FakeQuantize's results in f32, of values in f32."""
        return fake_quantize(values.astype(np.float32).astype(float), *ends).astype(np.float32)

    a = level(x, ENDS[0])
    b = level(convolve(fake_quantize(x.astype(float), *ENDS[0]), v1), ENDS[1])
    added = b + a
    activated = {
        "": added,
        "ReLU": np.maximum(added, 0),
        "PReLU": np.where(added < 0, added * np.float32(-0.25), added),
        "Clamp": np.clip(added, np.float32(-1), np.float32(1.5)),
    }[act]
    expected = level(activated, ENDS[2]) + level(added, ENDS[3])
    assert np.array_equal(roots, np.sqrt(np.abs(expected)))
    nearly(found, convolve(fake_quantize(expected.astype(float), *ENDS[2]), v2))


KINDS = ["convolution", "add", "multiply"] * 2
KINDS += ["gate", "depthwise", "pool", "concat", "relu", "prelu", "product"]


def drawn(seed: int) -> tuple[Network, list[str]]:
    """Draw a network of quantised layers; return it, and the names of all tensors."""
    rng = random.Random(seed)
    net = Network("2,4,9,12")
    tensors, names = [(net.x, 4)], []

    def add(kind: str, sources: list[Any], attributes: dict[str, str], channels: int) -> None:
        names.append(f"t{len(names)}")
        tensors.append(
            (net.ir.layer(kind, sources, attributes, name=names[-1], names=names[-1]), channels)
        )

    spatial = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    for _ in range(rng.randint(4, 10)):
        source, channels = rng.choice(tensors)
        ends = rng.choice(ENDS)
        kind = rng.choice(KINDS)
        other, others = rng.choice(
            [t for t in tensors if kind not in ("add", "multiply", "gate") or t[1] == channels]
        )
        if kind == "convolution":
            outputs = rng.choice((4, 6, 8))
            weights, _ = net.weights(outputs, channels, 3, 3)
            add(
                "Convolution",
                [net.quantize(source, *ends), weights],
                spatial | {"dilations": "1,1"},
                outputs,
            )
        elif kind == "depthwise":
            weights, _ = net.weights(channels, 1, 3, 3)
            shape = net.ir.const(np.array([channels, 1, 1, 3, 3]))
            weights = net.ir.layer("Reshape", [weights, shape], {"special_zero": "false"})
            add(
                "GroupConvolution",
                [net.quantize(source, *ends), weights],
                spatial | {"dilations": "1,1"},
                channels,
            )
        elif kind == "pool":
            window = spatial | {"kernel": "3,3", "rounding_type": "floor"}
            add("MaxPool", [net.quantize(source, *ends)], window, channels)
        elif kind in ("concat", "add", "multiply", "gate"):
            if kind == "gate":
                axes = net.ir.const(np.array([2, 3]))
                other = net.ir.layer("ReduceMax", [other, axes], {"keep_dims": "true"})
            pair = [net.quantize(source, *ends), net.quantize(other, *rng.choice(ENDS[:2]))]
            if kind != "concat":
                add("Add" if kind == "add" else "Multiply", pair, {}, channels)
            else:
                add("Concat", pair, {"axis": "1"}, channels + others)
        elif kind == "product":
            weights, _ = net.weights(12, 12, axis=1)
            turns = {"transpose_a": "false", "transpose_b": "false"}
            add("MatMul", [net.quantize(source, *ends), weights], turns, channels)
        elif kind == "relu":
            add("ReLU", [source], {}, channels)
        else:
            slopes = np.linspace(0, 0.5, channels, dtype=np.float32)
            add("PReLU", [source, net.ir.const(slopes)], {}, channels)
    net.ir.result(tensors[-1][0])
    return net, names


@pytest.mark.parametrize("seed", range(24))
def test_codes_change_no_bit_of_drawn_networks(tmp_path: Any, seed: int) -> None:
    """Tensors that are asked for are f32, so that nothing is left to be codes."""
    net, names = drawn(seed)
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = np.random.default_rng(seed).standard_normal((2, 4, 9, 12), dtype=np.float32)
    (found,) = model.run([x]).values()
    shown = model.run([x], outputs=names)
    assert np.array_equal(found, shown[names[-1]])


def test_slopes_of_each_channel_are_part_of_the_layer(tmp_path: Any) -> None:
    net = Network("1,4,9,9")
    w1, v1 = net.weights(6, 4, 3, 3)
    w2, v2 = net.weights(4, 6, 3, 3)
    slopes = np.linspace(-0.5, 1.5, 6, dtype=np.float32)
    sums = net.convolution(net.quantize(net.x, *RANGE), w1)
    bent = net.ir.layer("PReLU", [sums, net.ir.const(slopes)], name="bent", names="bent")
    net.ir.result(net.convolution(net.quantize(bent, -2.0, 3.0), w2))
    x = RNG.standard_normal((1, 4, 9, 9), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    a = convolve(fake_quantize(x.astype(float), *RANGE), v1)
    a = a.astype(np.float32)
    a = np.where(a < 0, a * slopes[:, None, None], a).astype(float)
    nearly(found, convolve(fake_quantize(a, -2.0, 3.0), v2))
    rows = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x})
    assert "bent" not in rows


def test_a_fake_quantize_behind_another_reads_numbers(tmp_path: Any) -> None:
    net = Network("1,4,6,6")
    w, values = net.weights(4, 4, 1, 1)
    inner = net.convolution(net.quantize(net.x, *RANGE), w, pad=0)
    twice = net.quantize(net.quantize(inner, *POSITIVE), -1.0, 1.0)
    net.ir.result(net.convolution(twice, w, pad=0))
    x = RNG.standard_normal((1, 4, 6, 6), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    first = convolve(fake_quantize(x.astype(float), *RANGE), values, pad=0).astype(np.float32)
    second = fake_quantize(first.astype(float), *POSITIVE).astype(np.float32)
    nearly(found, convolve(fake_quantize(second.astype(float), -1, 1), values, pad=0))


def test_a_depthwise_convolution_with_levels_of_each_channel(tmp_path: Any) -> None:
    net = Network("1,8,10,10")
    low, high = RNG.uniform(-2, -0.5, 8), RNG.uniform(0.5, 2, 8)
    codes, values = net.weights(8, 1, 3, 3)
    grouped = net.ir.layer(
        "Reshape", [codes, net.ir.const(np.array([8, 1, 1, 3, 3]))], {"special_zero": "false"}
    )
    places = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    data = net.quantize(net.x, low, high)
    net.ir.result(net.ir.layer("GroupConvolution", [data, grouped], places))
    x = RNG.standard_normal((1, 8, 10, 10), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    quantised = fake_quantize(x.astype(float), low[:, None, None], high[:, None, None])
    for channel in range(8):
        each = slice(channel, channel + 1)
        nearly(found[:, each], convolve(quantised[:, each], values[each]))


def test_a_quantised_tensor_that_others_read_stays_f32(tmp_path: Any) -> None:
    net = Network("1,4,6,6")
    w, values = net.weights(4, 4, 1, 1)
    data = net.quantize(net.x, *RANGE)
    net.ir.result(net.convolution(data, w, pad=0))
    net.ir.result(data)
    net.ir.result(net.ir.layer("Sigmoid", [data]))
    x = RNG.standard_normal((1, 4, 6, 6), dtype=np.float32)
    sums, levels, _ = net.run(tmp_path, x)
    expected = fake_quantize(x.astype(float), *RANGE)
    assert np.array_equal(levels, expected.astype(np.float32))
    nearly(sums, convolve(expected, values, pad=0))


def test_infinities_are_the_ends_of_the_range_and_nan_the_lower_one(tmp_path: Any) -> None:
    net = Network("1,1,1,3")
    weight = net.ir.layer("Convert", [net.ir.const(np.ones((1, 1, 1, 1), np.int8))], {
        "destination_type": "f32"
    })  # fmt: skip
    scaled = net.ir.layer("Multiply", [weight, net.ir.const(np.float32(1))])
    net.ir.result(net.convolution(net.quantize(net.x, 0, 255), scaled, pad=0))
    x = np.array([[[[np.inf, -np.inf, np.nan]]]], np.float32)
    assert net.run(tmp_path, x)[0].ravel().tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("accuracy", "in_integers"), [("fast", True), ("direct", False), ("float64", False)]
)
def test_the_accuracy_decides_whether_sums_are_integers(
    tmp_path: Any, accuracy: str, in_integers: bool
) -> None:
    net = Network("1,4,6,6")
    net.ir.result(net.convolution(net.quantize(net.x, *RANGE), net.weights(4, 4, 3, 3)[0]))
    model = deconv_ir.load(net.ir.save(tmp_path), accuracy=accuracy)
    rows = rows_of(model, {"x": np.zeros((1, 4, 6, 6), np.float32)})
    assert any(row.precision == "i8" for row in rows.values()) is in_integers
    assert not any("in f32" in str(row.algorithm) for row in rows.values())
    (row,) = (row for row in rows.values() if row.type == "Convolution")
    own = "f64" if accuracy == "float64" else "f32"
    assert (row.precision, row.reason) == ("i8" if in_integers else own, None)


def test_a_profile_says_in_which_types_layers_compute(tmp_path: Any) -> None:
    net = Network("1,4,6,6")
    sums = net.convolution(net.quantize(net.x, *RANGE), net.weights(4, 4, 3, 3)[0])
    plain = net.ir.const(RNG.standard_normal((4, 4, 3, 3)).astype(np.float32))
    net.ir.result(net.convolution(net.quantize(sums, *RANGE), plain))
    profile = deconv_ir.Profile()
    model = deconv_ir.load(net.ir.save(tmp_path), warn=False)
    model.run(np.ones((1, 4, 6, 6), np.float32), profile=profile)
    rows = [row for row in profile.layers if row.type.startswith("Convolution")]
    assert [row.precision for row in rows] == ["i8", "f32"]
    assert rows[0].reason is None
    assert rows[1].reason is not None
    assert [e["args"]["precision"] for e in profile.trace()["traceEvents"]].count("i8") == 1


def test_long_chains_of_layers_that_keep_levels(tmp_path: Any) -> None:
    net = Network("1,4,3,3")
    w, values = net.weights(4, 4, 1, 1)
    data = net.quantize(net.x, *POSITIVE)
    shape = net.ir.const(np.array([4, 4, 1, 1]))
    window = {"kernel": "1,1", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    for _ in range(1100):  # beyond Python's recursion limit
        w = net.ir.layer("Reshape", [w, shape], {"special_zero": "false"})
        data = net.ir.layer("MaxPool", [data], window | {"rounding_type": "floor"})
    net.ir.result(net.convolution(data, w, pad=0))
    x = RNG.standard_normal((1, 4, 3, 3), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    nearly(found, convolve(fake_quantize(x.astype(float), *POSITIVE), values, pad=0))


@pytest.mark.parametrize("between", [False, True], ids=["directly", "behind a MaxPool"])
def test_a_reversed_output_range(tmp_path: Any, between: bool) -> None:
    net = Network("1,4,6,6")
    w, values = net.weights(4, 4, 1, 1)
    ends = [net.ir.const(np.float32(end)) for end in (0.0, 2.55, 2.55, 0.0)]
    data = net.ir.layer("FakeQuantize", [net.x, *ends], {"levels": "256"})
    if between:
        window = {"kernel": "1,1", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
        data = net.ir.layer("MaxPool", [data], window | {"rounding_type": "floor"})
    net.ir.result(net.convolution(data, w, pad=0))
    x = RNG.standard_normal((1, 4, 6, 6), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    turned = np.float64(np.float32(2.55)) - fake_quantize(x.astype(float), *POSITIVE)
    assert np.abs(found - convolve(turned, values, pad=0)).max() < 1e-5


EVEN, ODD = np.full(4, -1.0), np.linspace(1, 2, 4)
REFUSED: dict[str, tuple[dict[str, int], Any, int]] = {
    "the weights have no 8-bit codes with one scale": ({"axis": 1}, RANGE, 256),
    "the data have several ranges": ({}, (EVEN, ODD), 256),
    "the data have 1024 levels, more than 256": ({}, RANGE, 1024),
    "the ranges of the data are not constant numbers in order": ({}, (2.0, -1.0), 256),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_other_layers_stay_in_f32_and_plans_say_why(tmp_path: Any, reason: str) -> None:
    options, ends, levels = REFUSED[reason]
    net = Network("1,4,6,6")
    w, values = net.weights(4, 4, 3, 3, **options)
    net.ir.result(net.convolution(net.quantize(net.x, *ends, levels=levels), w))
    x = RNG.standard_normal((1, 4, 6, 6), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    low, high = (np.reshape(end, (-1, 1, 1)) for end in ends)
    expected = convolve(fake_quantize(x.astype(float), low, high, levels), values)
    assert np.abs(found - expected).max() < 1e-4
    rows = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x})
    assert any(f"in f32: {reason}" in str(row.algorithm) for row in rows.values())


def test_a_plan_says_that_a_filter_is_not_quantised(tmp_path: Any) -> None:
    net = Network("1,4,6,6")
    w = net.ir.const(RNG.standard_normal((4, 4, 3, 3)).astype(np.float32))
    net.ir.result(net.convolution(net.quantize(net.x, *RANGE), w))
    model = deconv_ir.load(net.ir.save(tmp_path))
    rows = rows_of(model, {"x": np.zeros((1, 4, 6, 6), np.float32)})
    assert any("the weights are not quantised" in str(row.algorithm) for row in rows.values())


def several_ranges(net: Network) -> Any:
    parts = [net.quantize(net.x, *ends) for ends in (RANGE, POSITIVE)]
    joined = net.ir.layer("Concat", parts, {"axis": "1"})
    return net.convolution(joined, net.weights(4, 8, 3, 3)[0])


def behind_another(net: Network) -> Any:
    data = net.ir.layer("Sigmoid", [net.quantize(net.x, *RANGE)])
    return net.convolution(data, net.weights(4, 4, 3, 3)[0])


def several_scales(net: Network) -> Any:
    weights, _ = net.weights(4, 9, 4, axis=1)
    shape = net.ir.const(np.array([4, 4, 3, 3]))
    weights = net.ir.layer("Reshape", [weights, shape], {"special_zero": "false"})
    return net.convolution(net.quantize(net.x, *RANGE), weights)


WHY: dict[str, Any] = {
    "the data come from a Concat of tensors on different levels": several_ranges,
    "the data are not quantised: they come from Sigmoid": behind_another,
    "the weights have several scales for an output channel": several_scales,
}


@pytest.mark.parametrize("reason", WHY)
def test_plans_say_why_a_layer_of_a_quantised_network_is_f32(tmp_path: Any, reason: str) -> None:
    net = Network("1,4,6,6")
    net.ir.result(WHY[reason](net))
    model = deconv_ir.load(net.ir.save(tmp_path), warn=False)
    rows = rows_of(model, {"x": np.zeros((1, 4, 6, 6), np.float32)}).values()
    assert [row.reason for row in rows if row.type == "Convolution"] == [reason]


def test_data_of_f16_are_the_reason(tmp_path: Any) -> None:
    net = Network("1,4,6,6")
    half = net.ir.layer("Convert", [net.x], {"destination_type": "f16"}, precision="FP16")
    ends = [net.ir.const(np.float16(end)) for end in (-1, 1, -1, 1)]
    data = net.ir.layer("FakeQuantize", [half, *ends], {"levels": "256"}, precision="FP16")
    codes = net.ir.const(np.ones((4, 4, 3, 3), np.int8))
    wide = net.ir.layer("Convert", [codes], {"destination_type": "f16"}, precision="FP16")
    net.ir.result(net.convolution(data, wide))
    model = deconv_ir.load(net.ir.save(tmp_path), warn=False)
    rows = rows_of(model, {"x": np.zeros((1, 4, 6, 6), np.float32)}).values()
    assert [r.reason for r in rows if r.type == "Convolution"] == ["the data are f16, not f32"]


def test_ranges_of_no_channels(tmp_path: Any) -> None:
    net = Network("1,0,6,6")
    ends = [net.ir.const(np.zeros((1, 0, 1, 1), np.float32)) for _ in range(4)]
    net.ir.result(net.ir.layer("FakeQuantize", [net.x, *ends], {"levels": "256"}))
    (found,) = net.run(tmp_path, np.zeros((1, 0, 6, 6), np.float32))
    assert found.shape == (1, 0, 6, 6)


@pytest.mark.parametrize("kind", ["Convolution", "MatMul"])
def test_scales_that_are_negative_or_zero_or_missing(tmp_path: Any, kind: str) -> None:
    x = RNG.standard_normal((1, 4, 6, 6), dtype=np.float32)
    net = Network("1,4,6,6")
    shape = (4, 4, 1, 1) if kind == "Convolution" else (4, 6)
    values = []
    for given in ([0.01, -0.02, 0.0, 0.03], None):
        codes = RNG.integers(-100, 100, shape).astype(np.int8)
        w = net.ir.layer("Convert", [net.ir.const(codes)], {"destination_type": "f32"})
        scales = np.ones(4, np.float32) if given is None else np.float32(given)
        scales = scales.reshape(4, *(1,) * (len(shape) - 1))
        if given is not None:
            w = net.ir.layer("Multiply", [w, net.ir.const(scales)])
        values.append(codes.astype(float) * scales.astype(float))
        data = net.quantize(net.x, *RANGE)
        if kind == "Convolution":
            net.ir.result(net.convolution(data, w, pad=0))
        else:
            turns = {"transpose_a": "false", "transpose_b": "true"}
            net.ir.result(net.ir.layer("MatMul", [data, w], turns))
    found = net.run(tmp_path, x)
    data = fake_quantize(x.astype(float), *RANGE)
    for result, w in zip(found, values, strict=True):
        nearly(result, convolve(data, w, pad=0) if kind == "Convolution" else data @ w.T)
    rows = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x}).values()
    assert [row.precision for row in rows if row.type == kind] == ["i8", "i8"]


@pytest.mark.skipif(not compiled_module(), reason="BLAS sums codes in f32")
@pytest.mark.parametrize("kind", ["Convolution", "MatMul"])
def test_plans_count_filters_of_codes_as_codes(tmp_path: Any, kind: str) -> None:
    """Three filters of 256 KiB in f32 each: a plan, and a limit, count 64 KiB of codes.

    So they do 200 bytes for each of 256 output channels.
    """
    shape = (1, 256, 1, 2) if kind == "Convolution" else (1, 1, 2, 256)
    net = Network(",".join(map(str, shape)))
    y = net.x
    for _ in range(3):
        if kind == "Convolution":
            y = net.convolution(net.quantize(y, *RANGE), net.weights(256, 256, 1, 1)[0], pad=0)
        else:
            turns = {"transpose_a": "false", "transpose_b": "true"}
            y = net.ir.layer("MatMul", [net.quantize(y, *RANGE), net.weights(256, 256)[0]], turns)
    net.ir.result(y)
    path, x = net.ir.save(tmp_path), RNG.standard_normal(shape, dtype=np.float32)
    plan = deconv_ir.load(path).bind([x]).plan
    # Without an instruction for products of bytes, convolutions have codes of 16 bits.
    of_code = 2 if kind == "Convolution" and not has_dots() else 1
    channels = 3 * 256 * 200 if kind == "Convolution" else 0
    assert plan.constant_bytes < plan.weight_bytes + 4096 < channels + (of_code * 256 << 10)
    assert plan.bound_bytes <= plan.peak_bytes
    assert plan.peak_bytes - plan.scratch_bytes < channels + (of_code * 300 << 10)
    limited = deconv_ir.load(path, memory_limit=plan.peak_bytes)
    for one, other in zip(
        deconv_ir.load(path).run([x]).values(), limited.run([x]).values(), strict=True
    ):
        assert np.array_equal(one, other)


def test_small_filters_do_not_stay_stored_at_the_limit_of_the_plan(tmp_path: Any) -> None:
    """To unpack them in each run takes more memory than they take: the run would be refused."""
    net = Network("1,4,8,8")
    y = net.x
    for _ in range(3):
        y = net.ir.layer("ReLU", [net.convolution(y, net.weights(4, 4, 3, 3)[0])])
    net.ir.result(y)
    path, x = net.ir.save(tmp_path), RNG.standard_normal((1, 4, 8, 8), dtype=np.float32)
    model = deconv_ir.load(path)
    limited = deconv_ir.load(path, memory_limit=model.bind([x]).plan.peak_bytes)
    (found,), (expected,) = (one.run([x]).values() for one in (limited, model))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("mode", ["nearest", "linear_onnx"])
def test_nearest_elements_stay_codes(tmp_path: Any, mode: str) -> None:
    """Between a quantiser and a convolution; other modes compute new numbers."""
    net = Network("1,6,5,4")
    w1, v1 = net.weights(8, 6, 3, 3)
    w2, v2 = net.weights(4, 8, 3, 3)
    small = net.quantize(net.convolution(net.quantize(net.x, *RANGE), w1), *RANGE)
    sizes, axes = (net.ir.const(np.array(row)) for row in ((10, 12), (2, 3)))
    scales = net.ir.const(np.array([2.0, 3.0], np.float32))
    attributes = {
        "mode": mode,
        "shape_calculation_mode": "sizes",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
        "antialias": "false",
        "pads_begin": "0",
        "pads_end": "0",
        "cube_coeff": "-0.75",
    }
    large = net.ir.layer(
        "Interpolate", [small, sizes, scales, axes], attributes, name="large", version="opset4"
    )
    net.ir.result(net.convolution(large, w2))
    x = RNG.standard_normal((1, 6, 5, 4), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    a = convolve(fake_quantize(x.astype(float), *RANGE), v1).astype(np.float32).astype(float)
    b = fake_quantize(a, *RANGE).repeat(2, axis=2).repeat(3, axis=3)
    row = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x})["large"]
    assert (("u32" in str(row)) == (mode == "nearest")) or not compiled_module()
    if mode == "nearest":
        nearly(found, convolve(b, v2))
