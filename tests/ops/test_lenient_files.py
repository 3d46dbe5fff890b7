"""Files that OpenVINO runs although the documents do not describe them to the letter.

The values are worked out here; `tests/peers/test_lenient_files.py` compares with OpenVINO.
"""

from __future__ import annotations

from typing import Any

import lenient_files
import numpy as np
import pytest
from lenient_files import BY_MODEL_OPTIMIZER, LENIENT, model_of, sequence
from support import IR

import deconv_ir
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose


def load(ir: IR) -> Any:
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)


def run(name: str) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return input and output of a model, and its constants."""
    ir, numbers = model_of(name)
    model = load(ir)
    port = model.inputs["x"]
    x = numbers[: np.prod(port.shape)].reshape(port.shape).astype(port.element_type.numpy())
    constants = [c.operation.execute([], model.context)[0] for c in model.graph.of_type("Const")]
    return x, next(iter(model.run([x]).values())), constants


@pytest.mark.parametrize("name", sorted(set(LENIENT) - {"RNNCell"}))
def test_a_file_that_openvino_runs_has_no_errors(name: str) -> None:
    ir, _ = model_of(name)
    findings = check_bytes(ir.xml().encode(), "model.xml", choose()).findings
    # The builder writes neither dims nor a .bin.
    left = [f for f in findings if "declares" not in f.message and f.rule != "weights-missing"]
    assert [f.message for f in left if f.severity.value == "error"] == []


@pytest.mark.parametrize("name", BY_MODEL_OPTIMIZER)
def test_a_file_of_model_optimizer_is_clean(name: str) -> None:
    ir, _ = model_of(name)
    findings = check_bytes(ir.xml().encode(), "model.xml", choose()).findings
    left = [f for f in findings if "declares" not in f.message and f.rule != "weights-missing"]
    assert [f.message for f in left] == []


def test_regions_of_opset1_are_those_of_opset2() -> None:
    """ROIPooling-1, 'max': each bin of a region has the maximum of its elements."""
    x, found, (boxes,) = run("ROIPooling of opset1")
    expected = np.empty((2, 8, 3, 2), np.float32)
    for region, (_, *corners) in enumerate(boxes):
        left, top, right, bottom = (int(np.floor(c * 0.0625 + 0.5)) for c in corners)
        height, width = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i in range(3):
            rows = slice(top + i * height // 3, top - (-(i + 1) * height // 3))
            for j in range(2):
                columns = slice(left + j * width // 2, left - (-(j + 1) * width // 2))
                expected[region, :, i, j] = x[0, :, rows, columns].max((1, 2))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [n for n in LENIENT if n.lower().startswith("prelu")])
def test_prelu(name: str) -> None:
    x, found, (slope,) = run(name)
    assert found.dtype == x.dtype
    wide = x.astype(np.float32)
    wanted = np.where(wide < 0, wide * slope.astype(np.float32).reshape(3, 1), wide)
    np.testing.assert_allclose(found, wanted.astype(x.dtype), 1e-6)


def test_prelu_behind_a_convolution_of_another_type() -> None:
    ir = IR()
    x = ir.parameter("x", "1,3,4", "f16")
    weights = ir.const(np.eye(3, dtype=np.float16).reshape(3, 3, 1))
    same = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"}
    conv = ir.layer("Convolution", [x, weights], same, precision="FP16")
    slope = ir.const(np.array([0.5, -0.25, 2.0], np.float32))
    ir.result(ir.layer("PReLU", [conv, slope], precision="FP16"))
    data = np.linspace(-2, 2, 12).astype(np.float16).reshape(1, 3, 4)
    (found,) = load(ir).run([data]).values()
    wanted = np.where(data < 0, data * np.float32([[0.5], [-0.25], [2]]), data)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, wanted, 1e-3)


CASES = {
    "Relu": lambda x: np.maximum(x, 0),
    "relu": lambda x: np.maximum(x, 0),
    "ELU": lambda x: np.where(x < 0, 1.5 * np.expm1(x), x),
    "Softmax": lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
}


@pytest.mark.parametrize("name", CASES)
def test_types_in_another_case(name: str) -> None:
    x, found, _ = run(name)
    np.testing.assert_allclose(found, CASES[name](x), 1e-5, 1e-6)


def test_a_variable_without_shape_and_type() -> None:
    x, found, _ = run("ReadValue")
    np.testing.assert_array_equal(found, x)
    model, state = load(model_of("ReadValue")[0]), deconv_ir.State()
    model.run([x], state=state)
    (kept,) = model.run([2 * x], state=state).values()
    np.testing.assert_array_equal(kept, x)


def test_a_variable_of_which_nothing_is_known() -> None:
    ir = IR()
    ir.result(ir.layer("ReadValue", [], {"variable_id": "v"}, version="opset6"), "y")
    with pytest.raises(deconv_ir.UnsupportedError, match="'v' has no value before it is assigned"):
        load(ir).run({})


@pytest.mark.parametrize("name", [n for n in LENIENT if n.startswith("ReorgYolo ")])
def test_reorg_yolo_of_any_channels(name: str) -> None:
    """Darknet's loop (reorg_cpu), with C / 4 rounded down."""
    x, found, _ = run(name)
    batch, channels, height, width = x.shape
    planes, flat = channels // 4, x.ravel()
    wanted = []
    for n, c, h, w in np.ndindex(x.shape):
        offset, plane = divmod(c, planes)
        row, column = 2 * h + offset // 2, 2 * w + offset % 2
        at = ((n * planes + plane) * 2 * height + row) * 2 * width + column
        wanted.append(flat[at])
    assert found.shape == (batch, 4 * channels, height // 2, width // 2)
    np.testing.assert_array_equal(found.ravel(), wanted)


def test_fewer_channels_than_stride_squared_are_refused() -> None:
    ir = IR()
    ir.result(ir.layer("ReorgYolo", [ir.parameter("x", "1,3,4,6")], {"stride": "2"}))
    with pytest.raises(deconv_ir.ShapeError, match="C of data must be at least 4"):
        load(ir)


def test_mvn_of_opset1() -> None:
    x, found, _ = run("MVN")
    mean, deviation = x.mean((2, 3), keepdims=True), x.std((2, 3), keepdims=True)
    np.testing.assert_allclose(found, (x - mean) / deviation, 1e-5, 1e-5)


def test_an_rnn_cell_of_version_experimental() -> None:
    x, found, (state, w, r, b) = run("RNNCell")
    np.testing.assert_allclose(found, np.tanh(x @ w.T + state @ r.T + b), 1e-5, 1e-6)


@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_sequence_without_direction_is_forward(kind: str, gates: int) -> None:
    x, found, _ = run(f"{kind}Sequence")
    other = {}
    for direction in ("forward", "reverse"):
        ir = IR()
        lenient_files.RNG = np.random.default_rng(sum(map(ord, f"{kind}Sequence")))
        ir.result(sequence(f"{kind}Sequence", gates, direction=direction)(ir), "y")
        (other[direction],) = load(ir).run([x]).values()
    np.testing.assert_array_equal(found, other["forward"])
    assert not np.allclose(found, other["reverse"])


@pytest.mark.parametrize("name", ["sink", "sink without mask"])
def test_attention_with_a_sink(name: str) -> None:
    """The sink is the score of one more key, whose value is 0."""
    x, found, (key, value, mask, scale, sink) = run(name)
    wanted = np.zeros_like(found)
    for head, query in np.ndindex(2, 5):
        scores = [float(x[0, head, query] @ key[0, head, k] * scale) for k in range(6)]
        scores = [s + float(mask[query, k]) if mask.ndim else s for k, s in enumerate(scores)]
        weights = np.exp([*scores, float(sink[0, head, 0, 0])])
        weights /= weights.sum()
        wanted[0, head, query] = weights[:6] @ value[0, head]
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("kind", "extents", "kernel", "stride", "expected"),
    [
        # As torch's max_pool1d and avg_pool1d with ceil_mode: ceil((X - K) / s) + 1 windows.
        ("MaxPool", 2, 3, 3, [5.0]),
        ("MaxPool", 2, 5, 4, [5.0]),
        ("AvgPool", 2, 3, 3, [4.5]),
        ("MaxPool", 5, 3, 3, [6.0, 8.0]),
    ],
)
def test_a_window_larger_than_the_data(kind, extents, kernel, stride, expected) -> None:
    attributes = {
        "kernel": f"{kernel}", "strides": f"{stride}", "pads_begin": "0", "pads_end": "0",
        "rounding_type": "ceil_torch",
    }  # fmt: skip
    attributes |= {"exclude-pad": "true"} if kind == "AvgPool" else {"index_element_type": "i32"}
    ir = IR()
    x = ir.parameter("x", f"1,1,{extents}")
    outputs = ["", ""] if kind == "MaxPool" else [""]
    ir.result(ir.layer(kind, [x], attributes, outputs=outputs, version="opset14"), "y")
    data = np.arange(4, 4 + extents, dtype=np.float32).reshape(1, 1, extents)
    (found,) = load(ir).run([data]).values()
    assert found.ravel().tolist() == expected


@pytest.mark.parametrize(("kernel", "stride"), [(4, 2), (5, 3), (3, 1)])
def test_a_window_that_even_torch_refuses(kernel: int, stride: int) -> None:
    """ceil((2 - K) / s) + 1 is 0."""
    attributes = {
        "kernel": f"{kernel}", "strides": f"{stride}", "pads_begin": "0", "pads_end": "0",
        "rounding_type": "ceil_torch",
    }  # fmt: skip
    ir = IR()
    x = ir.parameter("x", "1,1,2")
    ir.result(ir.layer("MaxPool", [x], attributes, outputs=["", ""], version="opset14"))
    with pytest.raises(deconv_ir.ShapeError, match="the window does not fit"):
        load(ir)
