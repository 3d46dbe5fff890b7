"""Who is right where a runtime does not follow the document of an operation, or rounds weights.

The exact values are those of the formulas in the documents, written out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir import SideVerdict

pytest.importorskip("openvino", reason="OpenVINO cannot be imported: install the `peers` extra")
pytestmark = pytest.mark.peers


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("order", ["fico", "ifco", "icof", "ifoc", "iofc"])
def test_attributes_of_lstm_cell_1(order: str, coupled: bool, tmp_path: Path) -> None:
    """LSTMCell-1, attributes weights_format and input_forget, which OpenVINO 2026.4 ignores.

    With input_forget, the forget gate is one minus the input gate, as in ONNX's LSTM.
    """
    rng = np.random.default_rng(0)
    shapes = {"x": (2, 3), "h": (2, 4), "c": (2, 4), "w": (16, 3), "r": (16, 4), "b": (16,)}
    arrays = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    ir = IR()
    sources = [ir.parameter(n, ",".join(map(str, shapes[n]))) for n in "xhc"]
    sources += [ir.const(arrays[name]) for name in "wrb"]
    attributes = {"hidden_size": "4", "weights_format": order}
    attributes["input_forget"] = str(coupled).lower()
    cell = ir.layer(
        "LSTMCell", sources, attributes, outputs=("2,4", "2,4"), name="cell", version="opset1"
    )
    ir.result(cell, "y")
    given = {name: arrays[name] for name in "xhc"}
    path = ir.save(tmp_path)
    verdict = deconv_ir.diff(path, None, given, against="openvino", verdict=True).verdict
    assert verdict is not None
    x, h, c, w, r, b = (arrays[name].astype(float) for name in "xhcwrb")
    gates = dict(zip(order, np.split(x @ w.T + h @ r.T + b, 4, axis=1), strict=True))
    forget, into, out = (sigmoid(gates[gate]) for gate in "fio")
    forget = 1 - into if coupled else forget
    state = forget * c + into * np.tanh(gates["c"])
    expected = out * np.tanh(state)
    found = next(iter(deconv_ir.load(path).run(given).values()))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert verdict.wrong_sides == (() if order == "fico" and not coupled else ("openvino",))


def test_a_layer_that_is_wrong_with_some_settings_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ReLU of NaN, while the runs with several threads are replaced by right ones."""
    from deconv_ir.compare import rerun

    def judge(network: object, inputs: object, settings: Mapping[str, str]) -> SideVerdict:
        return SideVerdict(settings.get("INFERENCE_NUM_THREADS") != "1")

    monkeypatch.setattr(rerun, "judge_part", judge)
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "3")], name="relu"), "y")
    given = np.float32([np.nan, -1, 2])
    verdict = deconv_ir.diff(
        ir.save(tmp_path), None, [given], against="openvino", verdict=True
    ).verdict
    assert verdict is not None
    (note,) = verdict.notes
    assert note.startswith("Alone, the layer is wrong with openvino's f32 on one thread, and right")
    assert [s.name for s in verdict.settings if not s.verdict.right] == ["f32 on one thread"]


def test_a_default_of_prior_grid_generator(tmp_path: Path) -> None:
    """ExperimentalDetectronPriorGridGenerator-6: flatten is true by default, a 2D output."""
    ir = IR()
    sources = [
        ir.parameter(name, shape)
        for name, shape in (("priors", "3,4"), ("map", "1,2,4,5"), ("image", "1,3,64,80"))
    ]
    kind = "ExperimentalDetectronPriorGridGenerator"
    made = ir.layer(kind, sources, {"stride_x": "16", "stride_y": "16"}, version="opset6")
    ir.result(made, "y")
    shapes = {"priors": (3, 4), "map": (1, 2, 4, 5), "image": (1, 3, 64, 80)}
    given = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    verdict = deconv_ir.diff(
        ir.save(tmp_path), None, given, against="openvino", verdict=True
    ).verdict
    assert verdict is not None
    assert verdict.wrong_sides == ("openvino",)
    assert "shape [4, 5, 3, 4], exact [60, 4]" in verdict.sentence


def test_weights_that_onnxruntime_rounds(tmp_path: Path) -> None:
    """A Conv behind DequantizeLinear: onnxruntime 1.32 rounds its f32 weights to 8 bits.

    With x = 1 and weights of 1 and 0.3, the exact result is 1.3; 0.3 is no multiple of 1 / 127.
    """
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    weights = np.float32([1, 0.3]).reshape(1, 2, 1, 1)
    tensors = {"s": np.float32(1 / 64), "z": np.uint8(0), "w": weights, "b": np.float32([0])}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Conv", ["d", "w", "b"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["e"]),
        helper.make_node("DequantizeLinear", ["e", "s", "z"], ["y"]),
    ]
    info = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 4]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4, 4]),
    ]
    stored = [numpy_helper.from_array(np.asarray(a), n) for n, a in tensors.items()]
    graph = helper.make_graph(nodes, "net", info[:1], info[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    ir = IR()
    ends = [ir.const(np.full((1, 1, 1, 1), v, np.float32)) for v in (0, 255 / 64) * 2]
    x = ir.parameter("x", "1,2,4,4")
    data = ir.layer("FakeQuantize", [x, *ends], {"levels": "256"}, name="d")
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    made = ir.layer("Convolution", [data, ir.const(weights)], window, name="c")
    ir.result(ir.layer("FakeQuantize", [made, *ends], {"levels": "256"}, name="y"))
    ones = np.ones((1, 2, 4, 4), np.float32)
    verdict = deconv_ir.diff(
        ir.save(tmp_path), tmp_path / "net.onnx", ones, against="onnxruntime", verdict=True
    ).verdict
    assert verdict is not None
    assert verdict.wrong_sides == ("onnxruntime",), verdict.sentence
    assert verdict.first is not None
    assert verdict.first.b.exact == pytest.approx(1.3, abs=1e-6)
    assert verdict.first.b.value != pytest.approx(1.3, abs=1e-4)
