"""Direct sums in the output itself: kernels of one column, 1x1 in most cases."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from kernels.cases import DTYPES, ISAS, KINDS, OTHERS, Layer, check_direct_sums
from support import in_turn

pytestmark = pytest.mark.skipif(not ISAS, reason="the compiled kernel was not built")

# Groups, channels in and out of each, extents, kernel, strides, pads and output.
GEOMETRIES: dict[str, tuple[Any, ...]] = {
    "whole vectors": (1, 12, 8, (8, 16), (1, 1), (1, 1), (0, 0), (8, 16)),
    "a rest, blocks of 5 and 6 rows": (1, 9, 17, (7, 7), (1, 1), (1, 1), (0, 0), (7, 7)),
    "less than a vector": (2, 5, 3, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one position": (2, 300, 23, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one position of a larger kernel": (1, 30, 9, (2, 3), (2, 3), (1, 1), (0, 0), (1, 1)),
    "many channels": (1, 200, 13, (5, 9), (1, 1), (1, 1), (0, 0), (5, 9)),
    "a column, with pads": (1, 6, 10, (9, 19), (3, 1), (1, 1), (1, 0), (9, 19)),
    "every other position": (2, 4, 9, (11, 38), (1, 1), (2, 2), (0, 0), (6, 19)),
    "every other, from the second on": (1, 4, 9, (11, 38), (1, 1), (2, 2), (-1, -1), (5, 19)),
    "every other of one axis, then none": (1, 20, 9, (12,), (1,), (2,), (0,), (12,)),
    "volume": (1, 3, 10, (4, 3, 7), (2, 1, 1), (1, 1, 1), (0, 0, 0), (4, 3, 7)),
    "tiles of one row, the last with a rest": (1, 9, 9, (33, 33), (1, 1), (1, 1), (0, 0), (33, 33)),
    "channels that meet in the cache": (2, 7, 9, (8, 16), (1, 1), (1, 1), (0, 0), (8, 16)),
    "one axis": (3, 4, 5, (83,), (1,), (1,), (0,), (83,)),
}


ROWS = list(itertools.product(GEOMETRIES, KINDS))


@pytest.mark.parametrize(
    ("row", "element"),
    [*((row, "float32") for row in ROWS), *in_turn(ROWS, OTHERS, 1)],
    ids=lambda v: v if isinstance(v, str) else "-".join(v),
)
def test_against_loops(row, element, monkeypatch) -> None:
    geometry, kind = row
    *front, pads, output = GEOMETRIES[geometry]
    layer = Layer(*front, (1,) * len(pads), pads, output)
    check_direct_sums(layer.case(kind, DTYPES[element]), monkeypatch)
