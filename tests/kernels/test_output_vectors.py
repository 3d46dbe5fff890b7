"""Direct sums with vectors of output channels: 64 channels, rows of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deconv_ir.ir.scratchpad import ScratchpadBudget
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

# Groups, channels in and out of each, extents, kernel, strides, dilations, pads and output.
GEOMETRIES: dict[str, tuple[Any, ...]] = {
    "an odd plane": (1, 5, 64, (17, 17), (3, 3), (1, 1), (1, 1), (1, 1), (17, 17)),
    "dilated": (1, 7, 64, (9, 19), (3, 3), (1, 1), (1, 3), (1, 3), (9, 19)),
    "rows shorter than a vector": (1, 3, 128, (7, 5), (3, 3), (1, 1), (1, 1), (1, 1), (7, 5)),
    "fewer positions than a block": (2, 9, 64, (2, 2), (3, 3), (1, 1), (1, 1), (1, 1), (2, 2)),
    "every other position": (1, 5, 64, (18, 35), (3, 3), (2, 2), (1, 1), (1, 1), (9, 18)),
    "a volume": (1, 4, 64, (3, 4, 9), (3, 2, 3), (1, 1, 1), (1, 1, 1), (1, 0, 1), (3, 3, 9)),
    "one axis": (1, 6, 64, (37,), (5,), (1,), (1,), (2,), (37,)),
    "one tap": (1, 40, 64, (3, 11), (1, 1), (1, 1), (1, 1), (0, 0), (3, 11)),
    "one tap, four positions": (1, 160, 960, (2, 2), (1, 1), (1, 1), (1, 1), (0, 0), (2, 2)),
    "a smaller last tile": (1, 120, 480, (2, 2), (1, 1), (1, 1), (1, 1), (0, 0), (2, 2)),
    "weights in several parts": (1, 190, 64, (3, 17), (3, 3), (1, 1), (1, 1), (1, 1), (3, 17)),
}
# Only for transposed layers, whose rows belong to several sub-convolutions.
TRANSPOSED: dict[str, tuple[Any, ...]] = {
    "tiny planes": (1, 40, 64, (4, 4), (4, 4), (2, 2), (1, 1), (1, 1), (8, 8)),
    "tiny planes of wide groups": (2, 150, 128, (3, 5), (5, 4), (2, 2), (1, 1), (2, 1), (6, 10)),
    "a tiny volume": (1, 70, 64, (2, 3, 2), (4, 3, 4), (2, 1, 2), (1, 1, 1), (1, 1, 1), (4, 3, 4)),
    "a stride of 3 without taps": (1, 9, 64, (2, 4), (2, 2), (3, 3), (1, 1), (0, 0), (6, 12)),
    "rows alone": (1, 80, 64, (5, 3), (4, 3), (2, 1), (1, 1), (1, 1), (10, 3)),
}
CASES = [("convolution", geometry) for geometry in GEOMETRIES]
CASES += [("transposed", geometry) for geometry in (*GEOMETRIES, *TRANSPOSED)]
SMALL = ScratchpadBudget(1)


def layer(geometry: str, kind: str) -> tuple[Any, ...]:
    """Return data of three images, a filter, arguments, pads and output."""
    groups, channels_in, channels_out, extents, kernel, strides, dilations, pads, output = (
        GEOMETRIES | TRANSPOSED
    )[geometry]
    rng = np.random.default_rng(len(geometry))
    ends = (channels_out, channels_in) if kind == "convolution" else (channels_in, channels_out)
    data = rng.standard_normal((3, groups * channels_in, *extents)).astype(np.float32)
    weights = rng.standard_normal((groups * ends[0], ends[1], *kernel)).astype(np.float32)
    bias = rng.standard_normal(groups * channels_out).astype(np.float32)
    told = {"strides": strides, "dilations": dilations, "groups": groups, "bias": bias}
    return data, weights, told, pads, output


@pytest.mark.parametrize(("kind", "geometry"), CASES)
def test_against_loops(kind, geometry, monkeypatch) -> None:
    """All instruction sets, several threads, single images and small tiles give the same bits."""
    kernel, loops = KINDS[kind]
    data, weights, told, pads, output = layer(geometry, kind)
    wide = {**told, "bias": told["bias"].astype(np.float64)}
    expected = loops(
        data.astype(np.float64), weights.astype(np.float64), pads_begin=pads, output=output, **wide
    )
    try:
        for isa in ISAS:
            monkeypatch.setenv("DECONV_IR_ISA", isa)
            prepared = kernel(weights, algorithm="direct", **told)
            set_threads(1)
            got = prepared.run(data, pads, output)
            assert abs(got - expected).max() <= 4e-6 * abs(expected).max(), isa
            for threads in (1, 2, 3):
                set_threads(threads)
                for budget in (None, SMALL):
                    other = prepared.run(data, pads, output, budget=budget)
                    assert other.tobytes() == got.tobytes(), isa
            one = prepared.run(data[2:], pads, output)
            assert one.tobytes() == got[2:].tobytes(), isa
    finally:
        set_threads(None)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_same_bits_as_vectors_of_positions(geometry, monkeypatch) -> None:
    """With one output channel less, the rows of a block do not fill a vector of channels."""
    data, weights, told, pads, output = layer(geometry, "convolution")
    if told["groups"] > 1:
        pytest.skip("all groups lose a channel")
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        got = pack_convolution(weights, algorithm="direct", **told).run(data, pads, output)
        fewer = {**told, "bias": told["bias"][:-1]}
        others = pack_convolution(weights[:-1], algorithm="direct", **fewer).run(data, pads, output)
        assert others.tobytes() == np.ascontiguousarray(got[:, :-1]).tobytes(), isa


@pytest.mark.skipif("avx512" not in ISAS, reason="vectors of 16 lanes only")
def test_rows_that_fill_few_vectors_are_summed_so(monkeypatch) -> None:
    monkeypatch.setenv("DECONV_IR_ISA", "avx512")
    monkeypatch.setenv("DECONV_IR_MACHINE", "sapphire-rapids")
    data, weights, told, pads, output = layer("an odd plane", "convolution")
    plan = pack_convolution(weights, algorithm="direct", **told).plan(data.shape, pads, output)
    assert plan.details["output_vectors"] == 1


@pytest.mark.skipif("avx512" not in ISAS, reason="vectors of 16 lanes only")
def test_images_of_tiny_planes_share_their_weights(monkeypatch) -> None:
    monkeypatch.setenv("DECONV_IR_ISA", "avx512")
    monkeypatch.setenv("DECONV_IR_MACHINE", "sapphire-rapids")
    data, weights, told, pads, output = layer("tiny planes", "transposed")
    plan = pack_deconvolution(weights, algorithm="direct", **told).plan(data.shape, pads, output)
    assert plan.details["output_vectors"] == 1
    assert plan.details["images"] > 1
