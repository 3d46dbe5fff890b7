"""SegmentMax-16 against itertools.groupby."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.operations import Context
from deconv_ir.ops.gather_scatter.segment_max import Fill, SegmentMax


@pytest.mark.parametrize("kind", [np.float32, np.int32])
@pytest.mark.parametrize("count", [None, 3, 9])
@pytest.mark.parametrize("fill", Fill)
def test_against_groups(fill: Fill, count: int | None, kind: type) -> None:
    ids = [0, 0, 2, 2, 2, 5]
    data = (np.random.default_rng(0).standard_normal((6, 2)) * 9 - 20).astype(kind)
    more = [] if count is None else [np.array(count)]
    (found,) = SegmentMax(fill_mode=fill).execute([data, np.array(ids), *more], Context())
    lowest = np.iinfo(kind).min if kind is np.int32 else np.finfo(kind).min
    expected = np.full(
        (6 if count is None else count, 2), lowest if fill is Fill.LOWEST else 0, kind
    )
    for number, group in itertools.groupby(range(6), key=ids.__getitem__):
        if number < len(expected):
            expected[number] = [max(column) for column in zip(*data[list(group)], strict=True)]
    np.testing.assert_array_equal(found, expected)


def test_ids_are_sorted() -> None:
    with pytest.raises(ShapeError, match="segment_ids must be sorted"):
        SegmentMax(fill_mode=Fill.ZERO).execute([np.zeros(3), np.array([0, 2, 1])], Context())
