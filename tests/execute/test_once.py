"""A run that frees the packed weights of each layer after the layer has run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.kernels.runtime.extension import compiled_module

BLOCK = Path(__file__).parents[2] / "samples" / "block" / "block.xml"
FILTER = 1024  # bytes


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of bytes of each read from the weights file."""
    sizes: list[int] = []
    read = Weights.read

    def recorded(self: Weights, offset: int, size: int) -> memoryview:
        sizes.append(size)
        return read(self, offset, size)

    monkeypatch.setattr(Weights, "read", recorded)
    return sizes


def test_weights_are_freed_behind_the_run_and_read_again(reads: list[int]) -> None:
    data = np.random.default_rng(0).standard_normal((1, 8, 16, 16)).astype(np.float32)
    expected = deconv_ir.load(BLOCK).run(data)["y"]
    bound = deconv_ir.load(BLOCK).bind(data)
    packed = compiled_module() is not None  # NumPy's kernels keep theirs
    for run in range(3):  # the first has the weights that the plan has read
        reads.clear()
        np.testing.assert_array_equal(bound.run(once=True)["y"], expected)
        assert reads.count(FILTER) == (packed or run == 0)
    reads.clear()
    for _ in range(2):
        np.testing.assert_array_equal(bound.run()["y"], expected)
    assert reads == [FILTER] * packed
