"""Integer sums of codes are exact, for any problem, instruction set and division of the output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.quantization import Levels, WeightLevels
from deconv_ir.ir.scratchpad import UNLIMITED
from deconv_ir.kernels import pack_filter
from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.plan import RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.quantized.codes import bind_average, bind_combine
from deconv_ir.kernels.quantized.filter import FilterElements
from deconv_ir.kernels.quantized.kernel import QuantizedKernel, quantize_filter
from deconv_ir.kernels.runtime.cpu import MACHINES, instruction_set
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

ISAS = compiled_module().isas() if compiled_module() else [""]
# With Winograd, where it is possible.
ALGORITHMS = ["", "winograd"] if compiled_module() else [""]
# A machine of each set without the instruction for products of bytes.
PLAIN = {"avx2": "zen3", "avx512": "skylake-x"}


def draw(seed: int) -> tuple[Problem, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Draw a problem, extents of data, pads and extents of the output."""
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 4))
    groups, inputs = [(1, 1), (1, 7), (2, 4), (4, 1), (3, 3), (4, 2)][seed % 6]
    most = 700 if axes == 1 else 12

    def pick(low: int, high: int) -> tuple[int, ...]:
        return tuple(map(int, rng.integers(low, high, axes)))

    # Blocks of rows of a micro-kernel, of four channels, and parts of these.
    outputs = (1, 3, 4, 8, 12, 21)[int(rng.integers(6))]
    forward = bool(seed % 2)
    problem = Problem(groups, inputs, outputs, pick(1, 4), pick(1, 4), pick(1, 3), forward)
    # One position of data has code of its own; so have positions without gaps.
    extents = pick(1, most) if rng.random() < 0.8 else (1,) * axes
    if rng.random() < 0.2:
        ones = (1,) * axes
        return problem._replace(kernel=ones, strides=ones), extents, (0,) * axes, extents
    return problem, extents, pick(-1, 4), pick(1, most)


def definition(problem: Problem, x: Any, w: Any, pads: Any, output: Any) -> Any:
    """Return the sums of products by loops, in exact integers or float64."""
    out = np.zeros((x.shape[0], problem.groups * problem.channels_out, *output))
    for y in np.ndindex(*output):
        for k in np.ndindex(*problem.kernel):
            at: list[int] = []
            for i, (one, tap) in enumerate(zip(y, k, strict=True)):
                place = problem.dilations[i] * tap
                if problem.forward:
                    at.append(problem.strides[i] * one + place - pads[i])
                else:
                    from_, rest = divmod(one + pads[i] - place, problem.strides[i])
                    at.append(-1 if rest else from_)
            if not all(0 <= p < n for p, n in zip(at, x.shape[2:], strict=True)):
                continue
            data = x[(..., *at)].reshape(x.shape[0], problem.groups, problem.channels_in)
            taps = w[(..., *k)]
            if problem.forward:
                taps = taps.reshape(problem.groups, problem.channels_out, problem.channels_in)
            else:
                taps = taps.reshape(problem.groups, problem.channels_in, -1).swapaxes(1, 2)
            out[(..., *y)] += np.einsum("ngi,goi->ngo", data, taps).reshape(x.shape[0], -1)
    return out


