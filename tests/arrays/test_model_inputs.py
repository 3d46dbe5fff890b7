"""Inputs that `run`, `plan` and `infer_shapes` accept, and errors for the others."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import IR, invoke

import deconv_ir

BF16 = np.dtype(ml_dtypes.bfloat16)


def model_of(tmp_path: Path, *inputs: tuple[str, str, str]) -> deconv_ir.Model:
    ir = IR()
    for name, shape, element_type in inputs:
        ir.result(ir.layer("ReLU", [ir.parameter(name, shape, element_type)], name=f"r{name}",
                           names=f"out_{name}"))  # fmt: skip
    return deconv_ir.load(ir.save(tmp_path), warn=False)


@pytest.fixture
def one(tmp_path: Path) -> deconv_ir.Model:
    return model_of(tmp_path, ("x", "?,2", "f32"))


@pytest.fixture
def two(tmp_path: Path) -> deconv_ir.Model:
    return model_of(tmp_path, ("a", "2", "f32"), ("b", "2", "f32"))


def test_a_bare_array_is_the_only_input(one: deconv_ir.Model) -> None:
    x = np.arange(2, dtype=np.float32).reshape(1, 2)
    # If it were split along its first axis, this would be one row of shape [2].
    assert one.run(x)["out_x"].tolist() == x.tolist()
    assert one.run(np.zeros((3, 2), np.float32))["out_x"].shape == (3, 2)
    assert one.bind(x).plan.peak_bytes > 0
    assert one.bind(x).findings == ()
    for given in ([x], (x,), iter([x]), {"x": x}.values(), {"x": x}):
        assert one.run(given)["out_x"].tolist() == x.tolist()
    with pytest.raises(deconv_ir.InputError, match=r"takes shape \[\?,2\], the array has \[2\]"):
        one.run(x[0])


def test_a_bare_array_for_several_inputs(two: deconv_ir.Model) -> None:
    """Two rows of two could be mistaken for the two inputs."""
    with pytest.raises(deconv_ir.InputError, match=r"takes 2 inputs \('a', 'b'\), found one arr"):
        two.run(np.zeros((2, 2), np.float32))
    found = two.run([np.zeros(2, np.float32), np.ones(2, np.float32)])
    assert found["out_b"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "found NoneType"),
        ("x", "found str"),
        (b"x", "found bytes"),
        (3.5, r"takes shape \[\?,2\], the array has \[\]"),
        (object(), "found object"),
        ([], "no array for input 'x'"),
        ({}, "no array for input 'x'"),
        ({3: 0}, "no input 3; it has 'x'"),
        ({"z": 0}, "no input 'z'; it has 'x'"),
        ([0, 0], "takes 1 inputs, found 2"),
        ([[[1], [2, 3]]], "input 'x': cannot convert list to an array"),
        ([None], r"takes shape"),
        ([np.zeros((1, 2), object)], "takes f32, the array is object"),
        ({"x": np.zeros((1, 2)), "layer0": 0, "out": 0}, "no input"),
    ],
)
def test_inputs_of_wrong_kinds(given: Any, words: str, one: deconv_ir.Model) -> None:
    with pytest.raises(deconv_ir.InputError, match=words):
        one.run(given)


def test_an_input_under_two_names(tmp_path: Path) -> None:
    ir = IR()
    x = ir.layer("Parameter", attributes={"shape": "1", "element_type": "f32"}, name="layer_name",
                 names="tensor_name")  # fmt: skip
    ir.result(ir.layer("ReLU", [x]))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    array = np.zeros(1, np.float32)
    for name in ("layer_name", "tensor_name"):
        model.run({name: array})
    with pytest.raises(deconv_ir.InputError, match="under two of its names"):
        model.run({"layer_name": array, "tensor_name": array})


def test_one_output_by_name(two: deconv_ir.Model) -> None:
    arrays = {"a": np.zeros(2, np.float32), "b": np.ones(2, np.float32)}
    for outputs in ("out_b", ["out_b"], ("out_b",), iter(["out_b"])):
        found = two.run(arrays, outputs=outputs)  # type: ignore[arg-type]
        assert list(found) == ["out_b"]
        assert found["out_b"].tolist() == [1, 1]
    assert two.output_names("rb") == ["rb"]
    with pytest.raises(deconv_ir.IRError, match="there is no tensor or layer 'none'"):
        two.run(arrays, outputs="none")
    for wrong in (3, [3], b"out_b", [None]):
        with pytest.raises(deconv_ir.InputError, match="outputs must be names of tensors"):
            two.run(arrays, outputs=wrong)  # type: ignore[arg-type]


def test_unknown_dims_of_infer_shapes(tmp_path: Path) -> None:
    model = model_of(tmp_path, ("x", "?,2,3", "f32"), ("any", "...", "f32"))
    shapes = model.infer_shapes({"x": (-1, None, 3), "any": (None, 4)})
    assert str(shapes["out_x"]) == "(?, 2, 3)"
    assert str(shapes["out_any"]) == "(?, 4)"
    assert model.infer_shapes({"any": None})["out_any"] is None
    assert model.infer_shapes({"x": np.array([5, 2, 3])})["out_x"] == (5, 2, 3)
    assert model.infer_shapes({"x": [deconv_ir.Interval(1, 4), 2, 3]})["out_x"] == (
        deconv_ir.Interval(1, 4), 2, 3,
    )  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [5, (1.5, 2, 3), "1,2,3", b"", (-2, 2, 3), (1, "2", 3), (1 << 63, 2, 3), ((1,), 2, 3),
     (deconv_ir.Interval(3, 2), 2, 3), (deconv_ir.Interval(-3, 2), 2, 3), object()],
)  # fmt: skip
def test_invalid_shapes_are_refused(wrong: Any, tmp_path: Path) -> None:
    model = model_of(tmp_path, ("x", "?,2,3", "f32"))
    for call in (model.infer_shapes, lambda s: model.bind(shapes=s).plan, model.require_memory):
        with pytest.raises(deconv_ir.InputError, match="input 'x': invalid shape"):
            call({"x": wrong})
    with pytest.raises(deconv_ir.InputError, match=r"takes shape \[\?,2,3\], found \[4,2,4\]"):
        model.infer_shapes({"x": (4, 2, 4)})
    with pytest.raises(deconv_ir.InputError, match="shapes must be a mapping"):
        model.infer_shapes((1, 2, 3))  # type: ignore[arg-type]


class Foreign:
    """An array of another library that only supports DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class ForeignBF16(Foreign):
    """A bf16 array like PyTorch's: ``__array__`` fails, and DLPack reports kDLBfloat (4).

    Source: dlpack.h, DLTensor: the type code is behind data, device and ndim.
    """

    def __array__(self, *arguments: Any, **more: Any) -> np.ndarray:
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack__(self) -> Any:
        capsule = self.array.view(np.uint16).__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        code = ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 8 + 8 + 4)
        assert code.value == 1  # kDLUInt
        code.value = 4
        return capsule


