"""Idle threads steal pieces of the jobs that other threads are running."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir import kernels
from deconv_ir.ir.scratchpad import UNLIMITED
from deconv_ir.kernels import naive, pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)

# Data, filter, strides, pads, output: few jobs of several pieces each.
LAYERS = {
    "chunks of rows": ((3, 24, 9, 9), (24, 90, 3, 3), (1, 1), (1, 1), (9, 9)),
    "sub-convolutions": ((3, 6, 17, 19), (6, 4, 6, 6), (3, 3), (2, 1), (49, 56)),
    "three axes": ((2, 5, 5, 6, 7), (5, 7, 4, 4, 4), (2, 2, 2), (1, 1, 1), (10, 12, 14)),
    "tiny planes": ((9, 40, 4, 4), (40, 30, 4, 4), (2, 2), (1, 1), (8, 8)),
    "kernel = stride": ((3, 140, 6, 7), (140, 20, 2, 2), (2, 2), (0, 0), (12, 14)),
}


@pytest.mark.parametrize(
    ("element", "threads", "scratch_bytes"),
    [
        ("float32", 2, 64 << 20),
        ("float32", 5, 300_000),
        ("float16", 5, 64 << 20),
        ("float16", 2, 300_000),
    ],
)
@pytest.mark.parametrize("algorithm", ["direct", "winograd"])
@pytest.mark.parametrize("layer", LAYERS)
def test_every_piece_once(layer, algorithm, element, threads, scratch_bytes):
    data_shape, filter_shape, strides, pads, output = LAYERS[layer]
    rng = np.random.default_rng(1)
    # Small integers: sums are the same in every order, and rounded once.
    data = rng.integers(-3, 4, data_shape).astype(element)
    weights = (8 * rng.integers(-3, 4, filter_shape)).astype(element)
    where = {"strides": strides, "dilations": (1,) * len(strides)}
    expected = naive(data, weights, **where, groups=1, pads_begin=pads, output=output)
    kernel = pack_deconvolution(weights, **where, algorithm=algorithm)
    budget = UNLIMITED._replace(scratch_bytes=scratch_bytes)
    kernels.set_threads(threads)
    try:
        # Which thread finishes first differs from run to run.
        for _ in range(15):
            result = kernel.run(data, pads, output, None, budget)
            assert np.array_equal(result, expected)
    finally:
        kernels.set_threads(None)
