"""Pads and extents, one axis at a time, with literals from the documents."""

from __future__ import annotations

import itertools
import random

import pytest
from support import batches

from deconv_ir.ir.geometry import (
    Axis,
    Interval,
    PadMode,
    backward_data_axis,
    conv_transpose_axis,
    effective_kernel,
    interior_taps,
    interval,
    monotone,
    natural_extent,
    openvino_axis,
    tap_counts,
)
from deconv_ir.ir.options import Semantics

E, U, L, V = PadMode.EXPLICIT, PadMode.SAME_UPPER, PadMode.SAME_LOWER, PadMode.VALID
SPEC, OPENVINO = Semantics.SPEC, Semantics.OPENVINO


@pytest.mark.parametrize(
    ("kernel", "dilation", "expected"), [(3, 1, 3), (3, 2, 5), (1, 9, 1), (4, 3, 10)]
)
def test_effective_kernel(kernel: int, dilation: int, expected: int) -> None:
    assert effective_kernel(kernel, dilation) == expected


def test_natural_extent() -> None:
    # semantics: data of 3, filter of 4, stride 2 -> 8 elements
    assert natural_extent(3, 4, 2, 1) == 8


@pytest.mark.parametrize(
    ("axis", "data", "kernel", "auto_pad", "expected"),
    [
        # S0, S2 example 1: 2*(224-1) + 3 - 1 - 1 = 447
        pytest.param(Axis(2, 1, 1, 1), 224, 3, E, (1, 1, 447), id="S2 example 1"),
        # S2 example 2: 3*(2-1) + 3 - 0 - 0 + 2 = 8
        pytest.param(Axis(3, 1, 0, 0, 2), 2, 3, E, (0, 0, 8), id="S2 example 2"),
        pytest.param(Axis(2, 1, 0, 3), 5, 4, E, (0, 3, 9), id="asymmetric pads"),
        pytest.param(Axis(2, 3, 1, 1), 5, 3, E, (1, 1, 13), id="dilation"),
        pytest.param(Axis(2, 1, 9, 0), 5, 3, E, (9, 0, 2), id="pad larger than the kernel"),
        pytest.param(Axis(1, 1, 0, 0, 4), 3, 2, E, (0, 0, 8), id="output_padding >= stride"),
        # 'if auto_pads != None: pads_begin[i] = 0, pads_end[i] = 0'
        pytest.param(Axis(2, 1, 1, 1), 5, 3, U, (0, 0, 11), id="same_upper ignores pads"),
        pytest.param(Axis(2, 1, 1, 1), 5, 3, L, (0, 0, 11), id="same_lower ignores pads"),
        pytest.param(Axis(2, 1, 1, 1, 1), 5, 3, V, (0, 0, 12), id="valid ignores pads"),
    ],
)
def test_openvino_without_output_shape(
    axis: Axis, data: int, kernel: int, auto_pad: PadMode, expected: tuple[int, int, int]
) -> None:
    for semantics in Semantics:
        found = openvino_axis(axis, data, kernel, auto_pad, None, semantics)
        assert (found.pad_begin, found.pad_end, found.output) == expected


@pytest.mark.parametrize(
    ("auto_pad", "output", "output_padding", "pads", "spec", "openvino"),
    [
        # The probe: data of 3, filter of 4, stride 2, so F = 8 (semantics.md).
        (E, 5, 0, (0, 0), 1, 0),
        (E, 7, 0, (1, 0), 0, 1),
        (V, 7, 1, (0, 0), 1, 0),
        (E, 10, 0, (1, 0), -1, 1),
        (U, 5, 0, (0, 0), 2, 2),
        (L, 5, 0, (0, 0), 1, 1),
        (U, 10, 0, (0, 0), -1, 0),
        (U, 10, 1, (0, 0), 0, 0),
    ],
)
def test_openvino_with_output_shape(
    auto_pad: PadMode,
    output: int,
    output_padding: int,
    pads: tuple[int, int],
    spec: int,
    openvino: int,
) -> None:
    axis = Axis(2, 1, *pads, output_padding)
    for semantics, begin in ((SPEC, spec), (OPENVINO, openvino)):
        found = openvino_axis(axis, 3, 4, auto_pad, output, semantics)
        assert (found.pad_begin, found.output) == (begin, output)
        # pads and extent always add up to the natural extent
        assert found.output == 8 + output_padding - found.pad_begin - found.pad_end


def test_third_example_has_negative_pads() -> None:
    # S2 example 3: total = 1*(224-1) + 3 - 450 = -224; valid is != SAME_UPPER
    found = openvino_axis(Axis(1, 1, 1, 1), 224, 3, V, 450)
    assert (found.pad_begin, found.pad_end) == (-112, -112)


