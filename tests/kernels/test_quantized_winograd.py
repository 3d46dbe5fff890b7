"""Winograd of codes, in integers: exact, also where sums are as large as they can be."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from kernels.quantized_cases import definition

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.quantization import Levels
from deconv_ir.ir.scratchpad import DIRECT, UNLIMITED
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.native import LARGE_BYTES
from deconv_ir.kernels.plan import RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.quantized.kernel import QuantizedKernel
from deconv_ir.kernels.runtime.cpu import MACHINES, has_dots
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
ISAS = compiled_module().isas() if compiled_module() else []
# Instruction sets and machines without an instruction for products of bytes.
PLACES = [("baseline", "")]
PLACES += [("avx2", name) for name in ("zen1", "zen3", "small") if "avx2" in ISAS]
PLACES += [("avx512", "skylake-x")] if "avx512" in ISAS else []
CODES = Levels(256, *((0.0,), (255.0,)) * 2)
"""Numbers that are their codes."""


def kernel_of(problem: Problem, codes: Any) -> QuantizedKernel:
    """Pack a filter, whose results are sums of products of codes."""
    outputs = problem.groups * problem.channels_out
    return QuantizedKernel(
        problem, codes, np.ones(outputs), CODES, None, Activation(), adds=False,
        scratch_bytes=UNLIMITED.scratch_bytes,
    )  # fmt: skip


def require(place: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute with Winograd wherever it is possible, at a place."""
    for name, value in zip(("ISA", "MACHINE"), place, strict=True):
        monkeypatch.setenv(f"DECONV_IR_{name}", value)
    monkeypatch.setenv("DECONV_IR_KERNEL", "winograd")
    if has_dots():
        pytest.skip("the processor has an instruction for products of bytes")


