"""Products of bf16: data and filters are rounded, sums are f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.cases import ISAS, Case, among_others, as_bf16, draw, draw_odd, lazy_tensor, same_bits

from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.kernels import bf16, pack_filter
from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.bf16 import pack_rounded, pair_channels, round_to_bf16
from deconv_ir.kernels.compressed import rounded_matrix
from deconv_ir.kernels.plan import ConvolutionKernel
from deconv_ir.kernels.products import pack_matrix
from deconv_ir.kernels.runtime import cpu
from deconv_ir.kernels.runtime.cpu import has_pairs
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

needs_compiled = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
F32 = np.dtype(np.float32)
RNG = np.random.default_rng(20)


@pytest.fixture(params=[True, False], ids=["emulated", "instruction"])
def emulated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Use the emulation, or the instruction if this processor has it."""
    emulates = bool(request.param)
    if emulates:
        monkeypatch.setattr(cpu, "has_pairs", lambda: False)
    elif not has_pairs():
        pytest.skip("this processor has no products of bf16")
    return emulates


def drawn(seed: int) -> Case:
    case = draw_odd(seed, F32) if seed % 3 == 2 else draw(seed, F32, axes=1 + seed % 3, channels=9)
    return case if case.data.ndim <= 5 else draw(seed, F32, axes=2)


def draw_image(channels: int, forward: bool) -> Case:
    sides = (5, channels) if forward else (channels, 5)
    return Case(
        RNG.standard_normal((2, channels, 9, 40)).astype(np.float32),
        RNG.standard_normal((*sides, 3, 3)).astype(np.float32),
        RNG.standard_normal(5).astype(np.float32),
        (1, 1), (1, 1), 1, (1, 1), (9, 40), forward,
    )  # fmt: skip


@needs_compiled
@pytest.mark.parametrize("seed", range(24))
def test_sums_are_those_of_rounded_numbers(emulated: bool, seed: int) -> None:
    """The oracle: loops in f64.  Tiles, threads, neighbours in memory change no bit."""
    case = drawn(seed)
    kernel, where = case.kernel_of_bf16(), (case.pads_begin, case.output)
    set_threads(1)
    found = kernel.run(case.data, *where)
    case.rounded().check(found)
    around = among_others(case.data)
    for threads, scratch_bytes in ((1, 1), (3, 8 << 10)):
        set_threads(threads)
        same_bits(kernel.run(around, *where, budget=ScratchpadBudget(scratch_bytes)), found)
    same_bits(kernel.run(around[-1:], *where), found[-1:])
    same_bits(case.kernel_of_bf16(scratch_bytes=1).run(case.data, *where), found)


