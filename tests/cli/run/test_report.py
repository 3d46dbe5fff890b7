"""The numbers of a summary, and the memory that computing them takes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from deconv_cli.run.report import statistics
from support import traced_peak


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8])
def test_numbers_of_many_blocks(dtype: type) -> None:
    values = (np.random.default_rng(0).standard_normal((3, 70_001)) * 20).astype(dtype)
    exact = values.astype(np.float64)
    found = statistics(values)
    assert (found["min"], found["max"]) == (exact.min(), exact.max())
    assert found["mean"] == pytest.approx(exact.mean(), rel=1e-9)
    assert set(found) == {"min", "max", "mean"}


def test_nan_is_counted_in_every_block() -> None:
    values = np.zeros(200_000, np.float16)
    values[[0, 70_000, 199_999]] = np.nan
    found = statistics(values)
    assert found["nan"] == 3.0
    assert np.isnan([found["min"], found["max"], found["mean"]]).all()
    endless = statistics(np.array([np.inf, -np.inf], np.float32))
    assert (endless["nan"], endless["max"]) == (0.0, np.inf)


def test_f16_is_not_widened_as_a_whole() -> None:
    """A copy of 4,000,000 elements in f32 would be 16 MB."""
    values = np.zeros((2000, 2000), np.float16)
    assert traced_peak(lambda: statistics(values)) < 2**21
