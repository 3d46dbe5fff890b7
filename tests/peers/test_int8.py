"""Answers about integers compared with the graphs that OpenVINO executes; see tools/check_int8.py.

The tool has all cases; this is a subset that has each condition and each kind of layer.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from check_int8 import compared
from int8_networks import DEPTHWISE, Fake, drawn, write
from linter.test_int8 import F32, INTEGERS, RISING
from quantized_layers import fake_quantize

ov = pytest.importorskip("openvino")
pytestmark = pytest.mark.peers


def processor_has(feature: str) -> bool:
    info = Path("/proc/cpuinfo")
    return info.exists() and feature in info.read_text()


@pytest.mark.skipif(
    processor_has("amx_int8") or not processor_has("avx512_vnni"),
    reason="the answers are for AVX-512 without AMX",
)
def test_answers_agree_with_the_executed_graph() -> None:
    cases = [*INTEGERS, *(case for _, case in F32), *drawn(2947, 30)]
    found = list(compared(cases))
    assert [str(row) for row in found if not row.agrees] == []
    told = [row for row in found if row.executed is not None and row.answer is not None]
    assert len(told) >= 60
    assert {row.executed.integers for row in told if row.executed is not None} == {True, False}


def test_ranges_of_different_shapes_are_misread(tmp_path: Path) -> None:
    """IR609: results are wrong by more than a level, here of a depthwise convolution by ones."""
    x = np.random.default_rng(0).uniform(0, 3, (1, 32, 9, 9)).astype(np.float32)
    core, hint = ov.Core(), {"INFERENCE_PRECISION_HINT": "f32"}

    def run(low: float | tuple[float, ...], data: np.ndarray) -> np.ndarray:
        case = DEPTHWISE._replace(data=Fake(low, RISING), kernel=(1,))
        compiled = core.compile_model(str(write(case).save(tmp_path)), "CPU", hint)
        return np.asarray(compiled([data])[0], np.float64)

    # A depthwise convolution by a kernel of 1 scales each channel: by how much, tell data that
    # are all at the end of their range.
    high = np.array(RISING).reshape(1, -1, 1, 1)
    zeros = (0.0,) * len(RISING)
    factors = run(zeros, np.full_like(x, 9)) / high
    exact = fake_quantize(x, 0.0, high) * factors
    scale = np.abs(exact).max()
    assert np.abs(run(zeros, x) - exact).max() < 0.01 * scale
    assert np.abs(run(0.0, x) - exact).max() > 0.1 * scale
