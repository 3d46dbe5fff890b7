"""Outputs that no tap reaches, and sub-convolutions with fewer positions in the output."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.cases import MACHINES

from deconv_ir.kernels import Activation, ActivationType, naive, pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)

# Data, filter, strides, dilation, pads, output.
LAYERS = {
    "output padding, kernel = stride": ((2, 8, 9, 17), (8, 20, 4, 4), (4, 4), 1, (0, 0), (39, 69)),
    "only the last element reaches": ((1, 2, 10), (2, 3, 1), (4,), 1, (36,), (1,)),
    "of one axis": ((3, 130, 33), (130, 16, 2), (2,), 1, (0,), (67,)),
    "of three axes": ((1, 5, 3, 4, 9), (5, 12, 2, 2, 2), (2, 2, 2), 1, (0, 0, 0), (7, 9, 19)),
    "of one row": ((1, 8, 1, 12), (8, 12, 2, 2), (2, 2), 1, (0, 0), (3, 25)),
    "kernel < stride": ((1, 4, 6, 6), (4, 7, 2, 2), (3, 3), 1, (0, 0), (19, 20)),
    "far before and behind": ((2, 6, 5, 9), (6, 9, 4, 4), (2, 2), 1, (-5, -9), (31, 47)),
    "sub-convolutions as channels": ((1, 5, 6, 11), (5, 1, 4, 4), (2, 2), 1, (-3, -7), (22, 60)),
    "less of the last sub-convolutions": (
        (2, 12, 8, 13),
        (12, 5, 5, 5),
        (2, 2),
        1,
        (2, 2),
        (15, 25),
    ),
    "tiny planes": ((8, 40, 3, 3), (40, 16, 5, 5), (3, 3), 1, (2, 2), (7, 8)),
    "one position of a sub-convolution": (
        (4, 20, 1, 2, 2),
        (20, 6, 3, 3, 3),
        (2, 2, 2),
        1,
        (1, 1, 1),
        (1, 3, 3),
    ),
    "stride 1": ((2, 4, 6, 15), (4, 6, 3, 3), (1, 1), 1, (1, 1), (12, 22)),
    "sub-convolutions of other windows": ((1, 15, 7), (15, 38, 3), (2,), 3, (-3,), (30,)),
}


@pytest.mark.parametrize("algorithm", ["direct", "winograd"])
@pytest.mark.parametrize("element", ["float32", "float16", "int32"])
@pytest.mark.parametrize("layer", LAYERS)
def test_where_no_tap_meets_data(layer, element, algorithm, monkeypatch):
    data_shape, filter_shape, strides, dilation, pads, output = LAYERS[layer]
    rng = np.random.default_rng(1)
    # Small integers: sums are exact.
    data = rng.integers(-3, 4, data_shape).astype(element)
    weights = (8 * rng.integers(-1, 2, filter_shape)).astype(element)
    bias = rng.integers(-9, 10, filter_shape[1]).astype(element)
    where = {"strides": strides, "dilations": (dilation,) * len(strides), "bias": bias}
    relu = Activation(ActivationType.RELU)
    sums = naive(data, weights, **where, groups=1, pads_begin=pads, output=output)
    for machine in MACHINES:  # they differ in their tiles
        monkeypatch.setenv("DECONV_IR_MACHINE", machine)
        kernel = pack_deconvolution(weights, **where, activation=relu, algorithm=algorithm)
        out = np.full((data_shape[0], filter_shape[1], *output), 77, element)
        found = kernel.run(data, pads, output, out)
        np.testing.assert_array_equal(found, np.maximum(sums, 0), machine)