@needs_compiled
@pytest.mark.parametrize("strides", [(1, 2), (2, 1), (3, 3), (2, 5)])
def test_strided_convolutions(emulated: bool, strides: tuple[int, int]) -> None:
    case = draw_image(6, forward=True)
    case.strides, case.output = strides, (8 // strides[0] + 1, 39 // strides[1] + 1)
    case.rounded().check(case.kernel_of_bf16().run(case.data, case.pads_begin, case.output))
    # Data whose columns are not side by side, as behind a Transpose.
    turned = np.ascontiguousarray(case.data.swapaxes(2, 3)).swapaxes(2, 3)
    case.rounded().check(case.kernel_of_bf16().run(turned, case.pads_begin, case.output))


@needs_compiled
@pytest.mark.parametrize("isa", ISAS)
def test_rounding_is_to_nearest_even(monkeypatch: pytest.MonkeyPatch, isa: str) -> None:
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    bits = RNG.integers(0, 1 << 32, 4001, dtype=np.uint64).astype(np.uint32)
    # Ties, the largest numbers, infinities, NaN, subnormal numbers.
    bits[:8] = [0x3F808000, 0x3F818000, 0x7F7F7FFF, 0x7F7F8000, 0x7F800000, 0xFFFFFFFF, 1, 0x8000]
    values = bits.view(np.float32)
    expected = as_bf16(values)
    found = round_to_bf16(values)
    np.testing.assert_array_equal(found, expected)
    pairs = pair_channels(values[:3999].reshape(1, 3, 31, 43)).view(np.uint32)
    halves = np.stack([pairs << 16, pairs & np.uint32(0xFFFF0000)], 2).view(np.float32)
    np.testing.assert_array_equal(halves.reshape(4, -1)[:3], expected[:3999].reshape(3, -1))
    assert not halves.reshape(4, -1)[3].any(), "there is no fourth channel"


@needs_compiled
@pytest.mark.parametrize(
    "activation",
    [Activation(ActivationType.RELU), Activation(ActivationType.CLAMP, low=-0.5, high=0.75)],
    ids=lambda activation: activation.type.name,
)
@pytest.mark.parametrize("forward", [True, False])
def test_bias_addend_and_activation_are_f32(
    emulated: bool, activation: Activation, forward: bool
) -> None:
    case = draw_image(6, forward)
    sums = case.rounded().expected()
    for shape in ((2, 5, 9, 40), (5, 1, 1)):
        addend = RNG.standard_normal(shape).astype(np.float32)
        kernel = case.kernel_of_bf16(activation, adds=True)
        plan = kernel.plan(case.data.shape, case.pads_begin, case.output)
        (found,) = plan.run([case.data, addend])
        expected = activation.apply(sums + addend)
        np.testing.assert_allclose(found, expected, atol=2e-5)
    out = np.empty_like(sums)
    plan = case.kernel_of_bf16(activation).plan(case.data.shape, case.pads_begin, case.output)
    call = plan.bind([case.data], out)
    assert call is not None
    call()
    np.testing.assert_allclose(out, activation.apply(sums), atol=2e-5)


@needs_compiled
def test_nan_and_infinity_stay_where_their_taps_are(emulated: bool) -> None:
    case = draw_image(6, forward=False)
    for value in (np.nan, np.inf, 3.4e38):  # the last one is rounded to infinity
        case.data.reshape(-1)[[0, -1]] = value
        found = case.kernel_of_bf16().run(case.data, case.pads_begin, case.output)
        expected = case.rounded().expected()
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


@needs_compiled
def test_subnormal_numbers_may_be_zero(emulated: bool) -> None:
    """The bound of docs/numerics.md."""
    case = draw_image(6, forward=True)
    case.bias, case.data = None, case.data * np.float32(2.0**-128)
    for size in (1.0, 2.0**100):
        case.filter = case.filter * np.float32(size)
        found = case.kernel_of_bf16().run(case.data, case.pads_begin, case.output)
        multiplied = case.rounded()
        terms, largest = 6 * 9, max(1.0, float(np.abs(case.filter).max()))
        exact = multiplied.by_loops(
            *(a.astype(float) for a in (multiplied.data, multiplied.filter)), None
        )
        bound = 64 * 2.0**-23 * np.abs(exact).max() + terms * 2.0**-126 * largest
        assert np.abs(found - exact).max() <= bound


@needs_compiled
def test_extents_beyond_the_compiled_kernel(emulated: bool) -> None:
    case = draw(1, F32, axes=1, channels=3, pads_begin=(1 << 62,), output=(3,))
    case.rounded().check(case.kernel_of_bf16().run(case.data, case.pads_begin, case.output))


@needs_compiled
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(("terms", "columns"), [(64, 48), (33, 130), (1, 1024), (700, 96)])
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_products_with_a_rounded_matrix(
    transposed: bool, terms: int, columns: int, rows: int
) -> None:
    weights = RNG.standard_normal((columns, terms) if transposed else (terms, columns))
    weights = weights.astype(np.float32)
    matrix = weights.T if transposed else weights
    data = RNG.standard_normal((rows, terms)).astype(np.float32)
    factor = rounded_matrix(matrix)
    assert factor is not None
    plain = pack_matrix(matrix)
    assert plain is not None
    assert 2 * factor.nbytes <= plain.nbytes
    expected = data.astype(np.float64) @ as_bf16(matrix).astype(np.float64)
    magnitude = np.abs(data).astype(np.float64) @ np.abs(as_bf16(matrix)).astype(np.float64)
    assert (np.abs(factor.multiply(data) - expected) <= 2e-6 * magnitude).all()


@needs_compiled
@pytest.mark.parametrize("activation", [ActivationType.NONE, ActivationType.RELU])
@pytest.mark.parametrize(("terms", "columns"), [(64, 48), (33, 130), (1, 1024), (1100, 96)])
def test_products_whose_rows_are_rounded_too(
    emulated: bool,
    monkeypatch: pytest.MonkeyPatch,
    terms: int,
    columns: int,
    activation: ActivationType,
) -> None:
    """Neither the number of rows, nor threads, nor strides change a bit."""
    monkeypatch.setattr(bf16, "are_products_faster", lambda: True)
    matrix = RNG.standard_normal((terms, columns)).astype(np.float32)
    data = RNG.standard_normal((250, terms)).astype(np.float32)
    bias = RNG.standard_normal(columns).astype(np.float32)
    factor, plain = pack_rounded(matrix), pack_matrix(matrix)
    assert factor is not None
    assert plain is not None
    assert factor.precision == "bf16"
    assert factor.nbytes <= plain.nbytes // 2 + plain.nbytes // terms
    found = factor.multiply(data, bias, Activation(activation))
    a, b = (as_bf16(array).astype(np.float64) for array in (data, matrix))
    expected = a @ b + bias
    if activation is ActivationType.RELU:
        expected = np.maximum(expected, 0)
    magnitude = np.abs(a) @ np.abs(b) + np.abs(bias)
    assert (np.abs(found - expected) <= 4e-6 * magnitude).all()
    set_threads(3)
    for rows in (1, 7, 250):
        same_bits(factor.multiply(data[:rows], bias, Activation(activation)), found[:rows])
    turned = np.asfortranarray(data)
    same_bits(factor.multiply(turned, bias, Activation(activation)), found)


@needs_compiled
@pytest.mark.parametrize("faster", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("terms", "columns"), [(64, 48), (33, 130), (1, 1030), (1101, 97)])
@pytest.mark.parametrize("part_bytes", [1, 9000])
def test_a_rounded_matrix_that_is_read_in_parts(
    emulated: bool,
    monkeypatch: pytest.MonkeyPatch,
    faster: bool,
    transposed: bool,
    terms: int,
    columns: int,
    part_bytes: int,
) -> None:
    monkeypatch.setattr(bf16, "are_products_faster", lambda: faster)
    matrix = RNG.standard_normal((terms, columns)).astype(np.float32)
    data = as_bf16(RNG.standard_normal((9, terms)).astype(np.float32))
    stored = np.ascontiguousarray(matrix.T) if transposed else matrix
    factor = pack_rounded(lazy_tensor(stored, part_bytes), transposed=transposed)
    assert factor is not None
    a, b = data.astype(np.float64), as_bf16(matrix).astype(np.float64)
    assert (np.abs(factor.multiply(data) - a @ b) <= 4e-6 * (np.abs(a) @ np.abs(b))).all()


@needs_compiled
@pytest.mark.parametrize("faster", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf, -3.4e38])
def test_a_matrix_beyond_bf16_is_not_rounded(
    monkeypatch: pytest.MonkeyPatch, value: float, faster: bool
) -> None:
    monkeypatch.setattr(bf16, "are_products_faster", lambda: faster)
    matrix = np.ones((64, 64), np.float32)
    matrix[5, 60] = value
    assert pack_rounded(matrix) is None
    assert pack_rounded(lazy_tensor(matrix, 600)) is None


