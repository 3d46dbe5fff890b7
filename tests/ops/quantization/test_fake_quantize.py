"""FakeQuantize of a filter is computed where it is read, as of the whole filter."""

from __future__ import annotations

import numpy as np
import pytest
from operation_forms import make

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.operation import Context

SHAPE = (3, 40, 30, 24)  # rows of the first axis have more elements than are computed at once


def lazy(array: np.ndarray) -> LazyTensor:
    return LazyTensor(array.shape, array.dtype, lambda start, stop: array.reshape(-1)[start:stop])


@pytest.mark.parametrize(
    "low",
    [(), (1,), (24,), (30, 1), (40, 1, 1), (1, 30, 24), (3, 1, 1, 1), (3, 40, 1, 1), (3, 1, 30, 1)],
)
def test_any_part_of_a_filter_is_that_of_the_whole(low: tuple[int, ...]) -> None:
    """The ranges are broadcast to the data: OpenVINO operation specification, FakeQuantize-1."""
    random = np.random.default_rng(len(low))
    data = random.standard_normal(SHAPE, np.float32)
    ends = [-1 - random.random(low, np.float32), np.ones(1, np.float32)]
    ends += [np.full((1, 1), -0.5, np.float32), random.random(low, np.float32)]
    operation = make("FakeQuantize", levels="16")
    (expected,) = operation.execute([data, *ends], Context())
    found = operation.as_lazy_tensor([lazy(data), *map(lazy, ends)], Context())
    assert found is not None
    np.testing.assert_array_equal(found.whole(), expected)
    for start, stop in [(0, 1), (7, 9), (719, 721), (28799, 28801), (50_000, data.size)]:
        np.testing.assert_array_equal(found.read(start, stop), expected.reshape(-1)[start:stop])
