"""Bucketize, SearchSorted and Unique against loops."""

from __future__ import annotations

import bisect

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32, I32
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.gather_scatter.searching import Bucketize, SearchSorted, Unique


def test_bucketize() -> None:
    """The intervals are closed on the right, or on the left (Bucketize-3, `with_right_bound`)."""
    data, buckets = np.array([[0.5, 1, 3], [4, 9, -1]], np.float32), np.array([1, 4], np.float32)
    (right,) = Bucketize(output_type=I32).execute([data, buckets], Context())
    (left,) = Bucketize(with_right_bound=False).execute([data, buckets], Context())
    assert (right.tolist(), right.dtype) == ([[0, 0, 1], [1, 2, 0]], np.int32)
    assert left.tolist() == [[0, 1, 1], [2, 2, 0]]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_search_sorted(right: bool, rows: int) -> None:
    rng = np.random.default_rng(rows)
    ordered = np.sort(rng.integers(0, 9, (rows, 7)))
    values = rng.integers(-1, 11, (rows, 5))
    find = bisect.bisect_right if right else bisect.bisect_left
    expected = [
        [find(row.tolist(), v) for v in wanted]
        for row, wanted in zip(ordered, values.tolist(), strict=True)
    ]
    operation = SearchSorted(right_mode=right)
    given = ordered if rows > 1 else ordered[0]
    (found,) = operation.execute([given, values], Context())
    assert found.tolist() == expected


def test_rows_of_search_sorted() -> None:
    with pytest.raises(ShapeError, match="must have the rows of sorted_sequence"):
        SearchSorted().infer([TensorInfo((2, 5), F32), TensorInfo((3, 4), F32)], Context())


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(axis: int | None, ordered: bool) -> None:
    data = np.random.default_rng(1).integers(0, 2, (6, 3)).astype(np.float32)
    inputs = [data] if axis is None else [data, np.array(axis)]
    values, first, inverse, counts = Unique(sorted=ordered).execute(inputs, Context())
    rows = data.ravel().tolist() if axis is None else np.moveaxis(data, axis, 0).tolist()
    items = [tuple(row) if axis is not None else row for row in rows]
    seen = list(dict.fromkeys(items))
    expected = sorted(seen) if ordered else seen
    found = values.tolist() if axis is None else list(map(tuple, np.moveaxis(values, axis, 0)))
    assert found == expected
    assert first.tolist() == [items.index(item) for item in expected]
    assert inverse.tolist() == [expected.index(item) for item in items]
    assert counts.tolist() == [items.count(item) for item in expected]


def test_unique_of_an_empty_array() -> None:
    values, first, inverse, counts = Unique().execute([np.zeros((0,), np.int32)], Context())
    assert [a.size for a in (values, first, inverse, counts)] == [0] * 4
