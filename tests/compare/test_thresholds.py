"""Error measures of outputs, and conditions on them; expected values are worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deconv_ir import SettingError
from deconv_ir.compare.thresholds import Metric, Threshold, measure

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("metric", "a", "b", "expected"),
    [
        ("max_abs", [3.0, -4.0], [3.0, -4.5], 0.5),
        ("max_rel", [3.0, -4.0], [3.0, -4.5], 0.125),
        ("max_rel", [0.0, 1.0], [0.25, 1.0], INF),
        ("rms", [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], 1.0),
        ("rms", [1.0, 2.0], [1.0, 6.0], math.sqrt(8)),
        ("cosine", [1.0, 0.0], [0.0, 5.0], 0.0),
        ("cosine", [3.0, 4.0], [4.0, 3.0], 0.96),
        ("cosine", [0.0, 0.0], [0.0, 0.0], 1.0),
        ("cosine", [0.0, 0.0], [0.0, 1.0], 0.0),
        # a signal of power 100 with noise of power 1
        ("snr", [6.0, 8.0], [6.0, 9.0], 20.0),
        ("snr", [6.0, 8.0], [6.0, 8.0], INF),
        ("snr", [0.0, 0.0], [0.0, 1.0], -INF),
        # a peak of 10, and a mean squared error of 1
        ("psnr", [10.0, 0.0], [11.0, 1.0], 20.0),
        ("psnr", [10.0, 0.0], [10.0, 0.0], INF),
        ("max_abs", [NAN, INF, -INF], [NAN, INF, -INF], 0.0),
        ("max_abs", [INF], [-INF], INF),
        ("rms", [NAN, 1.0], [0.0, 1.0], INF),
        ("ulp", [NAN, INF], [NAN, 1.0], INF),
        ("rms", [], [], 0.0),
        ("ulp", [], [], 0.0),
        ("max_abs", [1.0], [1.0, 2.0], NAN),
    ],
)
def test_error_measures(metric: str, a: list[float], b: list[float], expected: float) -> None:
    found = measure(Metric(metric), np.array(a, np.float32), np.array(b, np.float32))
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("dtype", "a", "steps"),
    [("float32", 1.0, 3), ("float32", -1e-40, 2), ("float16", 1.5, 1), ("float64", 1e300, 4)],
)
def test_units_in_the_last_place_are_those_of_the_first_type(
    dtype: str, a: float, steps: int
) -> None:
    start = np.array([a], dtype)
    other = start
    for _ in range(steps):
        other = np.nextafter(other, np.array(np.inf * np.sign(a), dtype)).astype(dtype)
    assert measure(Metric.ULP, start, other.astype(np.float64)) == steps


def test_integers_differ_by_whole_numbers() -> None:
    a, b = np.array([1, 7], np.int64), np.array([1, 9], np.int64)
    assert (measure(Metric.ULP, a, b), measure(Metric.MAX_ABS, a, b)) == (2, 2)


def test_strings_agree_or_do_not() -> None:
    a, b = np.array(["x", "y"], object), np.array(["x", "z"], object)
    assert measure(Metric.MAX_ABS, a, a) == 0
    assert measure(Metric.MAX_ABS, a, b) == INF


def test_sums_of_many_elements() -> None:
    """More elements than a block has."""
    a, b = np.zeros(600_001, np.float32), np.zeros(600_001, np.float32)
    b[-1] = 2
    assert measure(Metric.MAX_ABS, a, b) == 2
    assert measure(Metric.RMS, a, b) == pytest.approx(2 / math.sqrt(600_001))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("rms>1e-3", Threshold(Metric.RMS, ">", 1e-3)),
        (" cosine < 0.99 ", Threshold(Metric.COSINE, "<", 0.99)),
        ("y:psnr<40", Threshold(Metric.PSNR, "<", 40.0, "y")),
        ("a:b/c : ulp > 4", Threshold(Metric.ULP, ">", 4.0, "a:b/c")),
        ("mismatches>0", Threshold(Metric.MISMATCHES, ">", 0.0)),
    ],
)
def test_conditions_are_parsed(text: str, parsed: Threshold) -> None:
    assert Threshold.parse(text) == parsed
    assert Threshold.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rms", r"expected \[NAME:\]METRIC>NUMBER"),
        ("rms=1", r"expected \[NAME:\]METRIC>NUMBER"),
        ("", r"expected \[NAME:\]METRIC>NUMBER"),
        ("rmse>1", "no metric 'rmse'; there are max_abs, .*did you mean .rms"),
        ("rms>nan", "'nan' is not a number"),
        ("rms>1_0", "'1_0' is not a number"),
        ("rms>\u0663", "'\u0663' is not a number"),
        ("rms>much", "'much' is not a number"),
    ],
)
def test_other_conditions_are_refused(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Threshold.parse(text)