def made(
    seed: int,
    *,
    adds: bool = False,
    activation: Activation | None = None,
    bias_scale: float = 1,
    zero_points: str = "",
    scratch_bytes: int = 1 << 26,
) -> tuple[Any, ...]:
    """Draw a kernel, its data, and the result by definition, without activation."""
    problem, extents, pads, output = draw(seed)
    rng = np.random.default_rng(seed)
    ends = (((0.0,), (2.55,)) if seed % 3 else ((-1.3,), (2.1,))) * 2
    if problem.channels_in == 1 and problem.groups == 4:
        ends = (tuple(rng.uniform(-2, -1, 4)), tuple(rng.uniform(1, 2, 4))) * 2
    levels = Levels((256, 255, 16)[seed % 3], *ends)
    outputs = problem.groups * problem.channels_out
    sides = (outputs, problem.channels_in)
    if not problem.forward:
        sides = (problem.groups * problem.channels_in, problem.channels_out)
    codes = rng.integers(-128, 128, (*sides, *problem.kernel)).astype(np.int8)
    scales = rng.uniform(0.001, 0.1, outputs)
    bias = bias_scale * rng.standard_normal(outputs)
    deltas = {
        "": lambda: np.zeros(outputs),
        "whole": lambda: rng.integers(-128, 129, outputs).astype(float),
        "between": lambda: rng.uniform(-128, 128, outputs),
        "beside": lambda: rng.uniform(-1e-5, 1e-5, outputs),
        "far": lambda: rng.uniform(-1e7, 1e7, outputs),
    }[zero_points]()
    kernel = QuantizedKernel(
        problem,
        codes,
        scales,
        levels,
        bias.astype(np.float32),
        activation or Activation(ActivationType.RELU),
        deltas=deltas,
        adds=adds,
        scratch_bytes=scratch_bytes,
    )
    data = (2, problem.groups * problem.channels_in, *extents)
    x = (2 * rng.standard_normal(data)).astype(np.float32)
    ones = (None,) * problem.axes
    low, high = (np.array(end)[(..., *ones)] for end in (levels.low, levels.high))
    level = np.rint(
        (np.clip(x.astype(float), low, high) - low) / (high - low) * (levels.number - 1)
    )
    values = level * ((high - low) / (levels.number - 1)) + low
    shape = (problem.groups, problem.channels_in, problem.channels_out)
    if problem.forward:
        own = [one[(..., None, *ones)] for one in (scales, deltas)]
    else:
        own = [
            np.broadcast_to(one.reshape(problem.groups, 1, -1), shape).reshape(
                -1, problem.channels_out, *(1 for _ in ones)
            )
            for one in (scales, deltas)
        ]
    weights = (codes + own[1]) * own[0]
    expected = definition(problem, values, weights, pads, output)
    expected += bias.astype(np.float32)[(..., *ones)]
    return kernel, x, pads, output, expected


def require_one_rounding(found: Any, expected: Any) -> None:
    rounded = expected.astype(np.float32)
    assert np.abs(found - rounded).max(initial=0) <= np.spacing(np.abs(rounded).max(initial=1))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_sums_are_exact_on_every_instruction_set(
    monkeypatch: pytest.MonkeyPatch, isa: str, plain: bool, seed: int, algorithm: str
) -> None:
    monkeypatch.setenv("DECONV_IR_KERNEL", algorithm)
    if isa:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
    if plain and isa in PLAIN:
        monkeypatch.setenv("DECONV_IR_MACHINE", PLAIN[isa])
        assert not MACHINES[PLAIN[isa]].has_dots
        assert instruction_set() == isa
    kernel, x, pads, output, expected = made(seed)
    require_one_rounding(kernel.plan(x.shape, pads, output).run([x])[0], np.maximum(expected, 0))


ZERO_POINTS = ["whole", "between", "beside", "far"]


@pytest.mark.parametrize("machine", ["", "zen3", "skylake-x", "small"])
@pytest.mark.parametrize("zero_points", ZERO_POINTS)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_zero_points_of_weights_are_exact(
    monkeypatch: pytest.MonkeyPatch, machine: str, zero_points: str, seed: int, algorithm: str
) -> None:
    """Codes to which a number is added that no 8 bits hold, with a bias or another tensor."""
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    if algorithm:
        monkeypatch.setenv("DECONV_IR_KERNEL", algorithm)
    kernel, x, pads, output, expected = made(seed, zero_points=zero_points, adds=seed % 4 == 3)
    addend = np.random.default_rng(seed).standard_normal(expected.shape).astype(np.float32)
    given = [x, addend] if seed % 4 == 3 else [x]
    found = kernel.plan(x.shape, pads, output).run(given)[0]
    require_one_rounding(found, np.maximum(expected + sum(given[1:]), 0))


