"""Filters in any layout, against the loops of `kernels/reference.py`."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.kernels import pack_convolution, pack_deconvolution
from deconv_ir.kernels.reference import naive, naive_convolution
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import get_threads, set_threads

module = compiled_module()
pytestmark = pytest.mark.skipif(module is None, reason="the compiled kernel was not built")

# Filter, strides, dilations, groups: taps that fill no vector, several tables of them, many rows.
LAYERS = [
    ((20, 13, 3, 3), (2, 2), (1, 1), 1),
    ((9, 17, 4, 4), (2, 2), (1, 1), 1),
    ((6, 5, 5), (3,), (2,), 1),
    ((10, 3, 9, 9), (2, 1), (1, 1), 1),
    ((7, 11, 3, 2, 3), (2, 1, 3), (1, 2, 2), 1),
    ((12, 9, 3, 3), (2, 2), (1, 1), 3),
    ((33, 8, 1, 1), (1, 1), (1, 1), 1),
    ((8, 1, 2), (2,), (1,), 8),
    ((90, 85, 3, 3), (1, 1), (1, 1), 1),
]
SWAPS = [None, (0, 1), (1, 2)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int16"])
@pytest.mark.parametrize("kind", [pack_convolution, pack_deconvolution])
@pytest.mark.parametrize("layer", LAYERS)
def test_layouts_of_a_filter(kind, layer, dtype) -> None:
    shape, strides, dilations, groups = layer
    rng = np.random.default_rng(len(shape) + groups)
    weights = rng.integers(-9, 9, shape).astype(dtype)
    channels = shape[1] * groups if kind is pack_convolution else shape[0]
    data = rng.integers(-9, 9, (1, channels, *(4,) * len(strides))).astype(dtype)
    pads, output = (1,) * len(strides), (5,) * len(strides)
    definition = naive_convolution if kind is pack_convolution else naive
    options = {"strides": strides, "dilations": dilations, "groups": groups}
    few = np.prod(shape) < 2000
    expected = definition(data, weights, pads_begin=pads, output=output, **options) if few else None
    for swap in SWAPS:
        given = weights
        if swap is not None:
            given = np.ascontiguousarray(weights.swapaxes(*swap)).swapaxes(*swap)
        kernel = kind(given, **options)
        np.testing.assert_array_equal(kernel.unpacked(), weights)
        result = kernel.run(data, pads, output)
        if expected is None:
            expected = result
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("swapped", [False, True])
def test_packing_on_several_threads(swapped) -> None:
    """Filters are large enough for several threads; an infinite weight is found in any part."""
    weights = np.arange(96 * 90 * 9, dtype=np.float32).reshape(96, 90, 3, 3)
    before = get_threads()
    try:
        set_threads(2)
        for at in (None, 0, 40_000, weights.size - 1):
            given = weights.copy()
            if at is not None:
                given.flat[at] = np.inf
            given = np.ascontiguousarray(given.swapaxes(0, 1)).swapaxes(0, 1) if swapped else given
            layer = pack_deconvolution(given, strides=(2, 2), dilations=(1, 1), groups=1)
            packed = layer if at is None else layer.finite
            expected = given if at is None else np.where(np.isinf(given), 0, given)
            np.testing.assert_array_equal(packed.unpacked(), expected)
    finally:
        set_threads(before)
