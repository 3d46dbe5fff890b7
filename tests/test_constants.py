"""Model.replace_constants and --set: other arrays in place of constants, in bodies too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR, invoke

import deconv_ir
from deconv_ir import DeconvError, InputError, IRError
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ops.constants.constant import unpack
from deconv_ir.ops.constants.packing import pack

RNG = np.random.default_rng(0)
ROOT = Path(__file__).parents[1]
ONE, TWO = np.ones((1, 1, 1), np.float32), np.full((1, 1, 1), 2, np.float32)


def network() -> IR:
    """Build y = (x + 1 in each row) * 3; 'one' is in the body of 'rows', 'three' around it."""
    ir = IR()
    x = ir.parameter("x", "2,1,3")
    body = ir.body()
    row = body.parameter("row", "1,1,3")
    one = body.const(ONE, "one")
    body.result(body.layer("Add", [row, one], outputs=("1,1,3",), name="sum"), name="out")
    maps = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0"/>'
        '<output external_port_id="1" internal_layer_id="3" axis="0"/></port_map>'
    )
    bodies = f"{maps}<back_edges/><body>{body.sections()}</body>"
    rows = ir.layer("TensorIterator", [x], outputs=("2,1,3",), bodies=bodies, name="rows")
    three = ir.const(np.full((1,), 3, np.float32), "three")
    ir.result(ir.layer("Multiply", [rows, three], outputs=("2,1,3",), name="times", names="y"))
    half = ir.const(np.ones((1,), np.float16), "half_compressed")
    wide = ir.layer("Convert", [half], {"destination_type": "f32"}, outputs=("1",), name="half")
    ir.result(ir.layer("Add", [rows, wide], outputs=("2,1,3",), name="more", names="z"))
    return ir


@pytest.mark.parametrize(
    ("given", "y", "z"),
    [
        ({"three": np.float32([5])}, lambda x: (x + 1) * 5, lambda x: x + 2),
        ({"2": np.float32([5])}, lambda x: (x + 1) * 5, lambda x: x + 2),  # a layer id
        ({"rows/body/one": TWO}, lambda x: (x + 2) * 3, lambda x: x + 3),
        ({"rows/body/1": TWO}, lambda x: (x + 2) * 3, lambda x: x + 3),
        (
            {"rows/body/one": TWO, "three": np.float32([5]), "half_compressed": np.float16([4])},
            lambda x: (x + 2) * 5,
            lambda x: x + 6,
        ),
        ({}, lambda x: (x + 1) * 3, lambda x: x + 2),
    ],
)
def test_results_and_the_saved_file(given: dict[str, Any], y: Any, z: Any, tmp_path: Path) -> None:
    model = deconv_ir.load(network().save(tmp_path))
    x = RNG.standard_normal((2, 1, 3)).astype(np.float32)
    changed = model.replace_constants(given)
    deconv_ir.save(changed, tmp_path / "saved.xml")
    for each in (changed, deconv_ir.load(tmp_path / "saved.xml", strict=True)):
        found = each.run(x)
        np.testing.assert_allclose(found["y"], y(x), rtol=1e-6)
        np.testing.assert_allclose(found["z"], z(x), rtol=1e-6)
    np.testing.assert_allclose(model.run(x)["y"], (x + 1) * 3, rtol=1e-6)  # unchanged
    before = {f.code for f in deconv_ir.lint(tmp_path / "model.xml")}
    assert {f.code for f in deconv_ir.lint(tmp_path / "saved.xml")} <= before


def test_a_constant_that_shares_its_bytes_changes_alone(tmp_path: Path) -> None:
    """OpenVINO writes equal constants once."""
    ir = IR()
    x = ir.parameter("x", "1")
    a = ir.const(np.float32([2]), "a")
    b = ir.raw_const(b"", "f32", [1], "b", {"offset": "0", "size": "4"})
    ir.result(ir.layer("Multiply", [x, a], outputs=("1",), name="m", names="y"))
    ir.result(ir.layer("Multiply", [x, b], outputs=("1",), name="n", names="z"))
    model = deconv_ir.load(ir.save(tmp_path)).replace_constants({"b": np.float32([3])})
    found = model.run(np.float32([1]))
    assert (found["y"], found["z"]) == (2, 3)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"thre": [1]}, IRError, "there is no constant 'thre' (did you mean 'three'?)"),
        ({"rows/body/on": [1]}, IRError, "did you mean 'rows/body/one'?"),
        ({"one": ONE}, IRError, "'rows/body/one' names the one in that body"),
        ({"times": [1]}, IRError, "'times' (Multiply, id 3): 'times' is not a constant"),
        ({"half": [1]}, IRError, "computed from the constant 'half_compressed'"),
        ({"x": [1]}, IRError, "'x' is not a constant"),
        ({"rows/body/sum": [1]}, IRError, "'sum' (Add, id 2): 'rows/body/sum' is not a constant"),
        ({"three": np.float32([[1]])}, InputError, "takes shape [1], the array has [1,1]"),
        ({"three": np.float64([1])}, InputError, "takes f32, the array is f64"),
        ({"three": np.float32([1]), "2": np.float32([1])}, InputError, "two of its names"),
        ({7: np.float32([1])}, InputError, "constants are named by strings"),
        ([1], InputError, "constants must be a mapping"),
    ],
)
def test_mistakes(given: Any, kind: type[DeconvError], text: str, tmp_path: Path) -> None:
    model = deconv_ir.load(network().save(tmp_path))
    with pytest.raises(kind) as caught:
        model.replace_constants(given)
    assert text in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "model.xml"))


def test_other_types_are_cast(tmp_path: Path) -> None:
    model = deconv_ir.load(network().save(tmp_path))
    x = np.ones((2, 1, 3), np.float32)
    changed = model.replace_constants({"three": np.float64([5])}, cast=True)
    np.testing.assert_array_equal(changed.run(x)["y"], np.full((2, 1, 3), 10))
    with pytest.raises(InputError, match=r"constant 'half_compressed'.*does not fit f16"):
        model.replace_constants({"half_compressed": np.float64([1e9])}, cast=True)
    onednn = deconv_ir.load(ROOT / "samples" / "onednn" / "int8.json")
    with pytest.raises(InputError, match="oneDNN Graph file"):
        onednn.replace_constants({"3": np.float32([1])})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("u1", [1, 0, 0, 1, 1, 1, 0, 1, 1]),
        ("u2", [0, 1, 2, 3, 3]),
        ("u3", [0, 1, 2, 3, 4, 5, 6, 7, 5]),
        ("u4", [0, 15, 7]),
        ("i4", [-8, 7, -1]),
        ("u6", [0, 63, 33, 12, 5]),
        ("nf4", [-1.0, 0.0, 1.0]),
        ("f4e2m1", [0.5, -6.0, 1.5]),
        ("string", ["", "é", "abc"]),
        ("boolean", [True, False]),
        ("bf16", [1.5, -2.0]),
        ("i64", [-(2**40), 3]),
    ],
)
def test_all_element_types(name: str, values: list[Any], tmp_path: Path) -> None:
    """The reader, which OpenVINO's files test, finds the values in the saved file."""
    element_type = parse_element_type(name)
    array = np.array(values, element_type.numpy())
    ir = IR()
    zeros = np.zeros(len(values), element_type.numpy())
    empty = np.array([""] * len(values), object) if name == "string" else zeros
    data = pack(empty, element_type)
    c = ir.raw_const(data, name, [len(values)], "c")
    ir.result(c)
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    changed = model.replace_constants({"c": array})
    deconv_ir.save(changed, tmp_path / "saved.xml")
    (found,) = deconv_ir.load(tmp_path / "saved.xml", warn=False).run([]).values()
    assert found.tolist() == array.tolist()
    if element_type.bits:
        assert len(pack(array, element_type)) == element_type.size_of(len(values))
        read = unpack(memoryview(pack(array, element_type)), element_type, len(values))
        assert read.tolist() == array.tolist()