@pytest.mark.skipif(not compiled_module(), reason="codes are for compiled kernels")
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


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("extents", [(1, 1), (7, 19), (40, 40)])
@pytest.mark.parametrize("inputs", [1, 5, 6, 129])
@pytest.mark.parametrize("machine", ["", "zen3", "skylake-x"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_sums_are_exact_with_one_or_two_channels_in_the_last_element(
    monkeypatch: pytest.MonkeyPatch,
    machine: str,
    inputs: int,
    extents: tuple[int, int],
    forward: bool,
    algorithm: str,
) -> None:
    monkeypatch.setenv("DECONV_IR_KERNEL", algorithm)
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    rng = np.random.default_rng(inputs)
    groups, outputs = (1 if inputs < 5 else 2), 5
    problem = Problem(groups, inputs, outputs, (2, 3), (1, 2), (1, 1), forward)
    sides = (groups * outputs, inputs) if forward else (groups * inputs, outputs)
    codes = rng.integers(-128, 128, (*sides, 2, 3)).astype(np.int8)
    levels = Levels(256, *((0.0,), (255.0,)) * 2)
    kernel = QuantizedKernel(
        problem, codes, np.ones(groups * outputs), levels, None, Activation(), adds=False,
        scratch_bytes=1 << 26,
    )  # fmt: skip
    x = rng.integers(0, 256, (2, groups * inputs, *extents)).astype(np.float32)
    output = (3, 4) if extents == (1, 1) else (6, 17)
    found = kernel.plan(x.shape, (0, 1), output).run([x])[0]
    expected = definition(problem, x.astype(float), codes.astype(float), (0, 1), output)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(not compiled_module(), reason="NumPy's kernel has no folded layers")
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("stride", [2, 3, 4])
@pytest.mark.parametrize("pad", [0, 5])
@pytest.mark.parametrize("width", [1, 160])
@pytest.mark.parametrize("machine", ["", "zen3", "skylake-x"])
def test_sums_of_folded_subconvolutions_are_exact(
    monkeypatch: pytest.MonkeyPatch, machine: str, width: int, pad: int, stride: int, outputs: int
) -> None:
    """As numbers and as codes, in one tile and in small ones."""
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    rng = np.random.default_rng(stride)
    problem = Problem(1, 17, outputs, (2, 2 * stride), (1, stride), (1, 1), False)
    codes = rng.integers(-128, 128, (17, outputs, 2, 2 * stride)).astype(np.int8)
    levels = Levels(256, *((-100.0,), (155.0,)) * 2)
    kernel = QuantizedKernel(
        problem, codes, np.ones(outputs), levels, None, Activation(ActivationType.RELU),
        adds=False, scratch_bytes=1 << 26,
    )  # fmt: skip
    folded: Any = kernel.sums
    assert folded.fold == stride
    x = rng.integers(-100, 156, (1, 17, 2, width)).astype(np.float32)
    output = (2, width * stride + 3)
    expected = definition(problem, x.astype(float), codes.astype(float), (1, pad), output)
    expected = np.maximum(expected, 0)
    shapes = RunShapes(x.shape, (1, pad), (1, outputs, *output))
    step = 4096.0
    coded = kernel.coded(reads=False, writes=Levels(256, *((0.0,), (255 * step,)) * 2))
    for scratch_bytes in (4096, 1 << 26):
        budget = UNLIMITED._replace(scratch_bytes=scratch_bytes)
        np.testing.assert_array_equal(kernel.plan_shapes(shapes, budget).run([x])[0], expected)
        found = coded.plan_shapes(shapes, budget).run([x])[0][..., None].view(np.uint8)
        found = np.moveaxis(found[:, 0], -1, 1)[:, :outputs]
        np.testing.assert_array_equal(found, np.rint(np.minimum(expected / step, 255)))


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (9, 8)])
@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("other", [None, (0, 1), (3, 2)])
@pytest.mark.parametrize("machine", ["", "zen3", "skylake-x"])
def test_sums_of_joined_groups_are_exact(
    monkeypatch: pytest.MonkeyPatch,
    machine: str,
    other: tuple[int, int] | None,
    forward: bool,
    kernel: tuple[int, int],
) -> None:
    """Of depthwise layers, and of one group with such zeros but for one weight, of the last tap."""
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    rng = np.random.default_rng(kernel[0])
    own = rng.integers(-128, 128, (8, 1, *kernel)).astype(np.int8)
    problem = Problem(8, 1, 1, kernel, (1, 2), (1, 1), forward)
    if other is not None:
        codes = np.zeros((4, 4, *kernel), np.int8)
        codes[range(4), range(4)] = own[:4, 0]
        codes[(*other, -1, -1)] = 77
        problem, own = problem._replace(groups=1, channels_in=4, channels_out=4), codes
    channels = problem.groups * problem.channels_in
    levels = Levels(256, *((0.0,), (255.0,)) * 2)
    made = QuantizedKernel(
        problem, own, np.ones(channels), levels, None, Activation(), adds=False,
        scratch_bytes=1 << 26,
    )  # fmt: skip
    x = rng.integers(0, 256, (1, channels, 11, 30)).astype(np.float32)
    found = made.plan(x.shape, (1, 0), (9, 13)).run([x])[0]
    expected = definition(problem, x.astype(float), own.astype(float), (1, 0), (9, 13))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 99])