class Broken:
    """An array whose library raises an error."""

    def __array__(self, *arguments: Any, **more: Any) -> np.ndarray:
        raise RuntimeError("the tensor is\non another device")


def test_arrays_of_other_libraries(one: deconv_ir.Model, tmp_path: Path) -> None:
    x = np.arange(-3, 3, dtype=np.float32).reshape(3, 2)
    for given in (Foreign(x), [Foreign(x)], {"x": Foreign(x)}, Foreign(x[::-1])):
        assert one.run(given)["out_x"].sum() == 3
    with pytest.raises(
        deconv_ir.InputError, match=r"input 'x'.*Broken to an array: the tensor is\\non anoth"
    ):
        one.run({"x": Broken()})
    with pytest.raises(deconv_ir.InputError, match="takes f32, the array is bf16"):
        one.run(ForeignBF16(x.astype(BF16)))
    assert one.run(ForeignBF16(x.astype(BF16)), cast=True)["out_x"].sum() == 3


@pytest.mark.parametrize("transposed", [False, True])
def test_bf16_of_other_libraries(transposed: bool, tmp_path: Path) -> None:
    model = model_of(tmp_path, ("x", "?,?", "bf16"))
    x = np.array([[1.5, -2, 3], [0.0078125, np.inf, -0.0]], BF16)
    given = np.ascontiguousarray(x.T).T if transposed else x
    (found,) = model.run(ForeignBF16(given)).values()
    assert found.dtype == BF16
    assert found.astype(np.float64).tolist() == [[1.5, 0, 3], [0.0078125, np.inf, 0]]


