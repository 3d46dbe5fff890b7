"""Layers that move elements between quantised layers move codes, where fours of channels stay.

The oracle moves the numbers of the definition with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import RNG, Network, convolve, fake_quantize, nearly
from support import invoke

import deconv_ir
from deconv_ir.kernels.runtime.extension import compiled_module

RANGE, POSITIVE = (-1.28, 1.27), (0.0, 2.55)


class Movement(NamedTuple):
    """A layer on ``[2, 8, 6, 4]``, or another number of channels."""

    kind: str
    lists: tuple[Any, ...]
    attributes: dict[str, str]
    move: Callable[[Any], Any]
    """Returns each output."""
    channels: int = 8
    ends: tuple[float, float] = RANGE
    version: str = "opset1"


def split(sizes: tuple[int, ...], axis: int) -> Callable[[Any], Any]:
    return lambda a: np.split(a, np.cumsum(sizes)[:-1], axis)


def crop(*index: slice) -> Callable[[Any], Any]:
    return lambda a: [a[index]]


def pad(*pads: tuple[int, int], value: float = 0.0) -> Callable[[Any], Any]:
    return lambda a: [np.pad(a, pads, constant_values=value)]


def blocks(a: Any) -> Any:
    """Return SpaceToDepth-1, blocks_first, of 2 x 2."""
    return [np.concatenate([a[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)], axis=1)]


def unblocked(a: Any) -> Any:
    """Return DepthToSpace-1, blocks_first, of 2 x 2."""
    n, c, y, x = a.shape
    out = np.empty((n, c // 4, 2 * y, 2 * x), a.dtype)
    for i, j in np.ndindex(2, 2):
        out[:, :, i::2, j::2] = a[:, (2 * i + j) * (c // 4) :][:, : c // 4]
    return [out]


def shuffled(a: Any, axis: int) -> Any:
    """Return ShuffleChannels-1 with two groups."""
    return [np.stack(np.split(a, 2, axis), axis + 1).reshape(a.shape)]


ALL = slice(None)
MASKS = {"begin_mask": "1,1,1,1", "end_mask": "1,1,1,1"}
CONSTANT = {"pad_mode": "constant"}
BLOCKS = {"block_size": "2", "mode": "blocks_first"}
NO_ZERO = {"special_zero": "false"}

MOVED: dict[str, Movement] = {
    "split of channels": Movement("Split", (1,), {"num_splits": "2"}, split((4, 4), 1)),
    "split of rows": Movement("Split", (2,), {"num_splits": "2"}, split((3, 3), 2), 6),
    "parts": Movement("VariadicSplit", (1, [4, -1]), {}, split((4, 6), 1), 10),
    "parts of columns": Movement("VariadicSplit", (-1, [1, 3]), {}, split((1, 3), 3), 5),
    "crop": Movement(
        "Slice", ([1, 3], [6, 0], [2, -1], [2, 3]), {},
        crop(ALL, ALL, slice(1, 6, 2), slice(3, 0, -1)), 6, version="opset8",
    ),
    "channels": Movement(
        "Slice", ([4], [2**31 - 1], [1], [1]), {}, crop(ALL, slice(4, None)), 10, version="opset8"
    ),
    "strided": Movement(
        "StridedSlice", ([0, 4, 1, 0], [0, 8, 0, 0], [1, 1, 2, 1]),
        {"begin_mask": "1,0,0,1", "end_mask": "1,0,1,1"},
        crop(ALL, slice(4, 8), slice(1, None, 2)), 12,
    ),
    "an axis more": Movement("Unsqueeze", ([2],), {}, lambda a: [a[:, :, None]], 6),
    "transpose": Movement("Transpose", ([0, 1, 3, 2],), {}, lambda a: [a.transpose(0, 1, 3, 2)], 6),
    "batch": Movement("Transpose", ([2, 1, 0, 3],), {}, lambda a: [a.transpose(2, 1, 0, 3)], 6),
    "flat": Movement(
        "Reshape", ([0, 6, 1, -1],), {"special_zero": "true"}, lambda a: [a.reshape(2, 6, 1, 24)], 6
    ),
    "new rows": Movement("Reshape", ([-1, 8, 4, 6],), NO_ZERO, lambda a: [a.reshape(2, 8, 4, 6)]),
    "space to depth": Movement("SpaceToDepth", (), BLOCKS, blocks),
    "depth to space": Movement("DepthToSpace", (), BLOCKS, unblocked, 16),
    "shuffled rows": Movement(
        "ShuffleChannels", (), {"axis": "2", "group": "2"}, lambda a: shuffled(a, 2), 6
    ),
    "gather": Movement(
        "Gather", ([5, 0, 3], 2), {}, lambda a: [a[:, :, [5, 0, 3]]], 6, version="opset8"
    ),
    "zeros": Movement(
        "Pad", ([0, 0, 1, 2], [0, 0, 0, 1]), CONSTANT, pad((0, 0), (0, 0), (1, 0), (2, 1)), 6,
        POSITIVE,
    ),
    "the highest level": Movement(
        "Pad", ([0, 4, 1, 0], [0, 8, 0, 0], np.float32(3)), CONSTANT,
        pad((0, 0), (4, 8), (1, 0), (0, 0), value=3), 8, (0.0, 3.0),
    ),
    "edges": Movement(
        "Pad", ([0, 0, 1, 2], [0, 0, 0, 1]), {"pad_mode": "edge"},
        lambda a: [np.pad(a, ((0, 0), (0, 0), (1, 0), (2, 1)), mode="edge")], 6,
    ),
}  # fmt: skip

KEPT: dict[str, Movement] = {
    "channels of fours": Movement("Split", (1,), {"num_splits": "4"}, split((2,) * 4, 1)),
    "from channel 2": Movement(
        "Slice", ([2], [8], [1], [1]), {}, crop(ALL, slice(2, 8)), version="opset8"
    ),
    "every other channel": Movement(
        "Slice", ([0], [8], [2], [1]), {}, crop(ALL, slice(0, 8, 2)), version="opset8"
    ),
    "reversed channels": Movement(
        "Slice", ([7], [-9], [-1], [1]), {}, crop(ALL, slice(None, None, -1)), version="opset8"
    ),
    "channels elsewhere": Movement("Transpose", ([0, 2, 1, 3],), {}, lambda a: [a.swapaxes(1, 2)]),
    "other channels": Movement(
        "Reshape", ([2, 4, 12, 4],), NO_ZERO, lambda a: [a.reshape(2, 4, 12, 4)]
    ),
    "depth first": Movement(
        "DepthToSpace", (), {"block_size": "2", "mode": "depth_first"},
        lambda a: [a.reshape(2, 4, 2, 2, 6, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 4, 12, 8)],
        16,
    ),
    "shuffled channels": Movement(
        "ShuffleChannels", (), {"axis": "1", "group": "2"}, lambda a: shuffled(a, 1)
    ),
    "picked channels": Movement(
        "Gather", ([5, 0, 3, 1], 1), {}, lambda a: [a[:, [5, 0, 3, 1]]], version="opset8"
    ),
    "a channel more": Movement(
        "Pad", ([0, 1, 0, 0], [0, 0, 0, 0]), CONSTANT, pad((0, 0), (1, 0), (0, 0), (0, 0)), 8,
        POSITIVE,
    ),
    "no level": Movement(
        "Pad", ([0, 0, 1, 1], [0, 0, 1, 1], np.float32(0.333)), CONSTANT,
        pad((0, 0), (0, 0), (1, 1), (1, 1), value=np.float32(0.333)), 8, POSITIVE,
    ),
}  # fmt: skip


def network(one: Movement, shape: str) -> tuple[Network, Callable[[Any], Any]]:
    """Return a convolution, the layer, and convolutions of its outputs; and the definition."""
    net = Network(shape)
    ir = net.ir
    w, values = net.weights(one.channels, 3, 1, 1)
    inner = net.quantize(net.convolution(net.quantize(net.x, *RANGE), w, pad=0), *one.ends)
    lists = [ir.const(np.asarray(given)) for given in one.lists]
    example = one.move(np.zeros((2, one.channels, 6, 4)))
    index, first = ir.layer(
        one.kind, [inner, *lists], one.attributes, name="moved", version=one.version,
        outputs=[""] * len(example),
    )  # fmt: skip
    moved = [(index, first + output) for output in range(len(example))]
    filters = []
    for source, part in zip(moved, example, strict=True):
        last, of_last = net.weights(4, part.shape[1], *(1,) * (part.ndim - 2))
        spatial = ",".join("1" * (part.ndim - 2))
        ones = {"strides": spatial, "dilations": spatial}
        zeros = spatial.replace("1", "0")
        ir.result(
            ir.layer("Convolution", [source, last], ones | {"pads_begin": zeros, "pads_end": zeros})
        )
        filters.append(of_last)

    def define(x: Any) -> Any:
        data = fake_quantize(x.astype(float), *RANGE)
        sums = convolve(data, values, pad=0).astype(np.float32).astype(float)
        parts = one.move(fake_quantize(sums, *one.ends))
        return [
            np.einsum("nc...,oc->no...", part, of_last.reshape(of_last.shape[:2]))
            for part, of_last in zip(parts, filters, strict=True)
        ]

    return net, define


@pytest.mark.parametrize("shape", ["2,3,6,4", "?,3,6,4", "?,3,?,?"])
@pytest.mark.parametrize("name", MOVED)
def test_elements_of_four_channels_are_moved(tmp_path: Any, name: str, shape: str) -> None:
    net, define = network(MOVED[name], shape)
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = RNG.standard_normal((2, 3, 6, 4), dtype=np.float32)
    for found, expected in zip(model.run([x]).values(), define(x), strict=True):
        nearly(found, expected)
    row = rows_of(model, {"x": x})["moved"]
    if shape == "2,3,6,4" and compiled_module():
        assert {str(info.element_type) for info in row.outputs} == {"u32"}


@pytest.mark.parametrize("name", KEPT)
def test_numbers_are_moved_where_codes_are_parted(tmp_path: Any, name: str) -> None:
    net, define = network(KEPT[name], "2,3,6,4")
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = RNG.standard_normal((2, 3, 6, 4), dtype=np.float32)
    for found, expected in zip(model.run([x]).values(), define(x), strict=True):
        assert np.abs(found - expected).max() < 1e-5
    row = rows_of(model, {"x": x})["moved"]
    assert {str(info.element_type) for info in row.outputs} == {"f32"}
    if name != "no level" and compiled_module():
        assert "by fours" in str(row.reason)


def test_layers_in_a_row_move_codes(tmp_path: Any) -> None:
    """Parts of rows change places; axes are inserted and removed; a sum reads a part."""
    net = Network("2,3,6,4")
    ir = net.ir
    w, values = net.weights(6, 3, 1, 1)
    last, of_last = net.weights(4, 6, 3, 3)
    inner = net.quantize(net.convolution(net.quantize(net.x, *RANGE), w, pad=0), *RANGE)
    index, first = ir.layer(
        "VariadicSplit", [inner, *(ir.const(np.array(n)) for n in (2, [2, 4]))], outputs=["", ""]
    )
    parts = [(index, first + 1), (index, first)]
    joined = ir.layer("Concat", parts, {"axis": "-2"}, name="joined")
    wide = ir.layer("Unsqueeze", [joined, ir.const(np.array([2, -1]))], name="wide")
    narrow = ir.layer("Squeeze", [wide], name="narrow")
    ends = [ir.const(np.array(n)) for n in ([0, 0, 0, 0], [0, 0, 4, 0], [1, 1, 1, 1])]
    masks = {"begin_mask": "1,1,1,1", "end_mask": "1,1,0,1"}
    same = ir.layer("StridedSlice", [narrow, *ends], masks)
    total = net.quantize(ir.layer("Add", [same, parts[0]]), -2.0, 3.0)
    ir.result(net.convolution(total, last))
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = RNG.standard_normal((2, 3, 6, 4), dtype=np.float32)
    (found,) = model.run([x]).values()
    sums = convolve(fake_quantize(x.astype(float), *RANGE), values, pad=0).astype(np.float32)
    a = fake_quantize(sums.astype(float), *RANGE).astype(np.float32)
    turned = np.concatenate([a[:, :, 2:], a[:, :, :2]], axis=2)
    added = (turned[:, :, :4] + a[:, :, 2:]).astype(float)
    nearly(found, convolve(fake_quantize(added, -2.0, 3.0), of_last))
    rows = rows_of(model, {"x": x})
    moved = [str(rows[name].outputs[0].element_type) for name in ("joined", "wide", "narrow")]
    assert moved == ["u32"] * 3 or not compiled_module()


def test_tensors_of_which_one_is_broadcast_in_some_runs_are_added(tmp_path: Any) -> None:
    net = Network("?,6,?,?")
    y = net.ir.parameter("y", "?,6,?,?")
    w, values = net.weights(4, 6, 3, 3)
    terms = [net.quantize(net.x, *RANGE), net.quantize(y, *POSITIVE)]
    net.ir.result(net.convolution(net.quantize(net.ir.layer("Add", terms), -1.0, 3.0), w))
    model = deconv_ir.load(net.ir.save(tmp_path))
    for shape in (2, 6, 5, 7), (1, 6, 1, 7), (2, 6, 1, 1):
        x, other = (RNG.standard_normal(s, dtype=np.float32) for s in ((2, 6, 5, 7), shape))
        (found,) = model.run({"x": x, "y": other}).values()
        added = fake_quantize(x.astype(float), *RANGE).astype(np.float32)
        added = added + fake_quantize(other.astype(float), *POSITIVE).astype(np.float32)
        nearly(found, convolve(fake_quantize(added.astype(float), -1.0, 3.0), values))


def test_levels_of_channels_do_not_follow_channels_that_move(tmp_path: Any) -> None:
    """A depthwise layer behind ShuffleChannels reads numbers on the levels of other channels."""
    net = Network("1,8,5,5")
    low, high = RNG.uniform(-2, -0.5, 8), RNG.uniform(0.5, 2, 8)
    codes, values = net.weights(8, 1, 3, 3)
    shape = net.ir.const(np.array([8, 1, 1, 3, 3]))
    grouped = net.ir.layer("Reshape", [codes, shape], {"special_zero": "false"})
    shuffle = {"axis": "1", "group": "2"}
    data = net.ir.layer("ShuffleChannels", [net.quantize(net.x, low, high)], shuffle)
    places = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    net.ir.result(net.ir.layer("GroupConvolution", [data, grouped], places))
    x = RNG.standard_normal((1, 8, 5, 5), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    (moved,) = shuffled(fake_quantize(x.astype(float), low[:, None, None], high[:, None, None]), 1)
    for channel in range(8):
        each = slice(channel, channel + 1)
        expected = convolve(moved[:, each], values[each])
        assert np.abs(found[:, each] - expected).max() < 1e-5


def test_a_plan_says_why_numbers_are_moved(tmp_path: Any) -> None:
    net, _ = network(KEPT["shuffled channels"], "2,3,6,4")
    shown = invoke(net.ir.save(tmp_path), "--explain-plan").output
    assert "in f32: it does not move channels by fours" in shown or not compiled_module()


def test_a_plan_says_which_layer_reads_numbers(tmp_path: Any) -> None:
    """Both the quantiser and the layer that moves its results stay in f32."""
    net = Network("1,4,6,6")
    data = net.quantize(net.x, *RANGE, name="levels")
    turned = net.ir.layer("Transpose", [data, net.ir.const(np.array([0, 1, 3, 2]))], name="turned")
    net.ir.result(net.convolution(turned, net.weights(4, 4, 1, 1)[0], pad=0))
    net.ir.result(net.ir.layer("Sigmoid", [turned], name="bent"))
    model = deconv_ir.load(net.ir.save(tmp_path))
    rows = rows_of(model, {"x": np.zeros((1, 4, 6, 6), np.float32)})
    if compiled_module():
        assert rows["turned"].reason == "layer 'bent' (Sigmoid) does not read codes"
        assert rows["levels"].reason == "layer 'turned' (Transpose) does not read codes"
