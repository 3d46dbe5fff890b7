"""Direct sums in the output itself: kernels of one column, 1x1 in most cases."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import in_turn

from deconv_ir.kernels import naive, naive_convolution, pack_convolution, pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

module = compiled_module()
pytestmark = pytest.mark.skipif(module is None, reason="the compiled kernel was not built")
ISAS = [] if module is None else module.isas()
KINDS = {
    "convolution": (pack_convolution, naive_convolution),
    "transposed": (pack_deconvolution, naive),
}

# Groups, channels in and out of each, extents, kernel, strides, pads and output.
GEOMETRIES: dict[str, tuple[Any, ...]] = {
    "whole vectors": (1, 12, 8, (8, 16), (1, 1), (1, 1), (0, 0), (8, 16)),
    "a rest, blocks of 5 and 6 rows": (1, 9, 17, (7, 7), (1, 1), (1, 1), (0, 0), (7, 7)),
    "less than a vector": (2, 5, 3, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one position": (2, 300, 23, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one position of a larger kernel": (1, 30, 9, (2, 3), (2, 3), (1, 1), (0, 0), (1, 1)),
    "many channels": (1, 200, 13, (5, 9), (1, 1), (1, 1), (0, 0), (5, 9)),
    "a column, with pads": (1, 6, 10, (9, 19), (3, 1), (1, 1), (1, 0), (9, 19)),
    "every other position": (2, 4, 9, (11, 38), (1, 1), (2, 2), (0, 0), (6, 19)),
    "every other, from the second on": (1, 4, 9, (11, 38), (1, 1), (2, 2), (-1, -1), (5, 19)),
    "every other of one axis, then none": (1, 20, 9, (12,), (1,), (2,), (0,), (12,)),
    "volume": (1, 3, 10, (4, 3, 7), (2, 1, 1), (1, 1, 1), (0, 0, 0), (4, 3, 7)),
    "tiles of one row, the last with a rest": (1, 9, 9, (33, 33), (1, 1), (1, 1), (0, 0), (33, 33)),
    "channels that meet in the cache": (2, 7, 9, (8, 16), (1, 1), (1, 1), (0, 0), (8, 16)),
    "one axis": (3, 4, 5, (83,), (1,), (1,), (0,), (83,)),
}


def layer(geometry: str, kind: str, dtype: Any, random_values: Any) -> tuple[Any, ...]:
    """Return data, weights, bias and the other arguments of a kernel."""
    groups, channels_in, channels_out, extents, kernel, strides, *_ = GEOMETRIES[geometry]
    rng = np.random.default_rng(len(geometry))
    ends = (channels_out, channels_in) if kind == "convolution" else (channels_in, channels_out)
    bias = random_values(rng, (groups * channels_out,), dtype)
    told = {"strides": strides, "dilations": (1,) * len(extents), "groups": groups, "bias": bias}
    data = random_values(rng, (3, groups * channels_in, *extents), dtype)
    return data, random_values(rng, (groups * ends[0], ends[1], *kernel), dtype), told


TYPES = ["float64", "bfloat16", "int32", "uint64"]
CASES = [(row, "float32") for row in itertools.product(GEOMETRIES, KINDS)]
CASES += in_turn(itertools.product(GEOMETRIES, KINDS), [*TYPES, TYPES[0]], 1)


@pytest.mark.parametrize(
    ("row", "element"), CASES, ids=lambda v: v if isinstance(v, str) else "-".join(v)
)
def test_against_loops(row, element, random_values, dtype_of, monkeypatch) -> None:
    """The data include NaN; threads vary, and so do scratchpads that hold only a few channels."""
    geometry, kind = row
    kernel, loops = KINDS[kind]
    dtype, (*_, pads, output) = dtype_of(element), GEOMETRIES[geometry]
    data, weights, told = layer(geometry, kind, dtype, random_values)
    expected = loops(data, weights, pads_begin=pads, output=output, **told)
    among = np.full([n + 2 for n in data.shape], np.nan if dtype.kind not in "iu" else 7, dtype)
    inside = among[(slice(1, -1),) * data.ndim]
    inside[...] = data
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        set_threads(1)
        got = kernel(weights, algorithm="direct", **told).run(data, pads, output)
        if dtype.kind in "iu":
            np.testing.assert_array_equal(got, expected, isa)
        else:
            scale = float(abs(expected.astype(np.float64)).max())
            ulp = {"float32": 1e-6, "float64": 2e-15, "bfloat16": 8e-3}[element]
            difference = abs(got.astype(np.float64) - expected.astype(np.float64)).max()
            assert difference <= ulp * scale, isa
        for threads, scratch_bytes in ((2, 64 << 20), (3, 8 << 10)):
            set_threads(threads)
            other = kernel(weights, algorithm="direct", scratch_bytes=scratch_bytes, **told)
            np.testing.assert_array_equal(other.run(inside, pads, output), got)
            np.testing.assert_array_equal(other.run(inside[1:2], pads, output), got[1:2])