# Forward, kernel, strides, dilations, groups, channels in and out, extents of data, pads, output.
LAYERS: list[tuple[Any, ...]] = [
    (True, (3, 3), (1, 1), (1, 1), 1, 16, 9, (9, 20), (1, 1), (9, 20)),
    (True, (3, 3), (1, 1), (1, 1), 2, 4, 12, (7, 17), (0, 2), (6, 18)),
    (True, (3, 3), (1, 1), (2, 3), 1, 5, 4, (11, 13), (2, 3), (11, 13)),
    (True, (3, 3), (1, 1), (1, 1), 1, 12, 5, (6, 7), (2, 5), (2, 3)),
    (True, (2, 2), (1, 1), (1, 1), 1, 33, 8, (8, 19), (0, -1), (9, 15)),
    (True, (5, 7), (1, 1), (1, 1), 1, 8, 6, (9, 30), (2, 3), (9, 30)),
    (True, (1, 3), (1, 1), (1, 1), 1, 8, 21, (3, 40), (0, 1), (3, 40)),
    (True, (9,), (1,), (1,), 1, 20, 5, (150,), (4,), (150,)),
    (True, (3, 3, 3), (1, 1, 1), (1, 1, 1), 1, 8, 5, (4, 5, 6), (1, 1, 1), (4, 5, 6)),
    (False, (4, 4), (2, 2), (1, 1), 1, 16, 12, (6, 11), (1, 1), (12, 22)),
    (False, (4, 4), (2, 2), (1, 1), 2, 8, 4, (5, 9), (0, 3), (9, 14)),
    (False, (5, 9), (2, 4), (1, 1), 1, 7, 3, (5, 6), (2, 4), (10, 24)),
    (False, (3, 3), (1, 1), (1, 2), 1, 12, 10, (7, 15), (1, 1), (7, 17)),
    (False, (4, 4, 4), (2, 2, 2), (1, 1, 1), 1, 8, 4, (3, 3, 4), (1, 1, 1), (6, 6, 8)),
]
EXTREMES = ["", "lowest", "highest", "signs"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("threads", [1, 3])
def test_results_equal_sums_of_integers(
    monkeypatch: pytest.MonkeyPatch, place: Any, layer: Any, extreme: str, threads: int
) -> None:
    forward, size, strides, dilations, groups, inputs, outputs, extents, pads, output = layer
    require(place, monkeypatch)
    set_threads(threads)
    rng = np.random.default_rng(len(extreme) + threads)
    problem = Problem(groups, inputs, outputs, size, strides, dilations, forward)
    sides = (groups * outputs, inputs) if forward else (groups * inputs, outputs)
    codes = rng.integers(-128, 128, (*sides, *size)).astype(np.int8)
    x = rng.integers(0, 256, (2, groups * inputs, *extents)).astype(np.float32)
    if extreme:
        x[:] = 255 * (rng.random(x.shape) < (0.5 if extreme == "signs" else 1))
        codes = np.where(rng.random(codes.shape) < 0.5, -128, 127).astype(np.int8)
    if extreme in ("lowest", "highest"):
        codes[:] = -128 if extreme == "lowest" else 127
    kernel = kernel_of(problem, codes)
    plan = kernel.plan(x.shape, pads, output)
    assert str(plan).startswith("integer Winograd F(")
    expected = definition(problem, x.astype(float), codes.astype(float), pads, output)
    np.testing.assert_array_equal(plan.run([x])[0], expected)
    if not kernel.can_write_codes:
        return
    highest = float(np.abs(expected).max()) + 1
    written = kernel.coded(reads=False, writes=Levels(256, *((-highest,), (highest,)) * 2))
    (found,) = written.plan(x.shape, pads, output).run([x])
    by_channel = np.moveaxis(found.view(np.uint8).reshape(*found.shape, 4), -1, 2)
    by_channel = by_channel.reshape(len(x), -1, *output)[:, : expected.shape[1]]
    levels = (expected + highest) / (2 * highest) * 255
    assert np.abs(by_channel - levels).max() < 0.5 + 1e-4


SHIFTS = {(1, 1): 0, (2, 2): 0, (3, 2): 1, (2, 3): 1, (4, 2): 1, (4, 3): 3}
"""Bits by which sums are larger than results, for each axis of F(m, r)."""
MOST_SUM = (1 << 31) - 1


@pytest.mark.parametrize("value", [-128, 127])
@pytest.mark.parametrize("size", [(3, 3), (2, 2), (3,), (3, 3, 3), (1, 7)])
@pytest.mark.parametrize("bits", range(8))
@pytest.mark.parametrize("more", [0, 4])
def test_layers_are_transformed_as_long_as_their_sums_fit(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, ...], value: int, bits: int, more: int
) -> None:
    """The largest data and weights, and as many channels as leave some bits free."""
    require(PLACES[-1], monkeypatch)
    ones, extents = (1,) * len(size), tuple(k + 3 for k in size)
    terms = (MOST_SUM >> bits) // (255 * abs(value))
    channels = terms // int(np.prod(size)) // 4 * 4 + more
    problem = Problem(1, channels, 3, size, ones, ones, True)
    kernel = kernel_of(problem, np.full((3, channels, *size), value, np.int8))
    x = np.full((1, channels, *extents), 255, np.float32)
    plan = kernel.plan(x.shape, ones, extents)
    left = bits - (more > 0)
    least = size.count(3) + size.count(7)
    forms = plan.details.get("winograd")
    if least > left or channels < 4096:  # tiles of more exceed the scratchpad
        assert (forms is not None) is (least <= left)
    if forms is not None:
        assert sum(SHIFTS[form] for form in forms) <= left
    if bits == 0 and more:
        return  # sums have more than 32 bits
    whole = np.ones((1, 1, *size))
    one = problem._replace(channels_in=1, channels_out=1)
    counts = definition(one, np.ones((1, 1, *extents)), whole, ones, extents)
    expected = (counts * channels * 255 * value).astype(np.float32)
    np.testing.assert_array_equal(plan.run([x])[0], np.repeat(expected, 3, axis=1))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("size", [(3,), (2, 2), (3, 3), (2, 3), (2, 2, 2), (3, 3, 3), (2, 3, 3)])
def test_data_whose_transforms_are_largest(
    monkeypatch: pytest.MonkeyPatch, place: Any, size: tuple[int, ...]
) -> None:
    """The largest numbers where factors of a transform have one sign, 0 elsewhere."""
    require(place, monkeypatch)
    ones, extent = (1,) * len(size), 9
    # Signs of the factors of F(4, 3), (-4, -4, 1, 1), for windows that begin anywhere; of others.
    rows = [np.resize(np.roll((1, -1, -1, 1), shift), extent) for shift in range(4)]
    rows += [np.ones(extent), np.resize((1, -1), extent)]
    signs = [
        sign * functools.reduce(np.multiply.outer, picked)
        for picked in itertools.product(rows, repeat=len(size))
        for sign in (1, -1)
    ]
    x = np.where(np.stack(signs)[:, None] > 0, 255, 0).astype(np.float32).repeat(4, axis=1)
    problem = Problem(1, 4, 2, size, ones, ones, True)
    codes = np.full((2, 4, *size), 127, np.int8)
    codes[1] = np.random.default_rng(0).integers(-128, 128, codes.shape[1:])
    plan = kernel_of(problem, codes).plan(x.shape, ones, (extent,) * len(size))
    assert "winograd" in plan.details
    expected = definition(
        problem, x.astype(float), codes.astype(float), ones, (extent,) * len(size)
    )
    np.testing.assert_array_equal(plan.run([x])[0], expected)


