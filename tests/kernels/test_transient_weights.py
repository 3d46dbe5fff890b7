"""Winograd with weights that each run transforms gives the bits of kept weights."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.ir.scratchpad import UNLIMITED, ScratchpadBudget
from deconv_ir.kernels import Convolution, Deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

module = compiled_module()
pytestmark = pytest.mark.skipif(module is None, reason="the compiled kernel was not built")
ISAS = [] if module is None else module.isas()
TRANSIENT = UNLIMITED._replace(keeps_weights=False)

# Kind, extents, filter, groups, strides, dilations, pads, output.
LAYERS = {
    "plane": (Convolution, (11, 14), (70, 19, 3, 3), 1, (1, 1), (1, 1), (1, 1), (11, 14)),
    "groups": (Convolution, (9, 9), (12, 8, 3, 3), 2, (1, 1), (1, 1), (1, 1), (9, 9)),
    "sublattices": (Convolution, (12, 12), (24, 16, 3, 3), 1, (1, 1), (2, 3), (2, 3), (12, 12)),
    "pieces": (Convolution, (14, 14), (128, 130, 3, 3), 1, (1, 1), (1, 1), (1, 1), (14, 14)),
    "parts": (Convolution, (7, 30), (17, 9, 1, 7), 1, (1, 1), (1, 1), (0, 3), (7, 30)),
    "volume": (Convolution, (5, 6, 7), (9, 8, 3, 3, 3), 1, (1,) * 3, (1,) * 3, (1,) * 3, (5, 6, 7)),
    "upsampling": (Deconvolution, (8, 9), (20, 13, 4, 4), 1, (2, 2), (1, 1), (1, 1), (16, 18)),
    "three by two": (Deconvolution, (8, 9), (20, 13, 3, 3), 1, (2, 2), (1, 1), (1, 1), (16, 17)),
    "one axis": (Deconvolution, (40,), (16, 8, 8), 1, (4,), (1,), (2,), (160,)),
}  # fmt: skip


def prepare(name: str):
    """Return a layer restricted to Winograd, three images of data, pads and output extents."""
    kind, extents, shape, groups, strides, dilations, pads, output = LAYERS[name]
    rng = np.random.default_rng(len(name))
    weights = rng.standard_normal(shape).astype(np.float32)
    weights += np.copysign(np.float32(0.3), weights)
    ins = shape[0] if kind is Deconvolution else shape[1] * groups
    outs = shape[1] * groups if kind is Deconvolution else shape[0]
    bias = rng.standard_normal(outs).astype(np.float32)
    data = rng.standard_normal((3, ins, *extents)).astype(np.float32)

    def make():
        return kind(weights, strides=strides, dilations=dilations, groups=groups, bias=bias,
                    algorithm="winograd")  # fmt: skip

    return make, data, pads, output


PLANES = ["plane", "groups", "sublattices", "pieces"]


@pytest.mark.parametrize("name", sorted(LAYERS.keys() - PLANES))
def test_other_layers_are_summed_directly(name) -> None:
    """The weights of these layers would take too long to transform in each run."""
    make, data, pads, output = prepare(name)
    layer = make()
    assert "Winograd" in str(layer.plan(data.shape, pads, output))
    assert "direct sums" in str(layer.plan(data.shape, pads, output, TRANSIENT))
    expected = layer.run(data, pads, output, None, ScratchpadBudget(1 << 40, 0))
    np.testing.assert_array_equal(layer.run(data, pads, output, None, TRANSIENT), expected)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", PLANES)
def test_the_bits_are_those_of_weights_that_are_kept(name, isa, monkeypatch) -> None:
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    make, data, pads, output = prepare(name)
    data[1].flat[5], data[1].flat[40] = 1e9, np.nan
    keeping, making = make(), make()
    expected = keeping.run(data, pads, output)
    packed = making.packed_bytes
    assert keeping.packed_bytes > packed
    try:
        for threads in (1, 2, 5):
            set_threads(threads)
            for scratch in (1 << 40, 1 << 18, 1):
                budget = TRANSIENT._replace(scratch_bytes=scratch)
                plan = making.plan(data.shape, pads, output, budget)
                assert plan.algorithm.weight_bytes == 0
                assert "Winograd" in str(plan)
                assert "transformed in each run" in str(plan)
                np.testing.assert_array_equal(plan.run(data), expected)
                # Runs with both kinds of weights may alternate.
                np.testing.assert_array_equal(
                    keeping.run(data, pads, output, None, budget), expected
                )
                np.testing.assert_array_equal(keeping.run(data, pads, output), expected)
        one = making.run(data[2:], pads, output, None, TRANSIENT)
        np.testing.assert_array_equal(one, expected[2:])
    finally:
        set_threads(None)
    assert making.packed_bytes == packed, "none is kept"


def test_the_scratchpad_holds_the_weights_of_a_chunk() -> None:
    make, data, pads, output = prepare("plane")
    layer = make()
    kept = layer.plan(data.shape, pads, output).algorithm
    made = layer.plan(data.shape, pads, output, TRANSIENT).algorithm
    assert kept.weight_bytes == 70 * 19 * 16 * 4
    assert made.cycles > kept.cycles
    direct, other = layer.plan(
        data.shape, pads, output, ScratchpadBudget(1 << 20, 0, keeps_weights=False)
    ).candidates
    assert direct.weight_bytes == other.weight_bytes == 0
    assert other.scratch_bytes <= 1 << 20


@pytest.mark.parametrize("isa", ISAS)
def test_weights_are_made_for_some_channels_and_one_image_at_a_time(isa, monkeypatch) -> None:
    """With a small scratchpad the bits equal those of all channels and images at once."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    make, data, pads, output = prepare("pieces")
    expected = make().run(data, pads, output)
    found = set()
    set_threads(2)
    try:
        for kibibytes in (*range(200, 1400, 200), 1 << 20):
            budget = TRANSIENT._replace(scratch_bytes=kibibytes << 10)
            plan = make().plan(data.shape, pads, output, budget)
            np.testing.assert_array_equal(plan.run(data), expected)
            found.add((plan.details["piece"], plan.details["together"]))
    finally:
        set_threads(None)
    assert {piece for piece, _ in found} >= {65, 130}
    assert {together for _, together in found} >= {0, 1}


