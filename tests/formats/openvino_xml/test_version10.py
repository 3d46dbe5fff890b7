"""Element types of inputs and outputs of IR version 10, and types of layers in any case.

The values are those of OpenVINO 2026.4; `tests/peers/test_old_files.py` asks it for all types.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke

import deconv_ir
from deconv_ir import InputError, load
from deconv_ir.formats.openvino_xml.version10 import input_type, output_type
from deconv_ir.ir.dtypes import ELEMENT_TYPES, parse_element_type
from deconv_ir.ops import find_operation, standard_type


def save(folder: Path, element_type: str, version: int = 10) -> Path:
    """Save a model that doubles its input, and returns the shape too, in i64."""
    ir = IR(version=version)
    x = ir.parameter("x", "1,3", element_type)
    y = ir.layer("Add", [x, x], precision=parse_element_type(element_type).ir_name, names="y")
    shape = ir.layer("ShapeOf", [x], precision="I64", version="opset1", names="shape")
    ir.result(y)
    ir.result(shape)
    return ir.save(folder)


def test_types() -> None:
    kept = [t.name for t in ELEMENT_TYPES if input_type(t) is not t]
    assert kept == ["f16"]
    to_i32 = {t.name for t in ELEMENT_TYPES if output_type(t) is parse_element_type("i32")}
    assert to_i32 == {"i32", "i64", "u32", "u64"}


def test_f32_is_accepted_for_f16(tmp_path: Path) -> None:
    x = np.array([[1.0001, -2, 1e6]], np.float32)
    model = load(save(tmp_path, "f16"), warn=False)
    assert "IR version 10: 'x' from f16 to f32, and 2 more" in model.findings[0].message
    found = model.run(x)
    assert (found["y"].dtype, found["shape"].dtype) == (np.float16, np.int64)
    assert found["y"].tolist() == [[2, -4, np.inf]]
    assert np.array_equal(
        model.run(x[:, :2].repeat(2, 1)[:, :3].astype(np.float16))["y"], [[2, 2, -4]]
    )
    with pytest.raises(InputError, match="takes f16, the array is f64"):
        model.run(x.astype(np.float64))
    with pytest.raises(InputError, match="takes f16, the array is f32"):
        load(save(tmp_path, "f16", version=11), warn=False).run(x)


def test_a_run_says_so_once(tmp_path: Path) -> None:
    done = invoke(save(tmp_path, "f16"), "--random-inputs", "0", "--no-output")
    assert done.exit_code == 0
    assert done.stderr.count("IR version 10") == 1
    done = invoke(
        tmp_path / "model.xml", "--random-inputs", "0", "--no-output", "--semantics", "openvino"
    )
    assert "IR version 10" not in done.stderr


def test_semantics_of_openvino_has_its_types(tmp_path: Path) -> None:
    model = load(save(tmp_path, "f16"), semantics="openvino")
    assert {n: str(p.element_type) for n, p in model.inputs.items()} == {"x": "f32"}
    assert {n: str(p.element_type) for n, p in model.outputs.items()} == {
        "y": "f32",
        "shape": "i32",
    }
    found = model.run(np.array([[1, -2, 3]], np.float32))
    assert {n: (a.dtype.name, a.tolist()) for n, a in found.items()} == {
        "y": ("float32", [[2, -4, 6]]),
        "shape": ("int32", [1, 3]),
    }
    deconv_ir.save(model, tmp_path / "copy.xml")
    again = load(tmp_path / "copy.xml", semantics="openvino")
    assert str(again.inputs["x"].element_type) == "f32"


@pytest.mark.parametrize(("element_type", "name"), [("f32", "float32"), ("u8", "float32")])
def test_other_types(element_type: str, name: str, tmp_path: Path) -> None:
    model = load(save(tmp_path, element_type), semantics="openvino")
    x = np.ones((1, 3), model.inputs["x"].element_type.numpy())  # type: ignore[union-attr]
    assert model.run(x)["y"].dtype.name == name


def test_tiles_take_f32_and_any_byte_order(tmp_path: Path) -> None:
    x = np.array([[1.5, -2, 3]], ">f4")
    np.save(tmp_path / "x.npy", x)
    for version, element_type in ((10, "f16"), (11, "f32")):
        path = save(tmp_path, element_type, version)
        done = invoke(
            path, "--input", tmp_path / "x.npy", "--tile", "1,2", "--output-layer", "y",
            "--output", tmp_path / f"{element_type}.npy",
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
        assert np.load(tmp_path / f"{element_type}.npy").tolist() == [[3, -4, 6]]


X = np.array([[-1, 0, 2]], np.float32)
EXP = np.exp(X.astype(np.float64))


@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        ("Relu", {}, [[0, 0, 2]]),
        ("relu", {}, [[0, 0, 2]]),
        ("ELU", {"alpha": "1"}, [[np.expm1(-1), 0, 2]]),
        ("Softmax", {"axis": "1"}, EXP / EXP.sum()),
        ("SOFTMAX", {"axis": "1"}, EXP / EXP.sum()),
        ("softPlus", {}, np.log1p(EXP)),
        ("TANH", {}, np.tanh(X)),
        ("hswish", {}, [[-1 / 3, 0, 5 / 3]]),
        ("clamp", {"min": "0", "max": "1"}, [[0, 0, 1]]),
    ],
)
def test_types_of_layers_in_any_case(
    kind: str, attributes: dict[str, str], expected: np.ndarray, tmp_path: Path
) -> None:
    ir = IR()
    y = ir.layer(kind, [ir.parameter("x", "1,3")], attributes, version="opset4", outputs=("1,3",))
    ir.result(y)
    path = ir.save(tmp_path)
    (found,) = load(path).run(X).values()
    assert np.allclose(found, expected, atol=1e-6)
    assert not [f for f in deconv_ir.lint(path) if f.code in ("IR114", "IR214")]


@pytest.mark.parametrize(
    ("kind", "version"), [("relu", "extension"), ("result", "opset1"), ("const", "opset1")]
)
def test_types_that_openvino_compares_exactly(kind: str, version: str) -> None:
    assert find_operation(standard_type(kind, version), version) is None