def test_small_weights_leave_room_for_more_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of the weights decide, not their number: with weights of 128, 1824 channels fit."""
    require(PLACES[-1], monkeypatch)
    problem = Problem(1, 2000, 2, (3, 3), (1, 1), (1, 1), True)
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 2, (2, 2000, 3, 3)).astype(np.int8)
    x = rng.integers(0, 256, (1, 2000, 5, 5)).astype(np.float32)
    plan = kernel_of(problem, codes).plan(x.shape, (1, 1), (5, 5))
    assert "winograd" in plan.details
    expected = definition(problem, x.astype(float), codes.astype(float), (1, 1), (5, 5))
    np.testing.assert_array_equal(plan.run([x])[0], expected)


def test_layers_of_one_tap_and_processors_with_products_of_bytes_sum_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require(PLACES[-1], monkeypatch)
    for size, machine in (((1, 1), ""), ((3, 3), "zen4")):
        if machine and not ("avx512" in ISAS and MACHINES[machine].has_dots):
            continue
        if machine:
            monkeypatch.setenv("DECONV_IR_ISA", "")
            monkeypatch.setenv("DECONV_IR_MACHINE", machine)
            if not has_dots():
                continue
        problem = Problem(1, 16, 16, size, (1, 1), (1, 1), True)
        kernel = kernel_of(problem, np.ones((16, 16, *size), np.int8))
        assert "winograd" not in kernel.plan((1, 16, 8, 8), (0, 0), (6, 6)).details


def test_transformed_weights_are_counted_and_need_a_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require(PLACES[-1], monkeypatch)
    problem = Problem(1, 32, 16, (3, 3), (1, 1), (1, 1), True)
    kernel = kernel_of(problem, np.ones((16, 32, 3, 3), np.int8))
    x = np.ones((1, 32, 6, 6), np.float32)
    shapes = RunShapes(x.shape, (1, 1), (1, 16, 6, 6))
    direct, other = kernel.plan_shapes(shapes, UNLIMITED).candidates
    # Pairs of 16 bits at the points, of F(2, 3) or F(4, 3) on each axis.
    points = other.weight_bytes // (32 * 16 * 2)
    assert direct.weight_bytes == 0
    assert other.weight_bytes == points * 32 * 16 * 2
    assert points in (4 * 4, 4 * 6, 6 * 6)
    refused = kernel.plan_shapes(shapes, DIRECT._replace(scratch_bytes=1 << 20))
    assert "winograd" not in refused.details
    before = kernel.packed_bytes
    plan = kernel.plan_shapes(shapes, UNLIMITED)
    assert plan.algorithm.weight_bytes == other.weight_bytes
    plan.run([x])
    assert kernel.packed_bytes - before == other.weight_bytes
    assert kernel.plan_shapes(shapes, UNLIMITED).algorithm.weight_bytes == 0


def test_filters_that_are_read_again_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans count no memory that transformed weights leave."""
    require(PLACES[-1], monkeypatch)
    problem = Problem(1, 128, 128, (3, 3), (1, 1), (1, 1), True)
    flat = np.random.default_rng(0).integers(-128, 128, 128 * 128 * 9).astype(np.int8)
    codes = LazyTensor((128, 128, 3, 3), flat.dtype, lambda i, j: flat[i:j], is_reread=True)
    kernel = kernel_of(problem, codes)
    x = np.ones((1, 128, 6, 6), np.float32)
    shapes = RunShapes(x.shape, (1, 1), (1, 128, 6, 6))
    plan, before = kernel.plan_shapes(shapes, UNLIMITED), kernel.packed_bytes
    assert before >= LARGE_BYTES
    assert [found.filter_bytes for found in plan.candidates] == [0, 0]
    plan.run([x])
    assert kernel.packed_bytes - before == plan.candidates[1].weight_bytes


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tiny_tiles_change_no_bit(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    require(PLACES[-1], monkeypatch)
    set_threads(threads)
    rng = np.random.default_rng(0)
    for forward, size, strides in ((True, (3, 3), (1, 1)), (False, (4, 4), (2, 2))):
        problem = Problem(1, 24, 19, size, strides, (1, 1), forward)
        sides = (19, 24) if forward else (24, 19)
        codes = rng.integers(-128, 128, (*sides, *size)).astype(np.int8)
        kernel = kernel_of(problem, codes)
        x = rng.integers(0, 256, (3, 24, 13, 22)).astype(np.float32)
        output = (13, 22) if forward else (26, 44)
        expected = definition(problem, x.astype(float), codes.astype(float), (1, 1), output)
        shapes = RunShapes(x.shape, (1, 1), (3, 19, *output))
        for scratch in (1, 1 << 14, 1 << 30):
            plan = kernel.plan_shapes(shapes, UNLIMITED._replace(scratch_bytes=scratch))
            assert "winograd" in plan.details
            np.testing.assert_array_equal(plan.run([x])[0], expected)