def test_planes_and_tiles_of_a_whole_are_the_same() -> None:
    make, data, pads, output = prepare("plane")
    layer = make()
    kept = layer.plan(data.shape, pads, output).whole
    assert kept is not None
    assert layer.plan(data.shape, pads, output, TRANSIENT).whole == kept


@pytest.mark.parametrize("outs", [5, 11, 30, 64, 65, 128])
@pytest.mark.parametrize("isa", ISAS)
def test_blocks_of_rows_need_not_be_those_of_the_packed_filter(isa, outs, monkeypatch) -> None:
    """The rows of a block may lie side by side or in two blocks; sums in f64 are the reference."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    rng = np.random.default_rng(outs)
    weights = rng.standard_normal((outs, 32, 3, 3)).astype(np.float32)
    data = rng.standard_normal((1, 32, 14, 14)).astype(np.float32)
    layer = Convolution(weights, strides=(1, 1), dilations=(1, 1), groups=1, algorithm="winograd")
    windows = np.lib.stride_tricks.sliding_window_view(data.astype(np.float64), (3, 3), (2, 3))
    expected = np.einsum("niyxab,oiab->noyx", windows, weights.astype(np.float64))
    for budget in (UNLIMITED, TRANSIENT):
        plan = layer.plan(data.shape, (0, 0), (12, 12), budget)
        assert "Winograd" in str(plan)
        np.testing.assert_allclose(plan.run(data), expected, atol=2e-5 * np.abs(expected).max())
