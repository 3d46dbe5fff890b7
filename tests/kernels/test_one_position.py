"""Data of one position: each tap computes a result of its own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from kernels.cases import DTYPES, ISAS, KINDS, OTHERS, Case, Layer, check_direct_sums, same_bits
from support import in_turn

from deconv_ir.kernels.activation import Activation, ActivationType

pytestmark = pytest.mark.skipif(not ISAS, reason="the compiled kernel was not built")

# Groups, channels in and out of each, kernel, strides, dilations, pads and output.
GEOMETRIES: dict[str, tuple[Any, ...]] = {
    "all taps": (1, 40, 24, (4, 4), (1, 1), (1, 1), (0, 0), (4, 4)),
    "rows of two lengths": (1, 7, 13, (3, 5), (1, 1), (1, 1), (0, 0), (3, 5)),
    "groups, sub-convolutions": (3, 5, 9, (4, 5), (2, 3), (1, 1), (0, 0), (4, 5)),
    "cropped": (1, 9, 10, (4, 4), (2, 2), (1, 1), (1, 2), (3, 1)),
    "larger than what taps reach": (2, 6, 5, (3, 2), (1, 2), (1, 1), (-2, -1), (8, 6)),
    "dilated": (1, 6, 11, (3, 2), (2, 1), (3, 2), (1, 0), (7, 3)),
    "no tap reaches": (1, 4, 3, (2, 2), (1, 1), (1, 1), (5, 5), (2, 2)),
    "centre": (1, 33, 17, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    "one tap, blocks of two lengths": (1, 20, 150, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one tap, groups, larger output": (2, 5, 9, (1, 1), (3, 2), (1, 1), (-1, 0), (4, 3)),
    "one tap of each sub-convolution": (1, 6, 20, (2, 3), (2, 3), (1, 1), (0, 0), (2, 3)),
    "volume": (1, 6, 10, (2, 3, 2), (1, 2, 1), (1, 1, 1), (0, 1, 0), (2, 3, 2)),
    "one axis": (2, 70, 4, (16,), (8,), (1,), (4,), (9,)),
}


def case(geometry: str, kind: str, element: str = "float32", positions: int = 1) -> Case:
    groups, channels_in, channels_out, kernel, *rest = GEOMETRIES[geometry]
    extents = (*(1 for _ in kernel[1:]), positions)
    return Layer(groups, channels_in, channels_out, extents, kernel, *rest).case(
        kind, DTYPES[element]
    )


ROWS = list(itertools.product(GEOMETRIES, KINDS))


@pytest.mark.parametrize(
    ("row", "element"),
    [*((row, "float32") for row in ROWS), *in_turn(ROWS, OTHERS, 1)],
    ids=lambda v: v if isinstance(v, str) else "-".join(v),
)
def test_against_loops(row, element, monkeypatch) -> None:
    check_direct_sums(case(*row, element), monkeypatch)


@pytest.mark.parametrize(
    ("row", "element"), in_turn(ROWS, ["float32", "bfloat16", "int16"], 1), ids=str
)
def test_same_bits_as_in_tiles(row, element, monkeypatch) -> None:
    """Two positions, the second of zeros, are computed in tiles; six images have other blocks."""
    two = case(*row, element, positions=2)
    two.data[..., 1] = 0
    relu = Activation(ActivationType.RELU)
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        kernel = two.kernel(algorithm="direct", activation=relu)
        found = kernel.run(two.data[..., :1], two.pads_begin, two.output)
        np.testing.assert_array_equal(kernel.run(two.data, two.pads_begin, two.output), found)
        six = kernel.run(np.tile(two.data[..., :1], (2, *[1] * (two.data.ndim - 1))),
                         two.pads_begin, two.output)  # fmt: skip
        same_bits(six, np.concatenate([found, found]))
        sums = two.kernel(algorithm="direct").run(two.data[..., :1], two.pads_begin, two.output)
        np.testing.assert_array_equal(found, np.where(sums < 0, sums.dtype.type(0), sums))
