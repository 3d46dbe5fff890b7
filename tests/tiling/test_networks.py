"""Networks in tiles agree with runs of the whole: random ones, and cases with difficult halos."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import IR
from tiling.exactness import in_tiles, is_exact, whole
from tiling.random_networks import Network

import deconv_ir
from deconv_ir.errors import InputError, UnsupportedError


@pytest.mark.parametrize("seed", range(36))
def test_random_networks_bit_for_bit(seed: int) -> None:
    network = Network(seed)
    model, x = network.model(), network.input()
    expected = whole(model, {"x": x})
    draw = random.Random(seed)
    spatial = expected.shape[2:]
    tiles = [[draw.randint(1, n + 1) for n in spatial], [2] * len(spatial)]
    if np.prod(spatial) <= 60:
        tiles.append([1] * len(spatial))
    for tile in tiles:
        assert is_exact(in_tiles(model, {"x": x}, tile), expected), tile


@pytest.mark.parametrize("seed", range(60, 80))
def test_random_networks_with_any_algorithm(seed: int) -> None:
    network = Network(seed)
    model, x = network.model(accuracy="fast"), network.input()
    expected = whole(model, {"x": x})
    assert is_exact(in_tiles(model, {"x": x}, [5] * (expected.ndim - 2)), expected)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_drawn_layers_and_tiles(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 2))

    def each(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(rank)]

    kind = data.draw(st.sampled_from(["Convolution", "ConvolutionBackpropData"]))
    transposed = kind == "ConvolutionBackpropData"
    extents, kernel = each(1, 9), each(1, 4)
    attributes = {
        "strides": each(1, 4),
        "dilations": each(1, 3),
        "pads_begin": each(0 if transposed else -1, 5),
        "pads_end": each(0 if transposed else -1, 5),
    }
    written = {name: ",".join(map(str, value)) for name, value in attributes.items()}
    written["auto_pad"] = data.draw(st.sampled_from(["explicit", "same_upper", "same_lower"]))
    numbers = np.random.default_rng(0)
    ir = IR()
    shape = ",".join(map(str, [2, 3, *extents]))
    filter_ = numbers.standard_normal([3, 3, *kernel]).astype(np.float32)
    inputs = [ir.parameter("x", shape), ir.const(filter_)]
    if transposed and data.draw(st.booleans()):
        inputs.append(ir.const(np.array(each(1, 20), np.int64)))
    ir.result(ir.layer(kind, inputs, written))
    semantics = data.draw(st.sampled_from(["spec", "openvino"]))
    try:
        model = deconv_ir.load(
            ir.xml().encode(), bytes(ir.weights), semantics, accuracy="direct", warn=False
        )
    except deconv_ir.ShapeError:
        return  # the window does not fit
    x = numbers.standard_normal([2, 3, *extents]).astype(np.float32)
    expected = whole(model, {"x": x})
    if 0 in expected.shape:
        return
    tile = [data.draw(st.integers(1, n + 1)) for n in expected.shape[2:]]
    assert is_exact(in_tiles(model, {"x": x}, tile), expected)


def squeeze_and_excite(*, over: tuple[int, ...] = (2, 3)) -> deconv_ir.Model:
    ir = IR()
    x = ir.parameter("x", "2,3,8,8")
    pool = {"kernel": "2,2", "strides": "1,1", "pads_begin": "0,0", "pads_end": "1,1"}
    y = ir.layer("MaxPool", [x], pool, name="pool")
    axes = ir.const(np.array(over, np.int64))
    mean = ir.layer("ReduceMean", [y, axes], {"keep_dims": "true"}, name="mean")
    gate = ir.layer("Sigmoid", [mean], name="gate")
    ir.result(ir.layer("Multiply", [y, gate], name="scaled"))
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), accuracy="direct", warn=False)


def test_a_global_reduction_is_named_before_anything_runs() -> None:
    run = squeeze_and_excite().tiled()
    with pytest.raises(UnsupportedError) as caught:
        run.require_tileable((2, 3, 4, 8))
    message = str(caught.value)
    assert "'mean' (ReduceMean, id 3)" in message
    assert "axes 2, 3" in message
    assert "axes 0, 1 can be" in message
    run.require_tileable((1, 1, 8, 8))  # batch and channels are independent


def test_a_normalization_that_a_reduction_needs_whole_is_named() -> None:
    """Each tile would compute the normalization of the whole."""
    ir = IR()
    x, axes = ir.parameter("x", "2,3,8,8"), ir.const(np.array([2, 3], np.int64))
    how = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"}
    even = ir.layer("MVN", [x, axes], how, version="opset6", name="even")
    peak = ir.layer("ReduceMax", [even, axes], {"keep_dims": "true"})
    ir.result(ir.layer("Divide", [even, peak]))
    run = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False).tiled()
    assert run.tileable_axes == (0, 1)
    with pytest.raises(
        UnsupportedError, match=r"'even' \(MVN, id 2\): sees the whole of axes 2, 3"
    ):
        run.require_tileable((2, 3, 4, 4))


def test_independent_axes_of_a_reducing_network() -> None:
    model = squeeze_and_excite()
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    assert is_exact(in_tiles(model, {"x": x}, (1, 2, 8, 8)), whole(model, {"x": x}))


def test_one_output_is_tiled() -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,4")
    ir.result(ir.layer("ReLU", [x], name="a"))
    ir.result(ir.layer("Abs", [x], name="b"))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    with pytest.raises(InputError, match="2 \\('a', 'b'\\)"):
        model.tiled()
    assert model.tiled(output="b").shape == (1, 1, 4)


def test_tiles_of_equal_geometry_share_a_plan() -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,64")
    weights = ir.const(np.ones((1, 1, 3), np.float32))
    window = {"strides": "1", "dilations": "1", "pads_begin": "1", "pads_end": "1"}
    ir.result(ir.layer("Convolution", [x, weights], window))
    run = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False).tiled()
    plans = [run.tile(((0, 1), (0, 1), (at, at + 8))).plan for at in range(0, 64, 8)]
    assert len({id(plan) for plan in plans}) == 3


def test_pixel_shuffle_as_reshapes() -> None:
    """torch's pixel_shuffle is converted to reshapes: axes are split, moved and merged."""
    ir = IR()
    x = ir.parameter("x", "1,12,5,6")

    def lists(*values: int) -> tuple[int, int]:
        return ir.const(np.array(values, np.int64))

    plain = {"special_zero": "false"}
    split = ir.layer("Reshape", [x, lists(1, 3, 2, 2, 5, 6)], plain)
    moved = ir.layer("Transpose", [split, lists(0, 1, 4, 2, 5, 3)])
    ir.result(ir.layer("Reshape", [moved, lists(1, 3, 10, 12)], plain))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    data = np.random.default_rng(0).standard_normal((1, 12, 5, 6)).astype(np.float32)
    for tile in ((1, 1), (3, 5), (2, 2), (7, 12)):
        assert is_exact(in_tiles(model, {"x": data}, tile), whole(model, {"x": data})), tile
    needed = model.tiled().tile(((0, 1), (0, 3), (3, 5), (4, 6))).inputs["x"]
    assert needed == ((0, 1), (0, 12), (1, 3), (2, 3))
