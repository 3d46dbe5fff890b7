"""A memory limit that is the peak of a plan always runs, whatever limit that plan was made for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir

ELEMENTWISE = ("ReLU", "Sigmoid", "Abs")


def draw(seed: int, most_channels: int) -> IR:
    """Draw a chain of convolutions of some kinds and elementwise layers."""
    rng, ir = np.random.default_rng(seed), IR()
    channels = int(rng.integers(1, most_channels))
    height, width = map(int, rng.integers(3, 25, 2))
    y = ir.parameter("x", f"1,{channels},{height},{width}")

    def filter_(*shape: int) -> str:
        return ir.const(rng.uniform(0.1, 0.2, shape).astype(np.float32))

    for _ in range(int(rng.integers(1, 7))):
        kind, outputs = int(rng.integers(5)), int(rng.integers(1, most_channels))
        stride, pad = (int(rng.integers(1, 4)), 0) if kind == 1 else (1, int(rng.integers(3)))
        extent = 2 * pad + 1 if stride == 1 else int(rng.integers(2, 5))
        how = {"strides": f"{stride},{stride}", "dilations": "1,1"}
        how |= {"pads_begin": f"{pad},{pad}", "pads_end": f"{pad},{pad}"}
        if kind == 0:
            w = filter_(outputs, channels, extent, extent)
            y, channels = ir.layer("Convolution", [y, w], how), outputs
        elif kind == 1:
            w = filter_(channels, outputs, extent, extent)
            y, channels = ir.layer("ConvolutionBackpropData", [y, w], how), outputs
        elif kind == 2:
            w = filter_(channels, 1, 1, extent, extent)
            y = ir.layer("GroupConvolution", [y, w], how)
        elif kind == 3:
            y = ir.layer("Add", [y, filter_(1, channels, 1, 1)])
        else:
            y = ir.layer(str(rng.choice(ELEMENTWISE)), [y])
    ir.result(y, "y")
    return ir


@pytest.mark.parametrize(
    ("first", "most_channels"), [(0, 13), (20, 13), (40, 13), (120, 13), (250, 13), (0, 80)]
)
def test_a_plan_runs_within_its_own_peak(first: int, most_channels: int, tmp_path: Path) -> None:
    """Of networks so small that the smallest scratchpad may not fit what a limit leaves."""
    for seed in range(first, first + 20):
        path = draw(seed, most_channels).save(tmp_path)
        free = deconv_ir.load(path).bind().plan
        limits = [int(share * free.bound_bytes) for share in (0.5, 0.9, 1.2, 1.5, 2.5)]
        for limit in (None, *limits):
            try:
                peak = deconv_ir.load(path, memory_limit=limit).bind().plan.peak_bytes
            except deconv_ir.ResourceError:  # the limit is below the constants
                continue
            model = deconv_ir.load(path, memory_limit=peak)
            (port,) = model.inputs.values()
            bound = model.bind([np.ones(tuple(map(int, port.shape)), np.float32)])
            assert bound.plan.peak_bytes <= peak, (seed, limit)
            bound.run()
