"""Scratchpads stay below their limit, for every layer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernels.cases import MACHINES, SCRATCH
from support import traced_peak

from deconv_ir.kernels import pack_convolution, pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module

# Lists of slices, and NumPy's buffers for casts, whose size does not depend on the layer.
BOOKKEEPING = 256 << 10


def peak_scratch(kernel, data, pads_begin, output):
    """Return the bytes that a run allocates when its output exists already."""
    shape = (data.shape[0], kernel.problem.groups * kernel.problem.channels_out, *output)
    out = np.empty(shape, data.dtype)
    # A kernel for which the limit is too tight packs the filter for another one in its first run.
    kernel.run(data, pads_begin, output, out)
    return traced_peak(lambda: kernel.run(data, pads_begin, output, out))


LAYERS = {
    # S2, first example
    "spec1": ((1, 20, 224, 224), (20, 10, 3, 3), 1, (2, 2), (1, 1), (447, 447)),
    "one long axis": ((1, 4, 100_000), (4, 4, 5), 1, (2,), (0,), (200_003,)),
    "large kernel": ((1, 3, 16, 16), (3, 3, 64, 64), 1, (32, 32), (16, 16), (512, 512)),
    "many channels": ((1, 4096, 2, 2), (4096, 64, 3, 3), 1, (1, 1), (0, 0), (4, 4)),
    "depthwise": ((2, 64, 40, 40), (64, 1, 4, 4), 64, (2, 2), (1, 1), (80, 80)),
    "volume": ((1, 8, 20, 20, 20), (8, 8, 3, 3, 3), 1, (2, 2, 2), (1, 1, 1), (39, 39, 39)),
}


@pytest.mark.parametrize(
    ("layer", "element", "scratch_bytes"),
    [(layer, "float32", 64 << 20) for layer in LAYERS]
    + [(layer, "float32", 1 << 20) for layer in LAYERS]
    + [("volume", "float16", 1 << 20), ("one long axis", "int32", 1 << 21)],
)
def test_scratch_bound(algorithm, layer, scratch_bytes, element):
    shape, weights, groups, strides, pads_begin, output = LAYERS[layer]
    kernel = pack_deconvolution(
        np.ones(weights, element),
        strides=strides,
        dilations=(1,) * len(strides),
        groups=groups,
        scratch_bytes=scratch_bytes,
        algorithm=algorithm,
    )
    peak = peak_scratch(kernel, np.ones(shape, element), pads_begin, output)
    assert peak <= scratch_bytes + BOOKKEEPING


@pytest.mark.skipif(compiled_module() is None, reason="the compiled kernel was not built")
@pytest.mark.parametrize("machine", MACHINES)
def test_plans_keep_to_the_bound_on_every_machine(machine, monkeypatch):
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    for shape, weights, groups, strides, pads_begin, output in LAYERS.values():
        for algorithm, limit in itertools.product(("direct", "winograd"), (SCRATCH, 1 << 20)):
            kernel = pack_deconvolution(
                np.ones(weights, np.float32),
                strides=strides,
                dilations=(1,) * len(strides),
                groups=groups,
                scratch_bytes=limit,
                algorithm=algorithm,
            )
            assert kernel.plan(shape, pads_begin, output).scratchpad_bytes <= limit


@pytest.mark.skipif(compiled_module() is None, reason="the compiled kernel was not built")
@pytest.mark.parametrize("machine", MACHINES)
def test_tiles_of_a_kernel_that_reaches_far(machine, monkeypatch):
    """Tiles of the usual size would mostly be halo, and there would be a million of them."""
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    weights = np.ones((2, 2, 2, 2), np.float32)
    kernel = pack_deconvolution(weights, strides=(1, 1), dilations=(131_075, 1), algorithm="direct")
    data, out = (1, 2, 200_000, 3), (1, 2, 331_075, 4)
    assert kernel.plan(data, (0, 0), out[2:]).details["jobs"] < 100


@pytest.mark.parametrize("kind", [pack_convolution, pack_deconvolution])
def test_a_filter_that_is_not_kept_is_unpacked(kind) -> None:
    """If the scratchpad is too small for the packed filter, another kernel needs the original."""
    rng = np.random.default_rng(0)
    filter_ = rng.standard_normal((8, 8, 3, 3)).astype(np.float32)
    data = rng.standard_normal((1, 8, 16, 16)).astype(np.float32)
    arguments = {"strides": (1, 1), "dilations": (1, 1)}
    expected = kind(filter_, **arguments).run(data, (1, 1), (16, 16))
    tight = kind(filter_.copy(), scratch_bytes=1, **arguments)
    np.testing.assert_allclose(tight.run(data, (1, 1), (16, 16)), expected, atol=1e-5)
