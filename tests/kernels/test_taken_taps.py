"""Direct sums whose tiles skip taps that only meet the zeros around the data."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import in_turn

from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.kernels import naive, naive_convolution, pack_convolution, pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

module = compiled_module()
pytestmark = pytest.mark.skipif(module is None, reason="the compiled kernel was not built")
ISAS = [] if module is None else module.isas()
KINDS = {
    "convolution": (pack_convolution, naive_convolution),
    "transposed": (pack_deconvolution, naive),
}

# Extents, kernel, strides, dilations, pads and output.
GEOMETRIES: dict[str, tuple[tuple[int, ...], ...]] = {
    "as far as the data": ((12, 9), (3, 3), (1, 1), (9, 2), (9, 2), (12, 9)),
    "rows only": ((16, 32), (3, 1), (1, 1), (8, 1), (8, 0), (16, 32)),
    "rows between two taps see none": ((5, 6), (2, 1), (1, 1), (20, 1), (20, 0), (25, 6)),
    "columns between two taps see none": ((6, 5), (3, 2), (1, 1), (4, 20), (4, 20), (6, 25)),
    "planes and rows": ((6, 7, 8), (3, 3, 2), (1, 1, 1), (5, 4, 1), (5, 4, 0), (6, 7, 7)),
    "planes only": ((6, 3, 8), (3, 1, 1), (1, 1, 1), (5, 1, 1), (5, 0, 0), (6, 3, 8)),
    "every other row": ((14, 11), (3, 3), (2, 1), (7, 3), (7, 3), (7, 11)),
    "more pads than data": ((4, 7), (3, 3), (1, 1), (3, 1), (11, 1), (20, 7)),
    "five taps": ((9, 17), (5, 3), (1, 1), (4, 4), (8, 4), (9, 17)),
    "wide rows": ((20, 70), (3, 3), (1, 1), (15, 30), (15, 30), (20, 70)),
}
SMALL = ScratchpadBudget(1)


def layer(geometry: str, dtype: np.dtype[Any], random_values: Any) -> Any:
    """Return data of two images, a filter with equal channels in and out, bias and arguments."""
    extents, kernel, strides, dilations, pads, output = GEOMETRIES[geometry]
    rng = np.random.default_rng(len(geometry))
    data = random_values(rng, (2, 21, *extents), dtype)
    weights = random_values(rng, (21, 21, *kernel), dtype)
    arguments = {
        "strides": strides,
        "dilations": dilations,
        "groups": 1,
        "bias": random_values(rng, (21,), dtype),
    }
    return data, weights, arguments, pads, output


# Every geometry and kind in f32, and two of the other element types in turn.
TYPES = ["float64", "float16", "bfloat16"]
TYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
CASES = [(row, "float32") for row in itertools.product(GEOMETRIES, KINDS)]
CASES += in_turn(itertools.product(GEOMETRIES, KINDS), TYPES, 2)


@pytest.mark.parametrize(
    ("row", "element"), CASES, ids=lambda v: v if isinstance(v, str) else "-".join(v)
)
def test_against_loops(row, element, dtype_of, random_values, monkeypatch) -> None:
    (geometry, kind), dtype = row, dtype_of(element)
    kernel, loops = KINDS[kind]
    data, weights, arguments, pads, output = layer(geometry, dtype, random_values)
    expected = loops(data, weights, pads_begin=pads, output=output, **arguments)
    sums = np.float64 if dtype.kind not in "iu" else dtype
    wide = {**arguments, "bias": abs(arguments["bias"].astype(sums))}
    magnitudes = loops(
        *(abs(a.astype(sums)) for a in (data, weights)), pads_begin=pads, output=output, **wide
    )
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        prepared = kernel(weights, algorithm="direct", **arguments)
        got = prepared.run(data, pads, output)
        if dtype.kind in "iu":
            np.testing.assert_array_equal(got, expected)
            continue
        ulp = {"float32": 2e-6, "float64": 4e-15, "float16": 1e-3, "bfloat16": 8e-3}[dtype.name]
        difference = abs(got.astype(np.float64) - expected.astype(np.float64))
        assert np.all(difference <= ulp * magnitudes), isa


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_in_other_tiles(kind, geometry, dtype_of, random_values) -> None:
    """Tiles of other heights skip other taps, which must not change any bit."""
    kernel, _ = KINDS[kind]
    data, weights, arguments, pads, output = layer(geometry, dtype_of("float32"), random_values)
    prepared = kernel(weights, algorithm="direct", **arguments)
    expected = prepared.run(data, pads, output)
    try:
        for threads in (1, 2, 5):
            set_threads(threads)
            for budget in (None, SMALL):
                got = prepared.run(data, pads, output, budget=budget)
                assert got.tobytes() == expected.tobytes()
        one = prepared.run(data[1:], pads, output)
        assert one.tobytes() == expected[1:].tobytes()
    finally:
        set_threads(None)


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_are_not_finite_stay_where_taps_bring_them(
    kind, dtype_of, random_values
) -> None:
    kernel, loops = KINDS[kind]
    data, weights, arguments, pads, output = layer(
        "as far as the data", dtype_of("float32"), random_values
    )
    data[0, 3, 0, 4], data[1, 5, 11, 8] = np.inf, np.nan
    weights[2, 7, 2, 0], weights[4, 1, 0, 1] = np.nan, -np.inf
    with np.errstate(all="ignore"):
        expected = loops(data, weights, pads_begin=pads, output=output, **arguments)
    got = kernel(weights, algorithm="direct", **arguments).run(data, pads, output)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))


def test_negative_zeros_are_sums_of_zeros() -> None:
    """A sum begins with 0, and products with zeros around the data keep it 0, skipped or not."""
    weights = np.full((8, 8, 3, 3), -1.0, np.float32)
    layer = pack_convolution(weights, strides=(1, 1), dilations=(4, 4), algorithm="direct")
    got = layer.run(np.zeros((1, 8, 6, 6), np.float32), (4, 4), (6, 6))
    assert got.tobytes() == bytes(got.nbytes)


def test_a_layer_with_far_taps_is_planned_for_fewer_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cost model counts skipped taps: with taps as far apart as the data, a third remains."""
    monkeypatch.setenv("DECONV_IR_MACHINE", "zen4")
    cycles = []
    for dilation in (1, 24):
        layer = pack_convolution(
            np.ones((64, 64, 3, 1), np.float32),
            strides=(1, 1), dilations=(dilation, 1), algorithm="direct",
        )  # fmt: skip
        plan = layer.plan((1, 64, 24, 64), (dilation, 0), (24, 64), ScratchpadBudget(1 << 30))
        cycles.append(plan.algorithm.cycles)
    assert cycles[1] < 0.8 * cycles[0]
