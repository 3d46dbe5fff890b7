"""Statistics of whole axes are computed in a pass of their own, then tiles."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from support import IR, Out
from tiling.exactness import whole

import deconv_ir
from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.boxes import Box, as_slices
from deconv_ir.tiling.grid import Grid
from deconv_ir.tiling.stream import choose_tile
from deconv_ir.tiling.two_pass import measure_here, precompute

NUMBERS = np.random.default_rng(0)
PADS = {"pads_begin": "1,1", "pads_end": "1,1", "strides": "1,1", "dilations": "1,1"}


def convolution(ir: IR, x: Out) -> Out:
    weights = NUMBERS.standard_normal((3, 3, 3, 3)).astype(np.float32)
    return ir.layer("Convolution", [x, ir.const(weights)], PADS)


def axes(ir: IR) -> Out:
    return ir.const(np.array([2, 3], np.int64))


def reduced(ir: IR, x: Out, kind: str, version: str = "opset1") -> Out:
    """Squeeze and excite: multiply each channel by the sigmoid of its statistic."""
    found = ir.layer(kind, [x, axes(ir)], {"keep_dims": "true"}, version=version)
    return ir.layer("Multiply", [x, ir.layer("Sigmoid", [found])])


def standardized(ir: IR, x: Out, **how: str) -> Out:
    given = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"} | how
    return ir.layer("MVN", [x, axes(ir)], given, version="opset6")


def grouped(ir: IR, x: Out, groups: int) -> Out:
    given = [ir.const(NUMBERS.standard_normal(3).astype(np.float32)) for _ in range(2)]
    how = {"num_groups": str(groups), "epsilon": "1e-3"}
    return ir.layer("GroupNormalization", [x, *given], how, version="opset12")


def squeeze_and_excite(ir: IR, x: Out) -> Out:
    """Squeeze and excite as in MobileNet: mean, bottleneck, gate."""
    mean = ir.layer("ReduceMean", [x, axes(ir)], {"keep_dims": "true"})
    plain = PADS | {"pads_begin": "0,0", "pads_end": "0,0"}
    numbers = NUMBERS.standard_normal((2, 3, 1, 1)).astype(np.float32)
    small = ir.layer("ReLU", [ir.layer("Convolution", [mean, ir.const(numbers)], plain)])
    back = ir.const(numbers.transpose(1, 0, 2, 3).copy())
    gate = ir.layer("Sigmoid", [ir.layer("Convolution", [small, back], plain)])
    return ir.layer("Multiply", [x, gate])


def pooled(ir: IR, x: Out) -> Out:
    """Squeeze and excite as torch has it."""
    one = ir.const(np.array([1, 1], np.int64))
    found = ir.layer("AdaptiveAvgPool", [x, one], version="opset8")
    return ir.layer("Multiply", [x, ir.layer("Sigmoid", [found])])


LAYERS = {
    "pooled": pooled,
    "squeeze and excite": squeeze_and_excite,
    "groups": lambda ir, x: grouped(ir, x, 3),
    "one group": lambda ir, x: grouped(ir, x, 1),
    "mean": lambda ir, x: reduced(ir, x, "ReduceMean"),
    "sum": lambda ir, x: reduced(ir, x, "ReduceSum"),
    "max": lambda ir, x: reduced(ir, x, "ReduceMax"),
    "min": lambda ir, x: reduced(ir, x, "ReduceMin"),
    "l1": lambda ir, x: reduced(ir, x, "ReduceL1", "opset4"),
    "l2": lambda ir, x: reduced(ir, x, "ReduceL2", "opset4"),
    "instance": standardized,
    "outside": lambda ir, x: standardized(ir, x, eps_mode="outside_sqrt", eps="0.1"),
    "centred": lambda ir, x: standardized(ir, x, normalize_variance="false"),
    "two": lambda ir, x: standardized(ir, convolution(ir, reduced(ir, x, "ReduceMean"))),
}


@pytest.mark.parametrize(
    ("kind", "offset"),
    # The mean may be far from zero: a variance is sums of squares around it.
    [*((kind, 0) for kind in LAYERS), *((k, 100) for k in ("groups", "instance", "outside", "l2"))],
)
def test_two_passes_give_the_result_to_rounding(kind: str, offset: int) -> None:
    ir = IR()
    x = convolution(ir, ir.parameter("x", "2,3,13,11"))
    ir.result(convolution(ir, LAYERS[kind](ir, x)))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), accuracy="direct", warn=False)
    data = (NUMBERS.standard_normal((2, 3, 13, 11)) + offset).astype(np.float32)
    # The reference is the whole in f64, as the order of sums differs.
    expected = whole(model, {"x": data})

    def read(name: str, box: Box) -> np.ndarray:
        return data[as_slices(box)].copy()

    tile = (1, 3, 5, 4)
    run = model.tiled()
    with pytest.raises(UnsupportedError, match=r"sees the whole of axes (1, )?2, 3"):
        run.require_tileable(tile)
    run, results = precompute(run, tile, measure_here(read), lambda one: choose_tile(one, 20_000))
    assert pickle.loads(pickle.dumps(results)) == results  # the statistics are sent to workers
    run.require_tileable(tile)
    found = np.empty_like(expected)
    for box in Grid(run.shape, tile).boxes():
        found[as_slices(box)] = run.run(run.tile(box), read)
    scale = np.abs(expected).max()
    assert np.abs(found - expected).max() <= (1e-6 if offset == 0 else 1e-4) * scale


def test_a_softmax_over_tiles_is_refused() -> None:
    ir = IR()
    ir.result(ir.layer("SoftMax", [ir.parameter("x", "1,1,8,8")], {"axis": "2"}, name="softmax"))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    with pytest.raises(UnsupportedError, match="'softmax'"):
        precompute(model.tiled(), (1, 1, 4, 8), lambda *_: (), lambda one: one.shape)