@pytest.mark.parametrize("inputs", [13, 14, 15])
@pytest.mark.parametrize("extends", [False, True])
def test_elements_of_a_filter_are_read_in_parts(
    extends: bool, inputs: int, rows: int, forward: bool
) -> None:
    groups, outputs = 2, 3
    codes = np.random.default_rng(rows).integers(-128, 128, (2, inputs, 3, 2)).astype(np.int8)
    sides = (6, inputs) if forward else (2 * inputs, 3)
    of_filter = (codes.swapaxes(1, 2) if forward else codes).reshape(*sides, 2)
    problem = Problem(groups, inputs, outputs, (2,), (1,), (1,), forward)
    filter_ = FilterElements(problem, of_filter, extends=extends)
    elements, of_four = filter_.elements, 2 if extends else 1
    # The second element of one or two channels is left out.
    of_group = 4 * of_four - (extends and inputs < 15)
    assert elements.shape == ((6, of_group, 2) if forward else (2 * of_group, 3, 2))
    elements.part_bytes = 4 * rows * int(np.prod(elements.shape[1:]))
    parts = dict(elements.parts())
    assert len(parts) == -(-elements.shape[0] // rows)
    found = np.concatenate(list(parts.values())).reshape(elements.shape)
    found = found.reshape(groups, *((3, -1) if forward else (-1, 3)), 2)
    for group, out, tap in np.ndindex(groups, outputs, 2):
        of_group = found[group, out, :, tap] if forward else found[group, :, out, tap]
        row = np.pad(codes[group, :, out, tap], (0, 16 - inputs))
        of_group = np.pad(of_group, (0, 4 * of_four - len(of_group)))
        for four in range(4):
            values = row[4 * four : 4 * four + 4]
            stored = of_group[of_four * four : of_four * (four + 1)].copy()
            if extends:
                assert stored.view(np.int16).tolist() == values.tolist()
            else:
                assert stored.view(np.int8).tolist() == values.tolist()
    sums = codes.sum(axis=1, dtype=int).reshape(groups * outputs, 2)
    np.testing.assert_array_equal(filter_.sums, sums)


@pytest.mark.parametrize("seed", range(6))
def test_sums_are_exact_if_no_tile_fits_the_scratchpad(seed: int) -> None:
    kernel, x, pads, output, expected = made(seed, scratch_bytes=1)
    require_one_rounding(kernel.plan(x.shape, pads, output).run([x])[0], np.maximum(expected, 0))


@pytest.mark.skipif(not compiled_module(), reason="sums of NumPy are its results")
@pytest.mark.parametrize("machine", ["", "zen3", "skylake-x"])
@pytest.mark.parametrize("seed", range(18))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_sums_alone_are_those_of_integers(
    monkeypatch: pytest.MonkeyPatch, machine: str, seed: int, algorithm: str
) -> None:
    """Integer layers of oneDNN graphs use sums without a dequantizer."""
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    if algorithm:
        monkeypatch.setenv("DECONV_IR_KERNEL", algorithm)
        monkeypatch.setenv("DECONV_IR_MACHINE", "zen3" if "avx2" in ISAS else "")
    problem, extents, pads, output = draw(seed)
    rng = np.random.default_rng(seed)
    outputs = problem.groups * problem.channels_out
    sides = (outputs, problem.channels_in)
    if not problem.forward:
        sides = (problem.groups * problem.channels_in, problem.channels_out)
    codes = rng.integers(-128, 128, (*sides, *problem.kernel)).astype(np.int8)
    levels = Levels(256, *((-7.0,), (248.0,)) * 2)
    kernel = QuantizedKernel(
        problem, codes, np.ones(outputs), levels, None, Activation(), adds=False,
        scratch_bytes=1 << 26,
    )  # fmt: skip
    x = rng.integers(-7, 249, (2, problem.groups * problem.channels_in, *extents))
    shapes = RunShapes(x.shape, pads, (2, outputs, *output))
    planned: Any = kernel.plan_shapes(shapes, UNLIMITED)
    found = planned.exact_sums(x.astype(np.float32))
    expected = definition(problem, x.astype(float), codes.astype(float), pads, output)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("threads", [1, 3])
def test_small_tiles_change_no_bit(seed: int, threads: int) -> None:
    kernel, x, pads, output, _ = made(seed)
    whole = kernel.plan(x.shape, pads, output).run([x])[0]
    set_threads(threads)
    shapes = RunShapes(x.shape, pads, (len(x), whole.shape[1], *output))
    small = kernel.plan_shapes(shapes, UNLIMITED._replace(scratch_bytes=4096))
    assert np.array_equal(small.run([x])[0], whole)


def activation_of(kind: str, channels: int) -> Activation:
    slopes = tuple(np.linspace(-0.5, 1.5, channels).astype(np.float32).tolist())
    return {
        "none": Activation(),
        "relu": Activation(ActivationType.RELU),
        "clamp": Activation(ActivationType.CLAMP, low=-1.0, high=2.5),
        "leaky": Activation(ActivationType.LEAKY_RELU, slope=0.125),
        "slopes": Activation(ActivationType.LEAKY_RELU, slopes=slopes),
        "tanh": Activation(ActivationType.FUNCTION, function="tanh", in_numpy=np.tanh),
        "hswish": Activation(ActivationType.FUNCTION, function="hswish"),
    }[kind]


@pytest.mark.skipif(not compiled_module(), reason="codes are for compiled kernels")
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


@pytest.mark.skipif(not compiled_module(), reason="codes are for compiled kernels")
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


@pytest.mark.skipif(not compiled_module(), reason="codes are for compiled kernels")
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


@pytest.mark.parametrize("part_bytes", [1, 1000])
@pytest.mark.parametrize("seed", range(12))
def test_a_filter_is_packed_part_by_part(seed: int, part_bytes: int) -> None:
    """As from a file; parts end within groups, and the filter can be freed between runs."""
    whole, x, pads, output, _ = made(seed)
    problem, levels = whole.problem, whole.levels
    rng = np.random.default_rng(seed)
    outputs = problem.groups * problem.channels_out
    sides = (outputs, problem.channels_in)
    if not problem.forward:
        sides = (problem.groups * problem.channels_in, problem.channels_out)
    codes = rng.integers(-128, 128, (*sides, *problem.kernel)).astype(np.float32)
    scales = rng.uniform(0.001, 0.1, outputs).astype(np.float32)
    by_group = scales.reshape(problem.groups, -1)
    if problem.forward:
        own = scales[(..., None, *(None,) * problem.axes)]
    else:
        own = np.repeat(by_group, problem.channels_in, 0)[(..., *(None,) * problem.axes)]
    weights = codes * own
    flat = weights.reshape(-1)
    lazy = LazyTensor(
        weights.shape, weights.dtype, lambda first, last: flat[first:last].copy(), part_bytes
    )
    first, read = (
        quantize_filter(
            one,
            WeightLevels(
                np.broadcast_to(own.astype(float), weights.shape), np.zeros(weights.shape)
            ),
            levels,
            forward=problem.forward,
            strides=problem.strides,
            dilations=problem.dilations,
            groups=problem.groups,
            bias=None,
            activation=None,
            adds=False,
            scratch_bytes=1 << 26,
        )
        for one in (weights, lazy)
    )
    assert (first is None) == (read is None)
    if first is None or read is None:  # not suited, such as groups that cannot be joined
        assert problem.groups > 1
        return
    expected = first.plan(x.shape, pads, output).run([x])[0]
    for _ in range(2):
        assert np.array_equal(read.plan(x.shape, pads, output).run([x])[0], expected)
        read.release()


def test_parts_without_codes_are_found_late() -> None:
    weights = np.ones((64, 16, 3, 3), np.float32)
    weights[60] = 0.5
    flat = weights.reshape(-1)
    lazy = LazyTensor(
        weights.shape, weights.dtype, lambda first, last: flat[first:last].copy(), 1 << 10
    )
    levels = Levels(256, (0.0,), (1.0,), (0.0,), (1.0,))
    arguments: dict[str, Any] = {
        "forward": True, "strides": (1, 1), "dilations": (1, 1), "groups": 1, "bias": None,
        "activation": None, "adds": False, "scratch_bytes": 1 << 26,
    }  # fmt: skip
    ones = WeightLevels(np.ones(weights.shape), np.zeros(weights.shape))
    assert "no 8-bit codes" in str(quantize_filter(lazy, ones, levels, **arguments))
    weights[60] = 1
    assert isinstance(quantize_filter(lazy, ones, levels, **arguments), QuantizedKernel)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_another_tensor_is_added_before_the_result_is_rounded(
    monkeypatch: pytest.MonkeyPatch, seed: int, algorithm: str
) -> None:
    if algorithm:
        monkeypatch.setenv("DECONV_IR_KERNEL", algorithm)
        monkeypatch.setenv("DECONV_IR_MACHINE", "zen3" if "avx2" in ISAS else "")
    kernel, x, pads, output, expected = made(seed, adds=True)
    addend = np.random.default_rng(seed).standard_normal(expected.shape).astype(np.float32)
    found = kernel.plan(x.shape, pads, output).run([x, addend])[0]
    require_one_rounding(found, np.maximum(expected + addend, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_single_row_far_within_the_data(dtype: Any) -> None:
    """Negative pads crop the data to one row, which need not be the first."""
    rng = np.random.default_rng(1)
    w = rng.integers(-5, 5, (8, 4, 1, 1)).astype(dtype)
    x = rng.integers(-5, 5, (1, 4, 30, 64)).astype(dtype)
    kernel = pack_filter(w, forward=True, strides=(1, 1), dilations=(1, 1))
    found = kernel.run(x, (-17, 0), (1, 64))
    assert np.array_equal(found, np.einsum("ncyx,oc->noyx", x[:, :, 17:18], w[:, :, 0, 0]))
