"""Large results are written with non-temporal stores where rows are whole cache lines."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from deconv_ir.kernels import naive, pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
ISAS = compiled_module().isas() if compiled_module() else []

# Data, filter, strides, pads, output.
LAYERS = {
    "kernel = stride": ((4, 6, 8, 34), (6, 500, 2, 2), (2, 2), (0, 0), (16, 67)),
    "rows of whole lines": ((4, 6, 8, 48), (6, 500, 2, 2), (2, 2), (0, 0), (16, 96)),
    "stride 1": ((2, 5, 11, 65), (5, 1500, 3, 3), (1, 1), (1, 1), (11, 65)),
    "tiles of parts of rows": ((2, 3, 3, 301), (3, 600, 3, 3), (2, 2), (1, 0), (5, 603)),
    "one axis": ((2, 3, 701), (3, 800, 4), (2,), (1,), (1402,)),
    "three axes": ((1, 4, 4, 4, 35), (4, 500, 2, 2, 2), (2, 2, 2), (0, 0, 0), (8, 8, 69)),
    "sub-convolutions as channels": ((2600, 3, 6, 33), (3, 1, 4, 4), (2, 2), (1, -1), (12, 70)),
}


@functools.lru_cache(maxsize=1)
def problem(layer, element):
    """Return data and a filter of small integers, whose sums are exact, and the result."""
    data_shape, filter_shape, strides, pads, output = LAYERS[layer]
    rng = np.random.default_rng(1)
    data = rng.integers(-3, 4, data_shape).astype(element)
    weights = (8 * rng.integers(-3, 4, filter_shape)).astype(element)
    where = {"strides": strides, "dilations": (1,) * len(strides), "groups": 1}
    return data, weights, naive(data, weights, **where, pads_begin=pads, output=output)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("algorithm", "element"),
    [("direct", "float32"), ("winograd", "float32"), ("direct", "float64")],
)
@pytest.mark.parametrize("layer", LAYERS)
def test_every_element_is_written(monkeypatch, layer, element, algorithm, isa):
    _, _, strides, pads, output = LAYERS[layer]
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    data, weights, expected = problem(layer, element)
    kernel = pack_deconvolution(
        weights, strides=strides, dilations=(1,) * len(strides), algorithm=algorithm
    )
    assert expected.nbytes >= 8 << 20
    assert np.array_equal(kernel.run(data, pads, output), expected)
