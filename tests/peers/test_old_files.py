"""Old forms that OpenVINO reads: `<pre-process>`, types of version 10, types in any case."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from formats.openvino_xml.test_pre_process import EXCHANGED, IN_BIN, MEANS, channels, save, section
from ops.test_precision import H, compressed, half_network, looped, looped_in_version_10
from support import IR

import deconv_ir
from deconv_ir.ir.dtypes import ELEMENT_TYPES

from .runtimes import openvino_error, ops, ov

pytestmark = pytest.mark.peers

CORE = ov.Core()


@pytest.mark.parametrize(
    ("content", "name", "shape"),
    [
        (MEANS, "x", "1,3,2,2"),
        (MEANS, "", "2,3"),
        (MEANS, "", "3,2,4"),
        (MEANS, "x", "1,3,2,2,2"),
        (MEANS, "x", "3"),
        (MEANS, "z", "1,3,2,2"),
        (MEANS, "x", "-1,3,2,2"),
        (MEANS.replace("/>", '/><scale value="2"/>'), "x", "1,3,2,2"),
        (IN_BIN, "x", "1,3,2,2"),
        (EXCHANGED, "x", "1,3,2,2"),
        (IN_BIN.replace('"16"', '"12"'), "x", "1,3,2,2"),
        (IN_BIN, "x", "1,3,4,4"),
        (channels('<mean value="1"/>'), "x", "1,3,2,2"),
        (channels("<mean/>"), "x", "1,3,2,2"),
        ('<channel id="3"><mean value="1"/></channel>' * 3, "x", "1,3,2,2"),
        ("", "x", "1,3,2,2"),
    ],
)
def test_pre_process(content: str, name: str, shape: str, tmp_path: Path) -> None:
    path = save(
        tmp_path, section(content, f' reference-layer-name="{name}"' if name else ""), shape
    )
    if openvino_error(lambda: CORE.read_model(path)):
        with pytest.raises(deconv_ir.DeconvError):
            deconv_ir.load(path)
        return
    x = np.random.default_rng(0).standard_normal([int(d) for d in shape.split(",")]).astype("f4")
    expected = CORE.compile_model(path, "CPU")(x)
    assert np.array_equal(deconv_ir.load(path).run(x)["y"], expected["y"])


@pytest.mark.parametrize("element_type", [t for t in ELEMENT_TYPES if t.name != "string"], ids=str)
@pytest.mark.parametrize("version", [10, 11])
def test_element_types(element_type: object, version: int, tmp_path: Path) -> None:
    ir = IR(version=version)
    x = ir.parameter("x", "1,3", str(element_type))
    ir.result(ir.layer("Squeeze", [x], precision=element_type.ir_name, names="y"))  # type: ignore[attr-defined]
    path = ir.save(tmp_path)
    theirs = CORE.read_model(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = deconv_ir.load(path, semantics="openvino")
    ours = (model.inputs["x"].element_type, model.outputs["y"].element_type)
    expected = (theirs.inputs[0].element_type, theirs.outputs[0].element_type)
    assert tuple(map(str, ours)) == tuple(t.get_type_name() for t in expected)


@pytest.mark.parametrize("kind", ["Relu", "relu", "RELU", "result", "const", "parameter"])
def test_types_of_layers_in_any_case(kind: str, tmp_path: Path) -> None:
    ir = IR()
    y = ir.layer("ReLU", [ir.parameter("x", "1,3")], outputs=("1,3",))
    ir.result(ir.layer("Add", [y, ir.const(np.ones(3, np.float32))], outputs=("1,3",), names="y"))
    path = ir.save(tmp_path)
    exact = {"result": "Result", "const": "Const", "parameter": "Parameter"}.get(kind, "ReLU")
    path.write_text(path.read_text().replace(f'type="{exact}"', f'type="{kind}"'))
    x = np.array([[-1, 0, 2]], np.float32)
    try:
        expected = CORE.compile_model(path, "CPU")(x)["y"]
    except (RuntimeError, KeyError):
        expected = None
    try:
        found = deconv_ir.load(path, warn=False).run(x).get("y")
    except deconv_ir.DeconvError:
        found = None
    assert (found is None) == (expected is None)
    assert found is None or np.array_equal(found, expected)


@pytest.mark.parametrize("levels", ["u8", "i8", "u4", "i4"])
def test_weights_decompressed_in_f16(levels: str, tmp_path: Path) -> None:
    """As NNCF stores them; `semantics="openvino"` is a hundred times closer than `spec`."""
    rng = np.random.default_rng(3)
    low, high = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}[levels]
    stored = ops.constant(rng.integers(low, high, (32, 64)), getattr(ov.Type, levels))
    x = ops.parameter([4, 64], np.float32, name="x")
    weights = ops.convert(stored, "f16")
    if low == 0:
        zero = ops.constant(np.full((32, 1), high // 2), getattr(ov.Type, levels))
        weights = ops.subtract(weights, ops.convert(zero, "f16"))
    weights = ops.multiply(weights, ops.constant(rng.random((32, 1)).astype(np.float16)))
    y = ops.matmul(x, ops.convert(weights, "f32"), transpose_a=False, transpose_b=True)
    y.output(0).set_names({"y"})
    path = tmp_path / "compressed.xml"
    ov.save_model(ov.Model([y], [x]), path, compress_to_fp16=False)
    data = rng.standard_normal((4, 64)).astype(np.float32)
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    expected = CORE.compile_model(path, "CPU", exact)(data)["y"]
    error = {
        semantics: np.abs(
            deconv_ir.load(path, semantics=semantics, warn=False).run(data)["y"] - expected
        ).max()
        for semantics in ("spec", "openvino")
    }
    assert error["openvino"] < 1e-6 * np.abs(expected).max()
    assert error["spec"] > 20 * error["openvino"]


@pytest.mark.parametrize("make", [compressed, half_network, looped, looped_in_version_10])
def test_saved_under_its_own_semantics(make, tmp_path: Path) -> None:
    """OpenVINO computes the same from a file that `openvino` saved as from the file before."""
    path = make(tmp_path)
    (tmp_path / "new").mkdir()
    deconv_ir.save(deconv_ir.load(path, semantics="openvino", warn=False), tmp_path / "new/m.xml")
    results = []
    for file in (path, tmp_path / "new" / "m.xml"):
        model = CORE.read_model(file)
        x = H.astype(model.input(0).get_element_type().to_dtype())
        settings = {"INFERENCE_PRECISION_HINT": "f32"}
        results.append(CORE.compile_model(model, "CPU", settings)(x).to_tuple())
    for before, after in zip(*results, strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
