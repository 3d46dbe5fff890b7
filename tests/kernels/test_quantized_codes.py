"""Codes of results are those of the numbers, for any range, activation and instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.quantized_cases import ISAS, ZERO_POINTS, activation_of, definition, made

from deconv_ir.ir.quantization import Levels
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.quantized.codes import bind_average, bind_combine
from deconv_ir.kernels.quantized.kernel import QuantizedKernel
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(not compiled_module(), reason="codes are for compiled kernels")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["none", "leaky", "slopes", "hswish", "tanh"])
@pytest.mark.parametrize("zero_points", ["", *ZERO_POINTS])
@pytest.mark.parametrize("seed", range(12))
def test_codes_are_those_of_the_numbers(
    monkeypatch: pytest.MonkeyPatch, isa: str, kind: str, zero_points: str, seed: int
) -> None:
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    channels = made(seed)[0].problem
    activation = activation_of(kind, channels.groups * channels.channels_out)
    kernel, x, pads, output, _ = made(seed, zero_points=zero_points, activation=activation)
    if not kernel.can_write_codes:
        return
    plan = kernel.plan(x.shape, pads, output)
    numbers = plan.run([x])[0]
    ends = (float(np.quantile(numbers, 0.02)), float(np.quantile(numbers, 0.98)) + 0.01)
    levels = Levels(256, *((end,) for end in ends * 2))
    codes = kernel.coded(reads=False, writes=levels).plan(x.shape, pads, output).run([x])[0]
    low, high = ends
    within = np.clip(numbers, np.float32(low), np.float32(high)).astype(float)
    expected = np.rint((within - low) * (255 / (high - low)))
    bytes_ = np.moveaxis(codes[..., None].view(np.uint8), -1, 2)
    bytes_ = bytes_.reshape(len(codes), -1, *output)[:, : numbers.shape[1]]
    assert np.array_equal(bytes_, expected)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["none", "relu", "clamp", "leaky", "slopes"])
@pytest.mark.parametrize("ends", [(-3.3, 4.1), (0.0, 3.9), (-1e-6, 2e-6), (-9000.0, 1.0)])
@pytest.mark.parametrize("number", [256, 16])
@pytest.mark.parametrize("low", [0.0, -1.4])
def test_codes_of_sums_are_those_of_the_result_in_f32(
    monkeypatch: pytest.MonkeyPatch,
    isa: str,
    kind: str,
    ends: tuple[float, float],
    number: int,
    low: float,
) -> None:
    """For ranges around the results, far narrower, and far wider; with borders of other offsets."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    rng = np.random.default_rng(49)
    problem = Problem(1, 3, 7, (3,), (1,), (1,), True)
    codes = rng.integers(-128, 128, (7, 3, 3)).astype(np.int8)
    scales, bias = rng.uniform(0.001, 0.01, 7), rng.standard_normal(7).astype(np.float32)
    levels = Levels(256, *((low,), (1.7,)) * 2)
    activation = activation_of(kind, 7)
    kernel = QuantizedKernel(
        problem, codes, scales, levels, bias, activation, adds=False, scratch_bytes=1 << 26
    )
    x = levels.low[0] + rng.integers(0, 256, (2, 3, 2999)) * levels.steps[0]
    sums = definition(problem, x, (codes * scales[:, None, None]), (1,), (2999,))
    numbers = (sums + bias[:, None]).astype(np.float32)
    bent = np.clip(activation.apply(numbers), *np.array(ends, np.float32)).astype(float)
    expected = np.rint((bent - ends[0]) * ((number - 1) / (ends[1] - ends[0])))
    made = kernel.coded(reads=False, writes=Levels(number, *((ends[0],), (ends[1],)) * 2))
    found = made.plan(x.shape, (1,), (2999,)).run([x.astype(np.float32)])[0]
    found = np.moveaxis(found[..., None].view(np.uint8), -1, 2).reshape(2, 8, 2999)
    assert np.array_equal(found[:, :7], expected)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["none", "relu", "clamp", "leaky"])
@pytest.mark.parametrize("ends", [(-3.3, 4.1), (-0.01, 0.02), (-900.0, 1.0)])
@pytest.mark.parametrize("multiplies", [False, True], ids=["sum", "product"])
@pytest.mark.parametrize("gate", [False, True], ids=["", "one position"])
def test_combined_codes_are_those_of_the_result_in_f32(
    monkeypatch: pytest.MonkeyPatch,
    isa: str,
    kind: str,
    ends: tuple[float, float],
    multiplies: bool,
    gate: bool,
) -> None:
    """For ranges around the results, much narrower, and far wider; no count of whole vectors."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    rng = np.random.default_rng(48)
    bytes_ = rng.integers(0, 256, (2, 2, 3, 5, 37, 4), np.uint8)
    if gate:
        bytes_[1] = bytes_[1, ..., :1, :1, :]
    first, second = bytes_.view(np.uint32)[..., 0]
    second = np.ascontiguousarray(second[..., :1, :1]) if gate else second
    one, other = (
        Levels(256, (low,), (high,), (low,), (high,)) for low, high in ((-2.03, 2.01), (-1.3, 3.1))
    )
    activation = activation_of(kind, 1)
    values = [
        (levels.output_low[0] + codes * levels.steps[0]).astype(np.float32)
        for levels, codes in zip((one, other), np.moveaxis(bytes_, -1, 3), strict=True)
    ]
    exact = values[0] * values[1] if multiplies else values[0] + values[1]
    numbers = np.empty((2, 11, 5, 37), np.float32)
    given = first, second
    bind_combine(*given, numbers, (one, other), None, Activation(), multiplies=multiplies)()
    assert np.array_equal(numbers, exact.reshape(2, 12, 5, 37)[:, :11])
    low, high = ends
    found, levels = np.empty_like(first), Levels(256, *((low,), (high,)) * 2)
    bind_combine(*given, found, (one, other), levels, activation, multiplies=multiplies)()
    bent = np.clip(activation.apply(exact), np.float32(low), np.float32(high)).astype(float)
    expected = np.rint((bent - low) * (255 / (high - low)))
    assert np.array_equal(np.moveaxis(found[..., None].view(np.uint8), -1, 2), expected)


@pytest.mark.parametrize("positions", [1, 255, 256, 257, 1000])
@pytest.mark.parametrize("mean", [False, True])
def test_averages_of_codes_are_rounded_once(positions: int, mean: bool) -> None:
    bytes_ = np.random.default_rng(1).integers(200, 256, (3, 2, positions, 4), np.uint8)
    bytes_[0] = 255
    levels = Levels(256, (-1.0,), (2.0,), (-1.0,), (2.0,))
    out = np.empty((3, 7, 1), np.float32)
    bind_average(bytes_.view(np.uint32)[..., 0], out, levels, mean=mean)()
    values = np.moveaxis(bytes_ * levels.steps[0] - 1, -1, 2).reshape(3, 8, positions)[:, :7]
    expected = values.mean(-1) if mean else values.sum(-1)
    assert np.abs(out[..., 0] - expected).max() <= np.spacing(np.float32(expected.max())) / 1.9
