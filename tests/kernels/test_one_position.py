"""Data of one position: each tap computes a result of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deconv_ir.kernels import naive, naive_convolution, pack_convolution, pack_deconvolution
from deconv_ir.kernels.activation import Activation, ActivationKind
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

module = compiled_module()
pytestmark = pytest.mark.skipif(module is None, reason="the compiled kernel was not built")
ISAS = [] if module is None else module.isas()
KINDS = {
    "convolution": (pack_convolution, naive_convolution),
    "transposed": (pack_deconvolution, naive),
}

# Groups, channels in and out of each, kernel, strides, dilations, pads and output.
GEOMETRIES: dict[str, tuple[Any, ...]] = {
    "all taps": (1, 40, 24, (4, 4), (1, 1), (1, 1), (0, 0), (4, 4)),
    "rows of two lengths": (1, 7, 13, (3, 5), (1, 1), (1, 1), (0, 0), (3, 5)),
    "groups, sub-convolutions": (3, 5, 9, (4, 5), (2, 3), (1, 1), (0, 0), (4, 5)),
    "cropped": (1, 9, 10, (4, 4), (2, 2), (1, 1), (1, 2), (3, 1)),
    "larger than what taps reach": (2, 6, 5, (3, 2), (1, 2), (1, 1), (-2, -1), (8, 6)),
    "dilated": (1, 6, 11, (3, 2), (2, 1), (3, 2), (1, 0), (7, 3)),
    "no tap reaches": (1, 4, 3, (2, 2), (1, 1), (1, 1), (5, 5), (2, 2)),
    "centre": (1, 33, 17, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    "one tap, blocks of two lengths": (1, 20, 150, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one tap, groups, larger output": (2, 5, 9, (1, 1), (3, 2), (1, 1), (-1, 0), (4, 3)),
    "one tap of each sub-convolution": (1, 6, 20, (2, 3), (2, 3), (1, 1), (0, 0), (2, 3)),
    "volume": (1, 6, 10, (2, 3, 2), (1, 2, 1), (1, 1, 1), (0, 1, 0), (2, 3, 2)),
    "one axis": (2, 70, 4, (16,), (8,), (1,), (4,), (9,)),
}


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element", ["float32", "float64", "bfloat16", "uint8", "int16", "int64"])
def test_against_loops(kind, geometry, element, random_values, dtype_of, monkeypatch) -> None:
    """The bits equal those of tiles, checked with two positions, the second of zeros."""
    groups, channels_in, channels_out, shape, strides, dilations, pads, output = GEOMETRIES[
        geometry
    ]
    kernel, loops = KINDS[kind]
    dtype, rng = dtype_of(element), np.random.default_rng(len(geometry))
    ends = (channels_out, channels_in) if kind == "convolution" else (channels_in, channels_out)
    weights = random_values(rng, (groups * ends[0], ends[1], *shape), dtype)
    told: dict[str, Any] = {
        "strides": strides, "dilations": dilations, "groups": groups,
        "bias": random_values(rng, (groups * channels_out,), dtype),
    }  # fmt: skip
    two = random_values(rng, (3, groups * channels_in, *(1 for _ in shape[1:]), 2), dtype)
    two[..., 1] = 0
    data = two[..., :1]
    expected = loops(data, weights, pads_begin=pads, output=output, **told)
    expected = np.where(expected < 0, dtype.type(0), expected)
    told["activation"] = Activation(ActivationKind.RELU)
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        set_threads(1)
        got = kernel(weights, algorithm="direct", **told).run(data, pads, output)
        if dtype.kind in "iu":
            np.testing.assert_array_equal(got, expected, isa)
        else:
            scale = max(float(abs(expected.astype(np.float64)).max()), 1e-3)
            ulp = {"float32": 1e-6, "float64": 2e-15, "bfloat16": 8e-3}[element]
            difference = abs(got.astype(np.float64) - expected.astype(np.float64)).max()
            assert difference <= ulp * scale, isa
        set_threads(3)
        other = kernel(weights, algorithm="direct", **told)
        np.testing.assert_array_equal(other.run(data, pads, output), got)
        np.testing.assert_array_equal(other.run(data[1:2], pads, output), got[1:2])
        np.testing.assert_array_equal(other.run(two, pads, output), got)
        np.testing.assert_array_equal(
            other.run(np.concatenate([data, data]), pads, output), np.concatenate([got, got])
        )
