"""Integer sums of codes are exact, for any problem, instruction set and division of the output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.quantized_cases import (
    ALGORITHMS,
    ISAS,
    PLAIN,
    ZERO_POINTS,
    definition,
    made,
    require_one_rounding,
)

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.quantization import Levels, WeightLevels
from deconv_ir.ir.scratchpad import UNLIMITED
from deconv_ir.kernels import pack_filter
from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.plan import RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.quantized.filter import FilterElements
from deconv_ir.kernels.quantized.kernel import QuantizedKernel, quantize_filter
from deconv_ir.kernels.runtime.cpu import MACHINES, instruction_set
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads


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


@pytest.mark.parametrize("machine", ["", "zen3", "skylake-x", "small"])
@pytest.mark.parametrize("zero_points", ZERO_POINTS)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_zero_points_of_weights_are_exact(
    monkeypatch: pytest.MonkeyPatch, machine: str, zero_points: str, seed: int, algorithm: str
) -> None:
    """Codes to which a number is added that no 8 bits hold, with a bias or another tensor."""
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    monkeypatch.setenv("DECONV_IR_KERNEL", algorithm)
    kernel, x, pads, output, expected = made(seed, zero_points=zero_points, adds=seed % 4 == 3)
    addend = np.random.default_rng(seed).standard_normal(expected.shape).astype(np.float32)
    given = [x, addend] if seed % 4 == 3 else [x]
    found = kernel.plan(x.shape, pads, output).run(given)[0]
    require_one_rounding(found, np.maximum(expected + sum(given[1:]), 0))


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
    of_taps = np.zeros((groups * outputs, 2))
    filter_ = FilterElements(problem, of_filter, of_taps, extends=extends)
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
    np.testing.assert_array_equal(of_taps, sums)


@pytest.mark.parametrize("seed", range(6))
def test_sums_are_exact_if_no_tile_fits_the_scratchpad(seed: int) -> None:
    kernel, x, pads, output, expected = made(seed, scratch_bytes=1)
    require_one_rounding(kernel.plan(x.shape, pads, output).run([x])[0], np.maximum(expected, 0))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("threads", [1, 3])
def test_small_tiles_change_no_bit(seed: int, threads: int) -> None:
    kernel, x, pads, output, _ = made(seed)
    whole = kernel.plan(x.shape, pads, output).run([x])[0]
    set_threads(threads)
    shapes = RunShapes(x.shape, pads, (len(x), whole.shape[1], *output))
    small = kernel.plan_shapes(shapes, UNLIMITED._replace(scratch_bytes=4096))
    assert np.array_equal(small.run([x])[0], whole)


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
