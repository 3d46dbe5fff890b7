"""Plans count the offsets that integer sums keep where level 0 of the data is not 0."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from quantized_layers import Network

import deconv_ir
from deconv_ir.kernels.runtime.extension import compiled_module

CHANNELS, ROWS, COLUMNS = 24, 40, 100


def bound(folder: Any, low: float, *, codes: bool) -> deconv_ir.BoundModel:
    """Return a convolution of 3 x 3 with pads of 1, whose results may be codes."""
    net = Network(f"1,8,{ROWS},{COLUMNS}")
    sums = net.convolution(net.quantize(net.x, low, 1.0), net.weights(CHANNELS, 8, 3, 3)[0])
    if codes:
        last = net.weights(4, CHANNELS, 1, 1)[0]
        sums = net.convolution(net.quantize(sums, 0.0, 1.0), last, pad=0)
    net.ir.result(sums)
    folder.mkdir()
    model = deconv_ir.load(net.ir.save(folder))
    return model.bind(np.zeros((1, 8, ROWS, COLUMNS), np.float32))


@pytest.mark.skipif(not compiled_module(), reason="BLAS sums codes in f32")
@pytest.mark.parametrize("codes", [False, True], ids=["numbers", "codes"])
def test_plans_count_offsets_at_borders(tmp_path: Any, codes: bool) -> None:
    """Each channel has three classes of rows; all columns of so few are stored."""
    without, with_ = (bound(tmp_path / str(low), low, codes=codes).plan for low in (0.0, -1.0))
    counted = CHANNELS * 3 * COLUMNS * (12 if codes else 8)
    assert with_.weight_bytes - without.weight_bytes >= counted
    assert with_.peak_bytes - without.peak_bytes >= counted
    assert with_.peak_bytes - without.peak_bytes < 1.1 * counted


@pytest.mark.skipif(not compiled_module(), reason="BLAS sums codes in f32")
def test_python_keeps_no_copy_of_offsets(tmp_path: Any) -> None:
    model = bound(tmp_path / "net", -1.0, codes=False)
    model.plan  # noqa: B018 - packs filters, and imports modules
    bound(tmp_path / "same", -1.0, codes=False).run()
    tracemalloc.start()
    model.run()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < CHANNELS * 3 * COLUMNS * 8
