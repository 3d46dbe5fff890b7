"""The numbers of a summary, and the memory that computing them takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import ml_dtypes
import numpy as np
import pytest
from deconv_cli.run.profiles import RunProfiles
from deconv_cli.run.report import statistics
from deconv_cli.run.tables import print_profile
from support import traced_peak

from deconv_ir import LayerTime


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


def test_the_slowest_layer_is_the_first_row(capsys: pytest.CaptureFixture[str]) -> None:
    times = (("fast", 0.001), ("slow", 0.003), ("medium", 0.002))
    rows = [LayerTime(name, "ReLU", "f32[4]", 0.0, seconds, None) for name, seconds in times]
    counted = SimpleNamespace(layers=rows, seconds=0.006)
    profiles = cast("RunProfiles", SimpleNamespace(counted=counted, cold=[], cold_counts=True))
    print_profile(profiles, 1)
    words = capsys.readouterr().err.split()
    assert words.index("slow") < words.index("medium") < words.index("fast")
