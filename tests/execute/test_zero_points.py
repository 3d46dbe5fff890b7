"""Weights with any zero point are summed in integers, and results are rounded once.

The oracle evaluates the definitions in float64: FakeQuantize-1 ("Detailed description"), integers
less a zero point times a scale, and sums by loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import RNG, Network, convolve, deconvolve, fake_quantize

import deconv_ir
from deconv_ir.kernels.runtime.extension import compiled_module

RANGE, POSITIVE = (-1.28, 1.27), (0.0, 2.55)
NO_PADS = {"dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


def rounded_once(found: Any, exact: Any) -> None:
    """Require results within half a unit in the last place, but for rounding errors of float64."""
    error = np.abs(found.astype(float) - exact)
    assert found.shape == exact.shape
    assert (error <= 0.5 * np.spacing(np.abs(found)) + 1e-13 * np.abs(exact).max()).all()


def draw(net: Network, kind: str, shape: tuple[int, ...], *axes: int) -> tuple[Any, Any]:
    """Add weights with zero points along some axes, or with one, and return their exact values."""
    extents = [1] * len(shape)
    for axis in axes:
        extents[axis] = shape[axis]
    scales = RNG.uniform(0.001, 0.01, extents).astype(np.float32)
    if kind.startswith("FakeQuantize"):
        low, high = {
            "FakeQuantize": (RNG.uniform(-0.4, 0.1, extents), RNG.uniform(0.5, 1, extents)),
            # 0 is beside a level: its distance is 8e-6 of a step.
            "FakeQuantize beside 0": (np.full(extents, -1.28), np.full(extents, 1.27)),
            "FakeQuantize reversed": (
                RNG.uniform(0.5, 1, extents),
                RNG.uniform(-0.4, 0.1, extents),
            ),
        }[kind]
        low, high = (one.astype(np.float32) for one in (low, high))
        raw = RNG.uniform(-1, 1, shape).astype(np.float32)
        ends = [net.ir.const(end) for end in (*sorted((low, high), key=np.sum), low, high)]
        weights = net.ir.layer("FakeQuantize", [net.ir.const(raw), *ends], {"levels": "256"})
        one, other = (end.astype(float) for end in sorted((low, high), key=np.sum))
        level = np.rint((np.clip(raw.astype(float), one, other) - one) / (other - one) * 255)
        return weights, level / 255 * (high.astype(float) - low) + low
    integers, zero_points = {
        "u8": (np.uint8, RNG.integers(0, 256, extents)),
        "u4": (np.uint8, RNG.integers(0, 16, extents) + 0.25),
        "i8": (np.int8, RNG.integers(-128, 128, extents)),
        "fractions": (np.int8, RNG.integers(-64, 64, extents) + 0.5),
        "thirds": (np.uint8, RNG.integers(0, 256, extents) + 1 / 3),
    }[kind]
    info = np.iinfo(integers)
    most = 15 if kind == "u4" else info.max
    codes = RNG.integers(info.min, most + 1, shape).astype(integers)
    zero_points = zero_points.astype(np.float32)
    if kind == "fractions":
        scales = -scales
    stored = net.ir.const(codes)
    if kind == "u4":
        pairs = np.append(codes.reshape(-1), np.zeros(codes.size % 2, np.uint8)).reshape(-1, 2)
        stored = net.ir.raw_const((pairs[:, 0] | pairs[:, 1] << 4).tobytes(), "u4", shape)
    wide = net.ir.layer("Convert", [stored], {"destination_type": "f32"})
    less = net.ir.layer("Subtract", [wide, net.ir.const(zero_points)])
    weights = net.ir.layer("Multiply", [less, net.ir.const(scales)])
    return weights, (codes - zero_points.astype(float)) * scales.astype(float)


KINDS = [
    "u8", "u4", "i8", "fractions", "thirds", "FakeQuantize", "FakeQuantize beside 0",
    "FakeQuantize reversed",
]  # fmt: skip
LAYERS = ["Convolution", "GroupConvolution", "depthwise", "ConvolutionBackpropData",
          "GroupConvolutionBackpropData"]  # fmt: skip


def layer(net: Network, type_: str, kind: str, data: Any, *, each: bool) -> tuple[Any, Any]:
    """Add a layer of eight channels, and return the function that computes it."""
    groups = {"GroupConvolution": 2, "depthwise": 8, "GroupConvolutionBackpropData": 4}.get(
        type_, 1
    )
    transposed = type_.endswith("BackpropData")
    one, other = 8 // groups, 12 // groups if groups < 8 else 1
    sides = (one, other) if transposed else (other, one)
    if groups > 1 and each:
        weights, values = draw(net, kind, (groups, *sides, 3, 3), 0, 2 if transposed else 1)
    else:
        axes = ([1 if transposed else 0]) if each else []
        weights, values = draw(net, kind, (groups * sides[0], sides[1], 3, 3), *axes)
    made = {"depthwise": "GroupConvolution"}.get(type_, type_)
    if groups > 1 and not each:
        shape = net.ir.const(np.array([groups, *sides, 3, 3]))
        weights = net.ir.layer("Reshape", [weights, shape], {"special_zero": "false"})
    stride = {"strides": "2,2"} if transposed else {"strides": "1,1"}
    pads = {} if transposed else {"pads_begin": "1,1", "pads_end": "1,1"}
    parts = values.reshape(groups, *sides, 3, 3)

    def compute(x: Any) -> Any:
        own = np.split(x, groups, axis=1)
        sums = deconvolve if transposed else convolve
        return np.concatenate([sums(a, w) for a, w in zip(own, parts, strict=True)], axis=1)

    return net.ir.layer(made, [data, weights], NO_PADS | stride | pads), compute


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type_", LAYERS)
@pytest.mark.parametrize("each", [False, True], ids=["one", "channels"])
def test_layers_equal_the_definition_rounded_once(
    tmp_path: Any, type_: str, kind: str, each: bool
) -> None:
    """Signed data have no level for 0, the number of padding."""
    for ends in (RANGE, POSITIVE):
        net = Network("2,8,9,21")
        made, compute = layer(net, type_, kind, net.quantize(net.x, *ends), each=each)
        bias = RNG.standard_normal((1, 12 if type_ != "depthwise" else 8, 1, 1), dtype=np.float32)
        net.ir.result(net.ir.layer("Add", [made, net.ir.const(bias)]))
        x = RNG.standard_normal((2, 8, 9, 21), dtype=np.float32)
        (found,) = net.run(tmp_path, x)
        rounded_once(found, compute(fake_quantize(x.astype(float), *ends)) + bias)
        rows = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x}).values()
        assert {row.precision for row in rows if "Conv" in row.type} == {"i8"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("each", [False, True], ids=["one", "columns"])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_equal_the_definition_rounded_once(
    tmp_path: Any, kind: str, each: bool, transposed: bool
) -> None:
    for rows in (1, 40):
        net = Network(f"{rows},37")
        shape, axis = ((50, 37), 0) if transposed else ((37, 50), 1)
        weights, values = draw(net, kind, shape, *([axis] if each else []))
        turns = {"transpose_a": "false", "transpose_b": str(transposed).lower()}
        net.ir.result(net.ir.layer("MatMul", [net.quantize(net.x, *RANGE), weights], turns))
        x = RNG.standard_normal((rows, 37), dtype=np.float32)
        (found,) = net.run(tmp_path, x)
        rounded_once(
            found, fake_quantize(x.astype(float), *RANGE) @ (values.T if transposed else values)
        )
        of_plan = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x}).values()
        assert {row.precision for row in of_plan if row.type == "MatMul"} == {"i8"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type_", LAYERS)
def test_codes_between_layers_have_the_bits_of_numbers(
    tmp_path: Any, type_: str, kind: str
) -> None:
    net = Network("1,8,9,21")
    first, compute = layer(net, type_, kind, net.quantize(net.x, *RANGE), each=False)
    channels = 8 if type_ == "depthwise" else 12
    levels = net.quantize(net.ir.layer("ReLU", [first]), *POSITIVE, name="levels", names="levels")
    weights, values = draw(net, kind, (5, channels, 1, 1), 0)
    act = net.ir.layer("Tanh", [net.convolution(levels, weights, pad=0)], name="y", names="y")
    net.ir.result(act)
    x = RNG.standard_normal((1, 8, 9, 21), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    # A tensor that is asked for is f32.
    shown = deconv_ir.load(tmp_path / "model.xml").run([x], outputs=["levels", "y"])
    assert np.array_equal(shown["y"], found)
    exact = compute(fake_quantize(x.astype(float), *RANGE))
    level = np.clip(exact, *POSITIVE) * 100
    # Either neighbour of a tie is right: numbers are rounded to f32 before.
    assert np.abs(shown["levels"] * 100 - level).max() < 0.5 + 1e-4
    sums = convolve(fake_quantize(shown["levels"].astype(float), *POSITIVE), values, pad=0)
    assert np.abs(found - np.tanh(sums)).max() < 3e-7


def test_integers_that_are_converted_by_way_of_f16(tmp_path: Any) -> None:
    net = Network("1,8,6,8")
    codes = RNG.integers(0, 256, (8, 8, 1, 1))
    half = {"destination_type": "f16"}
    wide = net.ir.layer("Convert", [net.ir.const(codes.astype(np.uint8))], half, precision="FP16")
    wide = net.ir.layer("Convert", [wide], {"destination_type": "f32"})
    less = net.ir.layer("Subtract", [wide, net.ir.const(np.float32(7.3))])
    weights = net.ir.layer("Multiply", [less, net.ir.const(np.float32(0.01))])
    net.ir.result(net.convolution(net.quantize(net.x, *RANGE), weights, pad=0))
    x = RNG.standard_normal((1, 8, 6, 8), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    values = (codes - np.float64(np.float32(7.3))) * np.float64(np.float32(0.01))
    rounded_once(found, convolve(fake_quantize(x.astype(float), *RANGE), values, pad=0))


@pytest.mark.parametrize("kind", ["Convolution", "MatMul"])
@pytest.mark.parametrize("scale", [2**-7, 3 * 2**-9, 0.01])
def test_weights_that_are_scaled_in_f16(tmp_path: Any, kind: str, scale: float) -> None:
    """Products of seven bits and a scale of few bits are exact in f16; others are no codes."""
    net = Network("1,8,6,8")
    codes = RNG.integers(-128, 128, (8, 8, 1, 1)[: 4 if kind == "Convolution" else 2])
    ir, halves = net.ir, {"destination_type": "f16"}
    wide = ir.layer("Convert", [ir.const(codes.astype(np.int8))], halves, precision="FP16")
    less = ir.layer("Subtract", [wide, ir.const(np.float16(3))], precision="FP16")
    scaled = ir.layer("Multiply", [less, ir.const(np.float16(scale))], precision="FP16")
    weights = ir.layer("Convert", [scaled], {"destination_type": "f32"})
    data = net.quantize(net.x, *RANGE)
    values = ((codes - 3).astype(np.float16) * np.float16(scale)).astype(float)
    x = RNG.standard_normal((1, 8, 6, 8), dtype=np.float32)
    exact = fake_quantize(x.astype(float), *RANGE)
    if kind == "Convolution":
        ir.result(net.convolution(data, weights, pad=0))
        exact = convolve(exact, values, pad=0)
    else:
        turns = {"transpose_a": "false", "transpose_b": "true"}
        ir.result(ir.layer("MatMul", [data, weights], turns))
        exact = exact @ values.T
    (found,) = net.run(tmp_path, x, warn=False)
    assert np.abs(found - exact).max() < 1e-5
    rows = rows_of(deconv_ir.load(tmp_path / "model.xml", warn=False), {"x": x}).values()
    (row,) = (row for row in rows if row.type == kind)
    if scale == 0.01:
        assert row.reason is not None
        assert row.reason.startswith("the weights are scaled in a type of 16 bits")
    else:
        rounded_once(found, exact)
        assert row.precision == "i8"


@pytest.mark.skipif(not compiled_module(), reason="plans of NumPy have other scratchpads")
def test_plans_count_the_sums_of_windows(tmp_path: Any) -> None:
    peaks = []
    for kind in ("i8", "u8"):
        net = Network("1,8,64,64")
        codes = np.full((8, 8, 1, 1), 3, np.int8 if kind == "i8" else np.uint8)
        codes[0, 0] = -128 if kind == "i8" else 255
        wide = net.ir.layer("Convert", [net.ir.const(codes)], {"destination_type": "f32"})
        net.ir.result(net.convolution(net.quantize(net.x, *RANGE), wide, pad=0))
        x = np.zeros((1, 8, 64, 64), np.float32)
        plan = deconv_ir.load(net.ir.save(tmp_path)).bind([x]).plan
        peaks.append(plan.scratch_bytes)
    assert peaks[1] - peaks[0] >= 4 * 64 * 64
