"""Reports against real runtimes: the part is small, and the commands of each runtime repeat it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke_script

import deconv_ir

pytest.importorskip("openvino", reason="OpenVINO cannot be imported: install the `peers` extra")
pytestmark = pytest.mark.peers


def report(folder: Path, *arguments: object) -> Path:
    """Write a report, unzip it, and run the script of the other runtime in it."""
    target = folder / "bug.zip"
    done = invoke_script("diff", *arguments, "--input", folder / "x.npy", "--report", target)
    assert (done.exit_code, done.exception.__class__) == (1, SystemExit), done.exception
    unzipped = folder / "bug"
    zipfile.ZipFile(target).extractall(unzipped)
    (script,) = unzipped.glob("run_*.py")
    subprocess.run([sys.executable, script.name], cwd=unzipped, check=True, capture_output=True)
    return unzipped


def types(part: Path) -> list[str]:
    kinds = [layer.type for layer in deconv_ir.load(part).graph.layers]
    return [kind for kind in kinds if kind not in ("Parameter", "Const", "Result")]


def output(folder: Path, side: str) -> np.ndarray:
    (file,) = (folder / "outputs" / side).glob("*.npy")
    return np.load(file)


@pytest.mark.parametrize("settings", [[], ["--setting", "INFERENCE_NUM_THREADS=1"]])
def test_one_layer_in_openvino(settings: list[str], tmp_path: Path) -> None:
    """OpenVINO's ReLU makes 0 of NaN (IEEE 754: NaN)."""
    ir = IR()
    data = ir.layer("Sqrt", [ir.parameter("x", "1,2,4,4")], name="root")
    ir.result(ir.layer("Tanh", [ir.layer("ReLU", [data], name="in between")]), "y")
    path = ir.save(tmp_path)
    x = np.ones((1, 2, 4, 4), np.float32)
    x[0, 1, 2, 3] = -1
    np.save(tmp_path / "x.npy", x)
    found = report(tmp_path, path, "--against", "openvino", *settings)
    assert types(found / "part.xml") == ["ReLU"]
    np.testing.assert_array_equal(np.load(found / "b.npy"), output(found, "openvino"))
    assert output(found, "openvino")[0, 1, 2, 3] == 0
    for side in ("deconv_ir", "exact"):
        assert np.isnan(output(found, side)[0, 1, 2, 3])
    text = (found / "issue.md").read_text()
    assert text.startswith("# openvino is wrong in layer 'in between' (ReLU, ")


def test_layers_that_openvino_fuses(tmp_path: Path) -> None:
    """A Pad before a deconvolution with a stride is wrong only together with it."""
    ir = IR()
    data = ir.layer("Abs", [ir.parameter("x", "1,1,4")], name="abs")
    pads = [ir.const(np.array(pad)) for pad in ([0, 0, 1], [0, 0, 1])]
    padded = ir.layer(
        "Pad", [data, *pads, ir.const(np.float32(0))], {"pad_mode": "constant"}, name="pad"
    )
    weights = ir.const(np.float32([[[1, 2, 3, 4]]]))
    window = {"strides": "3", "dilations": "1", "pads_begin": "2", "pads_end": "2"}
    up = ir.layer("ConvolutionBackpropData", [padded, weights], window, name="up")
    ir.result(ir.layer("Sigmoid", [up]), "y")
    path = ir.save(tmp_path)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((1, 1, 4), np.float32))
    found = report(tmp_path, path, "--against", "openvino")
    assert types(found / "part.xml") == ["Pad", "ConvolutionBackpropData"]
    exact = output(found, "exact")
    np.testing.assert_allclose(output(found, "deconv_ir"), exact, rtol=1e-5)
    wrong = np.load(found / "b.npy")
    assert wrong.shape != exact.shape or not np.allclose(wrong, exact, rtol=1e-3)


def test_a_part_of_an_onnx_model(tmp_path: Path) -> None:
    """The ONNX model has another slope than the IR."""
    import onnx
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["n"]),
        helper.make_node("LeakyRelu", ["n"], ["l"], alpha=0.5),
        helper.make_node("Exp", ["l"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xy"]
    graph = helper.make_graph(nodes, "net", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    ir = IR()
    data = ir.layer("Abs", [ir.parameter("x", "3")], name="a")
    data = ir.layer("Negative", [data], name="n")
    data = ir.layer("PReLU", [data, ir.const(np.float32([0.25]))], name="l")
    ir.result(ir.layer("Exp", [data], name="y"))
    np.save(tmp_path / "x.npy", np.float32([1, 2, 4]))
    path = ir.save(tmp_path)
    found = report(tmp_path, path, tmp_path / "net.onnx", "--against", "onnxruntime")
    part = onnx.load(found / "part.onnx")
    assert [node.op_type for node in part.graph.node] == ["LeakyRelu"]
    np.testing.assert_array_equal(np.load(found / "b.npy"), [-0.5, -1, -2])
    np.testing.assert_array_equal(output(found, "deconv_ir"), [-0.25, -0.5, -1])
