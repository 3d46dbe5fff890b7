"""Layers that need whole axes, and the axes that stay independent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support import IR, Out
from tiling.exactness import in_tiles, is_exact, whole

import deconv_ir
from deconv_ir import Model
from deconv_ir.errors import UnsupportedError

N, T, INPUTS, H = 5, 6, 3, 4


def load(ir: IR, accuracy: str = "direct") -> Model:
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), accuracy=accuracy, warn=False)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(np.float32)


def integers(ir: IR, *values: int) -> Out:
    return ir.const(np.array(values, np.int64))


# Slices of layers that compute the whole axis


def convolution(ir: IR, x: Out) -> Out:
    pads = {"pads_begin": "1,1", "pads_end": "1,1", "strides": "1,1", "dilations": "1,1"}
    return ir.layer("Convolution", [x, ir.const(normal(4, 4, 3, 3))], pads)


def softmax(ir: IR, x: Out) -> Out:
    return ir.layer("SoftMax", [x], {"axis": "1"})


def standardized(ir: IR, x: Out) -> Out:
    how = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"}
    return ir.layer("MVN", [x, integers(ir, 1)], how, version="opset6")


@pytest.mark.parametrize("layer", [convolution, softmax, standardized])
def test_a_slice_of_channels_behind_a_layer_of_all(layer: Callable[[IR, Out], Out]) -> None:
    """Each tile takes the same channels, for example the probability of one class."""
    ir = IR()
    found = layer(ir, ir.parameter("x", "2,4,7,6"))
    lists = [integers(ir, n) for n in (1, 3, 1, 1)]
    ir.result(ir.layer("Slice", [found, *lists], version="opset8"))
    model = load(ir)
    data = normal(2, 4, 7, 6)
    expected = whole(model, {"x": data})
    assert model.tiled().tileable_axes == (0, 2, 3)
    for tile in ((2, 2, 7, 6), (1, 2, 3, 4), (1, 2, 1, 1)):
        assert is_exact(in_tiles(model, {"x": data}, tile), expected), tile
    with pytest.raises(UnsupportedError, match=r"whole of axis 1, so axis 1 .* axes 0, 2, 3 can"):
        model.tiled().require_tileable((2, 1, 7, 6))


@pytest.mark.parametrize("layer", [convolution, softmax])
@pytest.mark.parametrize("rest", ["DepthToSpace", "Reshape"])
def test_all_channels_of_a_few_positions(layer: Callable[[IR, Out], Out], rest: str) -> None:
    """A layer may compute more channels than a tile needs, if it computes fewer positions."""
    ir = IR()
    found = layer(ir, ir.parameter("x", "2,4,6,3"))
    if rest == "Reshape":
        found = ir.layer("Transpose", [found, integers(ir, 0, 2, 3, 1)])
        ir.result(ir.layer(rest, [found, integers(ir, 2, -1)], {"special_zero": "false"}))
    else:
        ir.result(ir.layer(rest, [found], {"block_size": "2", "mode": "depth_first"}))
    model, data = load(ir), normal(2, 4, 6, 3)
    expected = whole(model, {"x": data})
    for tile in ((1, 1), (2, 5)):
        assert is_exact(in_tiles(model, {"x": data}, tile), expected), tile


# Recurrent layers

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
RECURRENT = [
    ("RNNCell", "opset1", {}),
    ("GRUCell", "opset3", {"linear_before_reset": "true"}),
    ("LSTMCell", "opset4", {"clip": "0.5"}),
    ("RNNSequence", "opset5", {"direction": "reverse"}),
    ("GRUSequence", "opset5", {"direction": "forward"}),
    ("GRUSequence", "opset5", {"direction": "bidirectional", "linear_before_reset": "true"}),
    ("LSTMSequence", "opset5", {"direction": "bidirectional"}),
    ("LSTMSequence", "opset1", {"direction": "forward", "weights_format": "ifco"}),
]


def recurrent(
    kind: str, version: str, how: dict[str, str], lengths: list[int], *, given: bool
) -> tuple[IR, dict[str, np.ndarray], Out]:
    """Build a layer; states and lengths are inputs if they are given, else constants.

    Returns the graph, its inputs, and the layer's first output.
    """
    ir, name = IR(), kind.removesuffix("Sequence").removesuffix("Cell")
    sequence, lstm = kind.endswith("Sequence"), name == "LSTM"
    directions = [1 + (how.get("direction") == "bidirectional")] * sequence
    rows = GATES[name] * H
    biases = rows + H if how.get("linear_before_reset") else rows
    arrays = {"x": normal(N, *[T] * sequence, INPUTS), "state": normal(N, *directions, H)}
    arrays |= {"cell": -arrays["state"]} if lstm else {}
    arrays |= {"lengths": np.array(lengths)} if sequence else {}
    sources = [
        ir.parameter(n, ",".join(map(str, a.shape)), "i64" if n == "lengths" else "f32")
        if given or n == "x"
        else ir.const(a)
        for n, a in arrays.items()
    ]
    sources += [ir.const(normal(*directions, *s)) for s in ((rows, INPUTS), (rows, H), (biases,))]
    outputs = 1 + lstm + sequence
    layer, first = ir.layer(
        kind,
        sources,
        {"hidden_size": str(H)} | how,
        outputs=[""] * outputs,
        version=version,
        name="cells",
    )
    for port in range(outputs):
        ir.result((layer, first + port), name=f"y{port}")
    return ir, arrays if given else {"x": arrays["x"]}, (layer, first)


@pytest.mark.parametrize(("kind", "version", "how"), RECURRENT)
@pytest.mark.parametrize("lengths", [[T] * N, [3, 6, 0, 1, 5]], ids=["equal", "ragged"])
@pytest.mark.parametrize("given", [False, True], ids=["constants", "inputs"])
def test_sequences_are_independent_time_is_not(
    kind: str, version: str, how: dict[str, str], lengths: list[int], given: bool
) -> None:
    ir, arrays, _ = recurrent(kind, version, how, lengths, given=given)
    model = load(ir, "fast")
    for name, expected in model.run(arrays).items():
        run = model.tiled(output=name)
        assert [axis for axis in run.tileable_axes if run.shape[axis] > 1] == [0]
        read = run.tile(((1, 3), *((0, n) for n in run.shape[1:]))).inputs
        assert {box[0] for box in read.values()} == {(1, 3)}
        for count in (1, 2, 3):
            found = in_tiles(model, arrays, (count, *expected.shape[1:]), name)
            assert np.abs(found - expected).max() <= 1e-6
        with pytest.raises(UnsupportedError, match=rf"'cells' \({kind}, id \d+\): sees the whole"):
            run.require_tileable((N, *(1 for _ in run.shape[1:])))
    exact = load(ir).tiled(output="y0")
    with pytest.raises(UnsupportedError, match="axis 0"):  # the order of sums in the BLAS
        exact.require_tileable((1, *exact.shape[1:]))


def test_the_last_step_of_sequences() -> None:
    how = {"direction": "forward"}
    ir, arrays, steps = recurrent("LSTMSequence", "opset5", how, [T] * N, given=False)
    last = [integers(ir, n) for n in (T - 1, T, 1, 2)]
    ir.result(ir.layer("Slice", [steps, *last], version="opset8", name="last"))
    model = load(ir, "fast")
    expected = model.run(arrays, outputs=["last"])["last"]
    assert model.tiled(output="last").tileable_axes == (0, 1, 2)
    for tile in ((N, 1, 1, H), (2, 1, 1, H)):
        found = in_tiles(model, arrays, tile, "last")
        assert np.abs(found - expected).max() <= 1e-6, tile


# Layers with graphs of their own


def with_bodies(kind: str) -> Model:
    """Build a layer whose body is a ReLU."""
    ir = IR()
    x = ir.parameter("x", "2,3,6")
    body = ir.body()
    piece = body.parameter("piece", "2,3,2" if kind == "TensorIterator" else "2,3,6")
    result = body.result(body.layer("ReLU", [piece]))
    inner, version, data = body.sections(), "opset5", [x]
    joint = '<{} external_port_id="{}" internal_layer_id="{}" {}/>\n'
    more = ""
    if kind == "TensorIterator":
        version, more = "opset1", 'axis="2" start="0" end="-1" stride="2" part_size="2"'
    elif kind == "If":
        version, data = "opset8", [ir.parameter("condition", "", "boolean"), x]
    else:
        data = [ir.const(np.array(1, np.int64)), ir.raw_const(b"\1", "boolean", ()), x]
    ports = joint.format("input", len(data) - 1, piece[0], more)
    ports += joint.format("output", len(data), result[0], more)
    bodies = f"<port_map>\n{ports}</port_map>\n<body>\n{inner}</body>\n"
    if kind == "If":
        bodies = "".join(
            f"<{name}_port_map>\n{ports}</{name}_port_map>\n<{name}_body>\n{inner}</{name}_body>\n"
            for name in ("then", "else")
        )
    ir.result(ir.layer(kind, data, name="inner", version=version, bodies=bodies))
    return load(ir)


@pytest.mark.parametrize("kind", ["If", "Loop", "TensorIterator"])
def test_a_layer_with_a_graph_sees_the_whole(kind: str) -> None:
    model = with_bodies(kind)
    arrays = {"x": normal(2, 3, 6)} | ({"condition": np.array(True)} if kind == "If" else {})
    (expected,) = model.run(arrays).values()
    assert np.array_equal(expected, np.maximum(arrays["x"], 0))
    run = model.tiled()
    assert run.tileable_axes == ()
    with pytest.raises(UnsupportedError) as caught:
        run.require_tileable((2, 3, 3))
    assert f"'inner' ({kind}, id " in str(caught.value)
    assert "sees the whole of axes 0, 1, 2, so axis 2 of the output [2,3,6] cannot be tiled" in str(
        caught.value
    )
    assert np.array_equal(in_tiles(model, arrays, (2, 3, 6)), expected)


# Time


def test_a_causal_codec_reads_the_past_alone() -> None:
    """Dilated causal convolutions, downsampling by 2 and upsampling, as in a neural codec."""
    ir = IR()
    x = ir.parameter("x", "2,2,64")
    for dilation in (1, 2, 4):
        pads = {"pads_begin": str(2 * dilation), "pads_end": "0", "strides": "1"}
        weights = ir.const(normal(2, 2, 3) * dilation)
        y = ir.layer("Convolution", [x, weights], pads | {"dilations": str(dilation)})
        x = ir.layer("Add", [x, ir.layer("Elu", [y], {"alpha": "1"})])
    even = {"pads_begin": "0", "pads_end": "0", "strides": "2", "dilations": "1"}
    x = ir.layer("Convolution", [x, ir.const(normal(4, 2, 2))], even)
    x = ir.layer("ConvolutionBackpropData", [x, ir.const(normal(4, 2, 2))], even)
    ir.result(x)
    model = load(ir)
    run = model.tiled()
    assert run.tileable_axes == (0, 2)
    # By hand: 2 * (1 + 2 + 4) samples before, nothing after.
    assert run.tile(((0, 1), (0, 2), (32, 40))).inputs == {"x": ((0, 1), (0, 2), (18, 40))}
    data = normal(2, 2, 64)
    for tile in ((1, 2, 1), (1, 2, 7), (2, 2, 40)):
        assert is_exact(in_tiles(model, {"x": data}, tile), whole(model, {"x": data})), tile