def chosen(case: Case) -> ConvolutionKernel:
    return pack_filter(case.filter, forward=case.forward, accuracy=Accuracy.BF16, **case.static)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"has_pairs": False}, "has no products of bf16 (AVX-512 BF16)"),
        ({"is_faster": False}, "sums of f32 are predicted to be as fast"),
        ({"channels": 1}, "a group has one"),
        ({"weight": 3.4e38}, "a weight is beyond the numbers of bf16"),
        ({"weight": np.inf}, "not finite, or NumPy computes the layer"),
        ({}, None),
    ],
    ids=str,
)
def test_a_layer_that_stays_in_f32_says_why(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], reason: str | None
) -> None:
    """Its bits are those of f32."""
    if compiled_module() is None and change != {"has_pairs": False}:
        pytest.skip("the compiled kernel was not built")
    monkeypatch.setattr(bf16, "has_pairs", lambda: change.get("has_pairs", True))
    monkeypatch.setattr(bf16, "is_faster", lambda *kernels: change.get("is_faster", True))
    channels = change.get("channels", 2)
    weights = RNG.standard_normal((3 * channels, 1 if channels == 1 else 4, 3, 3))
    case = Case(
        RNG.standard_normal((1, 3 * channels, 5, 6)).astype(np.float32),
        weights.astype(np.float32), None, (1, 1), (1, 1), 3, (1, 1), (5, 6),
    )  # fmt: skip
    case.filter[0, 0, 1, 1] = change.get("weight", 0.5)
    kernel = chosen(case)
    found = kernel.run(case.data, case.pads_begin, case.output)
    in_f32 = case.actual()
    if reason is None:
        assert (kernel.precision, kernel.why_f32) == ("bf16", None)
        case.rounded().check(found)
        assert not np.array_equal(found, in_f32)
    else:
        assert kernel.precision is None
        assert reason in str(kernel.why_f32)
        same_bits(found, in_f32)


def test_other_types_are_not_rounded() -> None:
    for name in ("float64", "float16", "int32"):
        case = draw(4, np.dtype(name), axes=2)
        kernel = chosen(case)
        assert (kernel.precision, kernel.why_f32) == (None, None)
        same_bits(kernel.run(case.data, case.pads_begin, case.output), case.actual())