def string_model(tmp_path: Path) -> Path:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "2")]))
    ir.result(
        ir.layer(
            "Reshape",
            [ir.parameter("words", "2", "string"), ir.const(np.array([2]))],
            {"special_zero": "false"},
            name="out",
            outputs=("2",),
            names="out",
        )
    )
    return ir.save(tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        ["Intel", "ü"],
        np.array(["Intel", "ü"], object),
        np.array([b"Intel", "ü".encode()]),
        np.array(["Intel", "ü"], ">U9"),
        np.array(["Intel", "ü"], np.dtypes.StringDType()),
    ],
    ids=["list", "objects", "bytes", "big-endian", "StringDType"],
)
def test_inputs_of_strings(given, tmp_path: Path) -> None:
    model = deconv_ir.load(string_model(tmp_path), warn=False)
    arrays = {"x": np.zeros(2, np.float32), "words": given}
    assert model.run(arrays)["out"].tolist() == ["Intel", "ü"]


@pytest.mark.parametrize(
    ("given", "found"), [(np.array([1, 2]), "i64"), (np.array(["a", None]), "NoneType")]
)
def test_inputs_that_are_no_strings(given, found: str, tmp_path: Path) -> None:
    model = deconv_ir.load(string_model(tmp_path), warn=False)
    message = f"input 'words' takes string, the array is {found}"
    with pytest.raises(deconv_ir.InputError, match=message):
        model.run({"x": np.zeros(2, np.float32), "words": given})
    with pytest.raises(deconv_ir.InputError, match="input 'x' takes f32, the array is"):
        model.run({"x": np.array(["a", "b"]), "words": ["a", "b"]})


def test_strings_in_npy_files(tmp_path: Path) -> None:
    """NumPy stores them as `<U`, without pickle; --expect compares them."""
    path, words, out = string_model(tmp_path), tmp_path / "words.npy", tmp_path / "out.npz"
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    np.save(words, np.array(["Intel", "ü"]))
    given = ["--input", f"x={tmp_path / 'x.npy'}", "--input", f"words={words}"]
    assert invoke(path, *given, "--output", str(out)).exit_code == 0
    assert np.load(out)["out"].tolist() == ["Intel", "ü"]
    assert invoke(path, *given, "--no-output", "--expect", str(out)).exit_code == 0
    np.save(words, np.array(["Intel", "u"]))
    done = invoke(path, *given, "--no-output", "--expect", str(out))
    assert done.exit_code == 1
    assert "[1]: 'u', the reference has 'ü'" in done.stdout + done.stderr
    assert invoke(path, "--random-inputs", "0", "--no-output").exit_code == 0


def test_random_arrays_of_small_types() -> None:
    """Strings are digits; the elements of u1 are 0 and 1."""
    from deconv_ir.arrays.fitting import random_array
    from deconv_ir.ir.dtypes import parse_element_type

    words = random_array((50,), parse_element_type("string"), 0, 0)
    assert {type(word) for word in words} == {str}
    assert set(words) <= set("0123456789")
    assert set(random_array((50,), parse_element_type("u1"), 0, 0).tolist()) == {0, 1}
    assert int(random_array((50,), parse_element_type("u2"), 0, 0).astype(int).max()) == 3


def test_names_of_inputs_come_before_those_of_layers(tmp_path: Path) -> None:
    ir = IR()
    for name, tensor in (("b", "a"), ("a", "b")):
        ir.layer("Parameter", attributes={"shape": "1", "element_type": "f32"}, name=name,
                 names=tensor)  # fmt: skip
    ir.result(ir.layer("Subtract", [(0, 0), (1, 0)], names="y"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    assert list(model.inputs) == ["a", "b"]
    given: Mapping[str, Any] = {"a": np.ones(1, np.float32), "b": np.zeros(1, np.float32)}
    assert model.run(given)["y"].tolist() == [1]
