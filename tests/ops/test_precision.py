"""Arithmetic of f16: rounded in each layer (`spec`), or computed in f32 (`openvino`).

The oracle is NumPy's f16, and f32 or f64.  `tests/peers/test_old_files.py` compares with OpenVINO.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR, Out, invoke

from deconv_ir import Model, State, cut, load, save

RNG = np.random.default_rng(7)
LEVELS = RNG.integers(0, 255, (6, 8)).astype(np.uint8)
SCALES = (0.01 * RNG.random((6, 1))).astype(np.float16)
X = RNG.standard_normal((4, 8)).astype(np.float32)
H = RNG.standard_normal((4, 8)).astype(np.float16)


def f16(
    ir: IR, kind: str, inputs: list[Out], attributes: dict[str, str] | None = None, **more: str
) -> Out:
    return ir.layer(kind, inputs, attributes, precision="FP16", **more)


def compressed(folder: Path) -> Path:
    """Save a product with weights that NNCF compressed: (levels - 128) * scale in f16."""
    ir = IR()
    x = ir.parameter("x", "4,8")
    to_f16 = {"destination_type": "f16"}
    levels = f16(ir, "Convert", [ir.const(LEVELS)], to_f16)
    zero = f16(ir, "Convert", [ir.const(np.full((6, 1), 128, np.uint8))], to_f16)
    scaled = f16(
        ir,
        "Multiply",
        [f16(ir, "Subtract", [levels, zero], name="centred"), ir.const(SCALES)],
        name="scaled",
    )
    weights = ir.layer("Convert", [scaled], {"destination_type": "f32"})
    y = ir.layer("MatMul", [x, weights], {"transpose_b": "true"}, names="y")
    ir.result(y)
    return ir.save(folder)


def test_decompression(tmp_path: Path) -> None:
    path = compressed(tmp_path)
    levels = LEVELS.astype(np.float64) - 128
    exact = X @ (levels * SCALES).T
    rounded = X @ (levels.astype(np.float16) * SCALES).astype(np.float64).T
    scale = np.abs(exact).max()
    assert np.abs(rounded - exact).max() > 1e-4 * scale  # the test can tell them apart
    for semantics, expected in (("spec", rounded), ("openvino", exact)):
        model = load(path, semantics=semantics, warn=False)
        assert np.allclose(model.run(X)["y"], expected, rtol=0, atol=2e-6 * scale)
    (finding,) = load(path, warn=False).findings
    assert (finding.rule, finding.layer) == ("profiles-differ", "'centred' (Subtract, id 5)")
    assert "this layer and 1 more round to f16" in finding.message
    assert load(path, semantics="openvino").findings == ()


def test_whole_networks_of_f16(tmp_path: Path) -> None:
    """Inputs and outputs stay f16; the output is rounded once, also one that is read again."""
    ir = IR()
    x = ir.parameter("x", "4,8", "f16")
    c = ir.const(np.float16([[1.1]]))
    a = f16(ir, "Multiply", [x, c], names="a")
    b = f16(ir, "Add", [a, c])
    y = f16(ir, "Multiply", [b, c], names="y")
    for tensor in (y, a, x):
        ir.result(tensor)
    path = ir.save(tmp_path)
    k = np.float16(1.1)
    wide = (H.astype(np.float32) * np.float32(k) + np.float32(k)) * np.float32(k)
    for semantics, expected in (("spec", (H * k + k) * k), ("openvino", wide.astype(np.float16))):
        found = load(path, semantics=semantics, warn=False).run(H)
        assert list(found) == ["y", "a", "x"]
        assert [array.dtype for array in found.values()] == [np.float16] * 3
        # Elementwise layers that are joined need not round to f16 between them.
        tolerance = 2e-7 if semantics == "openvino" else 2e-3
        assert np.allclose(found["y"], expected, rtol=tolerance)
        assert np.array_equal(found["a"], H * k)
        assert np.array_equal(found["x"], H)


def looped(folder: Path, version: int = 11) -> Path:
    """Save a loop of sums of f16, whose result goes to a variable of f16."""
    ir = IR(version=version)
    x = ir.parameter("x", "4,8", "f16")
    body = ir.body()
    part, total = (body.parameter(name, "1,8", "f16") for name in "pt")
    added = f16(body, "Add", [part, total])
    body.result(added)
    start = ir.const(np.zeros((1, 8), np.float16))
    port_map = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" '
        'stride="1" part_size="1"/>'
        '<input external_port_id="1" internal_layer_id="1"/>'
        '<output external_port_id="2" internal_layer_id="3"/></port_map>'
        '<back_edges><edge from-layer="3" to-layer="1"/></back_edges>'
        f"<body>{body.sections()}</body>"
    )
    y = f16(ir, "TensorIterator", [x, start], bodies=port_map)
    read = f16(ir, "ReadValue", [start], {"variable_id": "v"}, version="opset3")
    both = f16(ir, "Add", [read, y], names="y")
    ir.layer("Assign", [both], {"variable_id": "v"}, version="opset3", precision="FP16")
    ir.result(both)
    path = ir.save(folder)
    path.write_text(path.read_text().replace("FP32", "FP16"))  # the declared types of inputs
    return path


def test_bodies_and_variables(tmp_path: Path) -> None:
    """The sums are of f32; the result and the variable are of f16."""
    path = looped(tmp_path)
    first = H.astype(np.float32).cumsum(0, np.float32)[-1:]
    model = load(path, semantics="openvino", warn=False)
    state = State()
    assert np.array_equal(model.run(H, state=state)["y"], first.astype(np.float16))
    again = first.astype(np.float16).astype(np.float32) + first
    assert np.array_equal(model.run(H, state=state)["y"], again.astype(np.float16))
    assert state.values["v"].dtype == np.float16
    stepwise = np.zeros((1, 8), np.float16)
    for row in H:
        stepwise = row + stepwise
    assert np.array_equal(load(path, warn=False).run(H)["y"], stepwise)


@pytest.mark.parametrize("element_type", ["f32", "f16"])
def test_constants_that_are_only_stored_in_f16_are_not_reported(
    element_type: str, tmp_path: Path
) -> None:
    ir = IR()
    x = ir.parameter("x", "4,8")
    w = ir.const(SCALES if element_type == "f16" else SCALES.astype(np.float32))
    w = ir.layer("Convert", [w], {"destination_type": "f32"})
    w = ir.layer("Reshape", [w, ir.const(np.array([6, 1]))], {"special_zero": "false"})
    ir.result(
        ir.layer(
            "Add", [x, ir.layer("ReduceSum", [w, ir.const(np.array([0]))], {"keep_dims": "true"})]
        )
    )
    assert load(ir.save(tmp_path)).findings == ()


def half_network(folder: Path) -> Path:
    """Save a network of f16 in version 10, whose inputs and outputs OpenVINO makes f32."""
    ir = IR(version=10)
    x = ir.parameter("x", "4,8", "f16")
    y = f16(ir, "Multiply", [x, ir.const(np.float16([[1.1]]), "factor")], name="scaled", names="y")
    ir.result(f16(ir, "Add", [y, y], name="sum", names="z"))
    return ir.save(folder)


def looped_in_version_10(folder: Path) -> Path:
    return looped(folder, 10)


def array_for(model: Model) -> np.ndarray:
    (port,) = model.inputs.values()
    assert port.element_type is not None
    return np.resize(X, port.shape).astype(port.element_type.numpy())


SAVED = [compressed, looped, half_network, looped_in_version_10]


@pytest.mark.parametrize("make", SAVED)
@pytest.mark.parametrize("change", ["none", "reshape", "preprocess", "constants"])
def test_saving_writes_the_network_of_the_file(make, change: str, tmp_path: Path) -> None:
    """Under `openvino`, too: readers of the new file change element types themselves."""
    path = make(tmp_path)

    def changed(model: Model) -> Model:
        name = next(iter(model.inputs))
        if change == "reshape":
            return model.reshape({name: (4 if make is compressed else 2, 8)})
        if change == "preprocess":
            return model.preprocess(layout="nc", mean=1.5, element_type="u8")
        if change == "constants":
            const = next(layer for layer in model.graph.of_type("Const"))
            kind = const.operation.element_type
            return model.replace_constants(
                {const.name: np.full(const.operation.shape, 3, kind.numpy())}
            )
        return model

    texts, results = [], {}
    for semantics in ("spec", "openvino"):
        model = changed(load(path, semantics=semantics, warn=False))
        target = tmp_path / semantics / "saved.xml"
        target.parent.mkdir()
        save(model, target)
        texts.append(target.read_text())
        results[semantics] = model.run(array_for(model))
    assert texts[0] == texts[1]
    for semantics, expected in results.items():
        again = load(tmp_path / "openvino" / "saved.xml", semantics=semantics, warn=False)
        found = again.run(array_for(again))
        assert list(found) == list(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)
    linted = invoke("lint", tmp_path / "openvino" / "saved.xml", "--deep")
    assert linted.exit_code == invoke("lint", path, "--deep").exit_code, linted.output


def test_single_layers_and_parts_are_those_of_the_file(tmp_path: Path) -> None:
    wide = H.astype(np.float32).cumsum(0, np.float32)[-1:].astype(np.float16)
    stepwise = np.zeros((1, 8), np.float16)
    for row in H:
        stepwise = row + stepwise
    for semantics in ("spec", "openvino"):
        model = load(looped(tmp_path), semantics=semantics, warn=False)
        (loop,) = model.graph.of_type("TensorIterator")
        folder = tmp_path / semantics
        folder.mkdir()
        save(model.layer(loop.name), folder / "layer.xml")
        cut(model, folder / "part.xml", start="x", end=loop.name)
    for name in ("layer.xml", "part.xml"):
        texts = [(tmp_path / semantics / name).read_text() for semantics in ("spec", "openvino")]
        assert texts[0] == texts[1]
        for semantics in ("spec", "openvino"):
            part = load(tmp_path / "openvino" / name, semantics=semantics, warn=False)
            (found,) = part.run(H, cast=True).values()
            expected = wide if semantics == "openvino" else stepwise
            assert np.array_equal(found, expected.astype(found.dtype))