@pytest.mark.parametrize(("name", "value"), [("u1", 2), ("u3", 8), ("u6", 64), ("nf4", 0.3)])
def test_values_that_a_packed_type_lacks(name: str, value: float, tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.raw_const(bytes(3), name, [1], "c"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    array = np.array([value], parse_element_type(name).numpy())
    with pytest.raises(InputError, match=rf"constant 'c': {value}\d* does not fit {name}"):
        model.replace_constants({"c": array})


def test_option_set_replaces_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network().save(tmp_path)
    np.save("five.npy", np.float64([5]))
    np.save("two.npy", TWO)
    np.save("x.npy", np.ones((2, 1, 3), np.float32))
    options = ("--set", "three=five.npy", "--set", "rows/body/one=two.npy", "--cast")
    run = ("--input", "x.npy", "--output-layer", "times", "--force")
    done = invoke("model.xml", *options, *run)
    assert done.exit_code == 0, done.stderr
    np.testing.assert_array_equal(np.load("times.npy"), np.full((2, 1, 3), 15))
    assert invoke("model.xml", *options, "--save-xml", "saved.xml").exit_code == 0
    assert invoke("saved.xml", *run).exit_code == 0
    np.testing.assert_array_equal(np.load("times.npy"), np.full((2, 1, 3), 15))
    for arguments, text in (
        (("--set", "three=five.npy"), "takes f32, the array is f64 (--cast converts it)"),
        (("--set", "three"), "--set three: expected NAME=FILE.npy"),
        (("--set", "three=-"), "constants are read from files"),
        (("--set", "three=none.npy"), "none.npy: cannot read the array"),
        (("--set", "three=five.npy", "--set", "three=five.npy"), "--set 'three' is given twice"),
        ((*options, *run, "--output", "five.npy"), "would overwrite the array of constant 'three'"),
    ):
        given = () if "--input" in arguments else ("--input", "x.npy")
        done = invoke("model.xml", *arguments, *given)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert text in done.stderr


def test_resume_sees_another_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network().save(tmp_path)
    Path("in").mkdir()
    np.save("in/a.npy", np.ones((2, 1, 3), np.float32))
    arguments = ("--input", "in", "--output", "out", "--resume", "--until", "times")
    for number, again in ((5, True), (5, False), (6, True)):
        np.save("three.npy", np.float32([number]))
        done = invoke("model.xml", *arguments, "--set", "three=three.npy")
        assert done.exit_code == 0, done.stderr
        assert ("1 done" in done.stderr) == again
        np.testing.assert_array_equal(np.load("out/a.npy"), np.full((2, 1, 3), 2 * number))
    assert "a constant of --set has changed" in done.stderr


@pytest.mark.parametrize(("more", "reported"), [(0, False), (60, False), (64, True), (4096, True)])
@pytest.mark.parametrize("form", ["path", "bytes"])
def test_weights_that_are_too_long_are_reported(
    more: int, reported: bool, form: str, tmp_path: Path
) -> None:
    """Those of another model compute something else; padding after the constants is usual."""
    ir = IR()
    at = ir.layer("Add", [ir.parameter("x", "4"), ir.const(np.ones(4, np.float32))])
    ir.result(at)
    path = ir.save(tmp_path)
    other = tmp_path / "other.bin"
    other.write_bytes(path.with_suffix(".bin").read_bytes() + bytes(more))
    weights = other if form == "path" else other.read_bytes()
    for semantics in ("spec", "openvino"):
        model = deconv_ir.load(path, weights, semantics=semantics, warn=False)
        found = [str(f) for f in model.findings if f.rule == "weights-longer"]
        name = "other.bin" if form == "path" else "the given weights"
        message = f"the last constant ends at byte 16 of {name}, which has {16 + more}"
        assert found == ([f"{path}: {message} (the weights of another model?)"] if reported else [])
