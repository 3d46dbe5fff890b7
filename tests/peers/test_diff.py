"""Models that OpenVINO saved again, and comparisons with runs by OpenVINO and onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from edited import Edit, build
from support import invoke_script

import deconv_ir
from tests.compare.test_bodies import behind_weights
from tests.compare.test_void_attributes import KINDS, window

ov = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)

pytestmark = pytest.mark.peers

X = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("original"))


def saved(original: Path, path: Path, *, f16: bool = False, folded: bool = False) -> Path:
    model = ov.Core().read_model(original)
    if folded:
        from openvino._offline_transformations import apply_moc_transformations

        apply_moc_transformations(model, False)
    ov.save_model(model, path, compress_to_fp16=f16)
    return path


def aspects(found: deconv_ir.ModelDifference) -> list[str]:
    return sorted({difference.aspect.value for difference in found.differences})


def test_saved_again(original: Path, tmp_path: Path) -> None:
    found = deconv_ir.diff(original, saved(original, tmp_path / "b.xml"), X, rtol=1e-6)
    assert aspects(found) == ["rt_info"]  # the network's: options of OpenVINO
    assert len(found.differences) == 1
    assert all(tensor.within for tensor in found.tensors)


def test_compressed_to_f16(original: Path, tmp_path: Path) -> None:
    found = deconv_ir.diff(original, saved(original, tmp_path / "b.xml", f16=True))
    assert aspects(found) == ["rt_info", "weights"]
    stored = [d.message for d in found.differences if d.aspect is deconv_ir.Aspect.WEIGHTS]
    assert len(stored) == 9
    assert set(stored) == {"stored as f32 in A, f16 in B, equal after conversion to f16"}


def test_batch_normalisation_folded_by_openvino(original: Path, tmp_path: Path) -> None:
    found = deconv_ir.diff(original, saved(original, tmp_path / "b.xml", folded=True), X)
    assert aspects(found) == ["folded", "names", "rt_info"]
    assert len(found.differences) == 3
    assert all(tensor.within for tensor in found.tensors)


def test_openvino_runs_the_other_side(original: Path) -> None:
    found = deconv_ir.diff(original, None, X, against="openvino", rtol=1e-5)
    assert len(found.tensors) == 14
    assert found.equal


def test_openvino_runs_a_broken_model(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    edit.set("up", pads_begin="0,0", pads_end="2,2")
    found = deconv_ir.diff(original, edit.save(tmp_path / "b.xml"), X, against="openvino")
    assert found.culprit is not None
    assert found.culprit.tensor.name == "up"


def test_bisection_with_openvino(original: Path) -> None:
    done = invoke_script(
        "diff", original, "--random-inputs", 0, "--bisect", "--against", "openvino"
    )
    assert done.exit_code == 0, done.output


def test_onnxruntime_runs_the_other_side(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx cannot be imported: install the `peers` extra")
    pytest.importorskip("onnxruntime", reason="onnxruntime: install the `peers` extra")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(2)
    w = rng.standard_normal((4, 3, 4, 4)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Sigmoid", ["x"], ["s"], name="s"),
            helper.make_node("ConvTranspose", ["s", "w"], ["u"], name="u", strides=[2, 2]),
            helper.make_node("Relu", ["u"], ["y"], name="y"),
        ],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 14, 14])],
        [numpy_helper.from_array(w, "w")],
    )
    path = tmp_path / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    ov.save_model(ov.convert_model(path), tmp_path / "model.xml", compress_to_fp16=False)
    x = rng.standard_normal((1, 4, 6, 6)).astype(np.float32)
    found = deconv_ir.diff(tmp_path / "model.xml", path, x, against="onnxruntime", rtol=1e-5)
    assert [tensor.name for tensor in found.tensors] == ["s", "u", "y"]
    assert found.equal
    edit = Edit(tmp_path / "model.xml")
    (up,) = (e for e in edit.root.iter("layer") if e.get("type") == "ConvolutionBackpropData")
    up.find("data").set("strides", "2, 3")
    up.find("data").set("pads_end", "0, 5")
    broken = edit.save(tmp_path / "broken.xml")
    found = deconv_ir.diff(broken, path, x, against="onnxruntime")
    assert found.culprit is not None
    assert found.culprit.tensor.name == "u"


def test_layers_that_share_a_name_are_not_compared(tmp_path: Path) -> None:
    """OpenVINO identifies layers by their names alone."""
    dims = "<dim>2</dim><dim>3</dim>"
    layers = "".join(
        f'<layer id="{i}" name="{name}" type="{kind}" version="opset1"><input><port id="0">{dims}'
        f'</port></input><output><port id="1" precision="FP32">{dims}</port></output></layer>'
        for i, name, kind in ((1, "same", "Exp"), (2, "same", "Sqrt"), (3, "other", "Abs"))
    )
    edges = "".join(
        f'<edge from-layer="{i}" from-port="{min(i, 1)}" to-layer="{i + 1}" to-port="0"/>'
        for i in range(4)
    )
    path = tmp_path / "model.xml"
    path.write_text(
        '<?xml version="1.0"?><net name="n" version="11"><layers>'
        '<layer id="0" name="x" type="Parameter" version="opset1">'
        '<data shape="2,3" element_type="f32"/>'
        f'<output><port id="0" precision="FP32">{dims}</port></output></layer>{layers}'
        '<layer id="4" name="y" type="Result" version="opset1">'
        f'<input><port id="0">{dims}</port></input></layer></layers><edges>{edges}</edges></net>'
    )
    given = {"x": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)}
    found = deconv_ir.diff(path, None, given, against="openvino")
    assert [tensor.name for tensor in found.tensors] == ["other"]
    assert found.equal


@pytest.mark.parametrize("mode", ["explicit", "same_upper", "same_lower", "valid"])
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "DeformableConvolution"])
def test_windows_saved_again(kind: str, mode: str, tmp_path: Path) -> None:
    """OpenVINO writes other pads where `auto_pad` makes them void, and absent lists as zeros."""
    pads = {"pads_begin": "1,1", "pads_end": "1,0"}
    path = window(
        tmp_path / "a", kind, {"strides": "2,2", "dilations": "1,1", "auto_pad": mode, **pads}
    )
    found = deconv_ir.diff(path, saved(path, tmp_path / "b.xml"), ignore=["rt_info", "shape"])
    assert [str(difference) for difference in found.differences] == []


@pytest.mark.parametrize("kind", ["TensorIterator", "Loop", "If"])
def test_openvino_runs_a_part_with_bodies(kind: str, tmp_path: Path) -> None:
    path = behind_weights(kind).save(tmp_path)
    deconv_ir.cut(path, tmp_path / "part.xml", start="start", end="outer")
    compiled = ov.Core().compile_model(ov.Core().read_model(tmp_path / "part.xml"), "CPU")
    x = np.random.default_rng(1).standard_normal((4, 32)).astype(np.float32)
    given = {"start": x} | ({"condition": np.array(True)} if kind == "If" else {})
    found = compiled(given)["outer"]
    np.testing.assert_allclose(found, x * np.arange(1, 33, dtype=np.float32), rtol=1e-6)
