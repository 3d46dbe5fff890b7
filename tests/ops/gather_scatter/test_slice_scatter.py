"""SliceScatter-15 against assignment to a slice of a list of lists."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32, I64
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.gather_scatter.scatter import SliceScatter

LISTS = [(1, 9, 2), (-1, 0, -3), (0, 6, 1)]


@pytest.mark.parametrize(("start", "stop", "step"), LISTS)
def test_slices(start: int, stop: int, step: int) -> None:
    expected = list(range(6))
    count = len(expected[start:stop:step])
    updates = np.arange(count) + 10
    expected[start:stop:step] = updates.tolist()
    data = np.arange(12).reshape(2, 6) % 6
    both = np.stack([updates, updates])
    lists = [np.array([v]) for v in (start, stop, step, 1)]
    (found,) = SliceScatter().execute([data, both, *lists], Context())
    assert found.tolist() == [expected] * 2
    assert data.tolist() == [list(range(6))] * 2, "the data stays"


def test_updates_have_the_shape_of_the_slice() -> None:
    lists = [TensorInfo((1,), I64, (v,)) for v in (0, 3, 1)]
    with pytest.raises(
        ShapeError, match=r"updates \[2,4\] must have the shape of the slice \[3,4\]"
    ):
        SliceScatter().infer([TensorInfo((6, 4), F32), TensorInfo((2, 4), F32), *lists], Context())


def test_the_slice_of_a_run_may_be_another() -> None:
    lists = [np.array([v]) for v in (5, 7, 1)]
    with pytest.raises(ShapeError, match=r"updates \[2\] must have the shape of the slice \[1\]"):
        SliceScatter().execute([np.zeros(6), np.ones(2), *lists], Context())
