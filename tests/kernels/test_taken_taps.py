"""Direct sums whose tiles skip taps that only meet the zeros around the data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernels.cases import DTYPES, ISAS, KINDS, OTHERS, Case, Layer, check_direct_sums
from support import in_turn

from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.kernels import pack_convolution

pytestmark = pytest.mark.skipif(not ISAS, reason="the compiled kernel was not built")

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


def case(geometry: str, kind: str, element: str = "float32") -> Case:
    return Layer(1, 21, 21, *GEOMETRIES[geometry]).case(kind, DTYPES[element], 2)


# Every geometry and kind in f32, and one of the other element types in turn.
ROWS = list(itertools.product(GEOMETRIES, KINDS))


@pytest.mark.parametrize(
    ("row", "element"),
    [*((row, "float32") for row in ROWS), *in_turn(ROWS, OTHERS, 1)],
    ids=lambda v: v if isinstance(v, str) else "-".join(v),
)
def test_against_loops(row, element, monkeypatch) -> None:
    """Tiles of other heights skip other taps, which must not change any bit."""
    check_direct_sums(case(*row, element), monkeypatch)


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_are_not_finite_stay_where_taps_bring_them(kind) -> None:
    layer = case("as far as the data", kind)
    layer.data[0, 3, 0, 4], layer.data[1, 5, 11, 8] = np.inf, np.nan
    layer.filter[2, 7, 2, 0], layer.filter[4, 1, 0, 1] = np.nan, -np.inf
    expected, found = layer.expected(), layer.actual(algorithm="direct")
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


def test_negative_zeros_are_sums_of_zeros() -> None:
    """A sum begins with 0, and products with zeros around the data keep it 0, skipped or not."""
    weights = np.full((8, 8, 3, 3), -1.0, np.float32)
    layer = pack_convolution(weights, strides=(1, 1), dilations=(4, 4), algorithm="direct")
    got = layer.run(np.zeros((1, 8, 6, 6), np.float32), (4, 4), (6, 6))
    assert got.tobytes() == bytes(got.nbytes)


def test_a_layer_with_far_taps_is_planned_for_fewer_products(monkeypatch) -> None:
    """The cost model counts skipped taps: with taps as far apart as the data, a third remains."""
    monkeypatch.setenv("DECONV_IR_MACHINE", "zen4")  # whichever processor runs this
    cycles = []
    for dilation in (1, 24):
        layer = pack_convolution(
            np.ones((64, 64, 3, 1), np.float32),
            strides=(1, 1), dilations=(dilation, 1), algorithm="direct",
        )  # fmt: skip
        plan = layer.plan((1, 64, 24, 64), (dilation, 0), (24, 64), ScratchpadBudget(1 << 30))
        cycles.append(plan.algorithm.cycles)
    assert cycles[1] < 0.8 * cycles[0]