@pytest.mark.parametrize(
    ("auto_pad", "total_kernel", "stride", "expected"),
    [
        # S3: total = (K - 1)*d + 1 - stride; SAME_UPPER puts total / 2 at the start
        (U, 4, 1, (1, 2)),
        (L, 4, 1, (2, 1)),
        (U, 5, 2, (1, 2)),
        (L, 5, 2, (2, 1)),
        (U, 4, 2, (1, 1)),
        (U, 1, 4, (-2, -1)),  # negative, not clamped
        (L, 1, 4, (-1, -2)),
    ],
)
def test_conv_transpose_same(
    auto_pad: PadMode, total_kernel: int, stride: int, expected: tuple[int, int]
) -> None:
    axis = Axis(stride, 1, 7, 7, 2)
    found = conv_transpose_axis(axis, 6, total_kernel, auto_pad)
    assert (found.pad_begin, found.pad_end) == expected
    assert found.output == stride * 6 + 2


def test_conv_transpose_explicit_and_valid() -> None:
    axis = Axis(2, 2, 1, 3, 1)
    # S3, first equation: 2*(5-1) + 1 + ((3-1)*2 + 1) - 1 - 3 = 10
    assert conv_transpose_axis(axis, 5, 3).output == 10
    valid = conv_transpose_axis(axis, 5, 3, V)
    assert (valid.pad_begin, valid.pad_end, valid.output) == (0, 0, 14)


@pytest.mark.parametrize(
    ("auto_pad", "begin"),
    # S4: total = 2*(5-1) + 3 - 8 + 0 = 3
    [(E, 1), (V, 0), (L, 1), (U, 2)],
)
def test_backward_data(auto_pad: PadMode, begin: int) -> None:
    found = backward_data_axis(Axis(2, 1, 1, 0), 5, 3, 8, auto_pad)
    assert (found.pad_begin, found.output) == (begin, 8)
    assert found.pad_begin + found.pad_end == 3


def test_formulas_have_the_numbers_put_in() -> None:
    first = openvino_axis(Axis(2, 1, 1, 1), 224, 3)
    assert first.formula.endswith("= 2*(224 - 1) + ((3 - 1)*1 + 1) - 1 - 1 + 0 = 447")
    third = openvino_axis(Axis(1, 1, 1, 1), 224, 3, V, 450)
    assert "1*(224 - 1) + ((3 - 1)*1 + 1) - 450 + 0 = -224" in third.formula
    assert "pad_begin = total_padding // 2 = -112" in third.formula
    same = conv_transpose_axis(Axis(2), 6, 5, U)
    assert "2*6 + 0 = 12" in same.formula
    assert "(5 - 1)*1 + 1 - 2 = 3" in same.formula


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ((3, 4), 12),
        ((Interval(2, 5), 4), Interval(8, 20)),
        ((Interval(2, None), 4), Interval(8, None)),
        ((Interval(0, 0), 4), 0),
    ],
)
def test_monotone(dims: tuple[int | Interval, ...], expected: int | Interval) -> None:
    assert monotone(lambda a, b: a * b, *dims) == expected


def test_interval_of_one_value_is_that_value() -> None:
    assert interval(3, 3) == 3
    assert monotone(lambda a: a - 10, Interval(2, 12)) == Interval(0, 2)


def taps_by_loops(axis: Axis, data: int, kernel: int) -> dict[int, int]:
    """Scatter a 1 for each element of data and kernel, as in the definition."""
    counts: dict[int, int] = {}
    for x, k in itertools.product(range(data), range(kernel)):
        t = axis.stride * x + axis.dilation * k
        counts[t] = counts.get(t, 0) + 1
    return counts


@pytest.mark.parametrize("seeds", batches(60, 30), ids=str)
def test_tap_counts(seeds: range) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        axis = Axis(draw.randint(1, 7), draw.randint(1, 7))
        data, kernel, pad = draw.randint(0, 9), draw.randint(0, 9), draw.randint(-9, 9)
        loops = taps_by_loops(axis, data, kernel)
        outputs = range(axis.natural(data, kernel) - pad + 9)
        expected = tuple(loops.get(y + pad, 0) for y in outputs)
        assert tap_counts(axis, data, kernel, pad, outputs) == expected


@pytest.mark.parametrize("seeds", batches(60, 30), ids=str)
def test_interior_taps(seeds: range) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        axis = Axis(draw.randint(1, 9), draw.randint(1, 9))
        kernel = draw.randint(1, 12)
        loops = taps_by_loops(axis, 99 * 12, kernel)
        middle = [loops.get(t, 0) for t in range(300, 300 + axis.stride)]
        expected = (min(middle), max(middle), middle.count(0))
        assert interior_taps(axis, kernel) == expected


def test_taps_of_huge_extents() -> None:
    axis = Axis(10**9 + 7, 10**9 + 9)
    assert interior_taps(axis, 2**62)[-1] == 0
    assert sum(tap_counts(axis, 2**62, 2**62, 2**61, range(3))) > 0
