"""accuracy="float64": every layer in f64, with constants as stored and inputs as given.

The oracles are NumPy in f64 and, for the example of each operation, the run in its own types.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from support import IR, Out, invoke

import deconv_ir
from deconv_ir import State
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Operation
from deconv_ir.ops import all_operations
from deconv_ir.ops.examples import OperationExample, parse_example

RNG = np.random.default_rng(11)
X = RNG.standard_normal((4, 8)).astype(np.float32)
W = RNG.standard_normal((8, 3)).astype(np.float32)
F32_BY_DEFINITION = {"NMSRotated", "NonMaxSuppression", "PriorBox", "PriorBoxClustered"}
EXAMPLES = [
    pytest.param(operation, example, id=f"{operation.type}-{operation.versions[0]}: {text}")
    for operation in all_operations()
    if operation.versions and operation.versions[0].startswith("opset")
    for text in operation.examples
    for example in [parse_example(text)]
    if any(t.element_type.is_float for t in (*example.inputs, *example.outputs))
    and not any(t.element_type.bits < 8 for t in example.inputs)
]


def network(
    operation: type[Operation], example: OperationExample, folder: Path
) -> tuple[Path, list[Array]]:
    """Save an example as a network; inputs without elements are those of the model."""
    ir = IR()
    arrays = [tensor.array(seed) for seed, tensor in enumerate(example.inputs)]
    given = []
    inputs: list[Out] = []
    for number, (tensor, array) in enumerate(zip(example.inputs, arrays, strict=True)):
        if tensor.elements is not None:
            inputs.append(ir.const(array))
            continue
        shape = ",".join(map(str, array.shape))
        inputs.append(ir.parameter(f"x{number}", shape, str(tensor.element_type)))
        given.append(array)
    layer, first = ir.layer(
        operation.type,
        inputs,
        example.attributes,
        version=operation.versions[0],
        outputs=[""] * len(example.outputs),
        precision=[tensor.element_type.ir_name for tensor in example.outputs],
    )
    for port in range(len(example.outputs)):
        ir.result((layer, first + port))
    return ir.save(folder), given


@pytest.mark.parametrize(("operation", "example"), EXAMPLES)
def test_every_operation(
    operation: type[Operation], example: OperationExample, tmp_path: Path
) -> None:
    """It computes in f64 what it computes in f32, or in f16, up to the rounding of these."""
    path, given = network(operation, example, tmp_path)
    own = deconv_ir.load(path, warn=False).run(given).values()
    wide = deconv_ir.load(path, warn=False, accuracy="float64").run(given).values()
    rounded = deconv_ir.load(path, warn=False, accuracy="float64-rounded").run(given).values()
    for a, b, c in zip(own, wide, rounded, strict=True):
        assert a.dtype == c.dtype
        if a.dtype.kind not in "fiub":
            continue
        if a.dtype.kind == "f" and operation.type not in F32_BY_DEFINITION | {"RandomUniform"}:
            assert b.dtype == np.float64
        close = 2e-3 if a.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), close, close)


def product(folder: Path, version: int = 11) -> Path:
    ir = IR(version)
    scaled = ir.layer("MatMul", [ir.parameter("x", "4,8"), ir.const(W)])
    half = ir.layer("Convert", [scaled], {"destination_type": "f16"}, precision="FP16")
    back = ir.layer("Convert", [half], {"destination_type": "f32"})
    ir.result(ir.layer("Exp", [back], names="y"))
    return ir.save(folder)


EXACT = np.exp(X.astype(np.float64) @ W.astype(np.float64))


@pytest.mark.parametrize("semantics", ["spec", "openvino"])
def test_sums_and_conversions_within_the_network(semantics: str, tmp_path: Path) -> None:
    """Conversions to f16 round nothing, in any copy of the model, and files stay as they are."""
    path = product(tmp_path)
    model = deconv_ir.load(path, semantics=semantics, warn=False, accuracy="float64")
    for copied in (model, pickle.loads(pickle.dumps(model)), model.reshape({"x": (4, 8)})):
        (found,) = copied.run(X).values()
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, EXACT, rtol=1e-14)
    deconv_ir.save(model, tmp_path / "saved.xml")
    assert deconv_ir.load(tmp_path / "saved.xml", warn=False).run(X)["y"].dtype == np.float32
    rounded = deconv_ir.load(path, warn=False, accuracy="float64-rounded").run(X)["y"]
    np.testing.assert_array_equal(rounded, EXACT.astype(np.float32))


def test_outputs_that_are_inputs_or_constants(tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.parameter("x", "4,8", "f16"))
    ir.result(ir.const(W, "w"))
    path = ir.save(tmp_path)
    for accuracy, types in (("float64", "dd"), ("float64-rounded", "ef")):
        found = list(deconv_ir.load(path, accuracy=accuracy).run(X.astype(np.float16)).values())
        assert "".join(array.dtype.char for array in found) == types
        np.testing.assert_array_equal(found[0], X.astype(np.float16))
        np.testing.assert_array_equal(found[1], W)


def test_variables_are_kept_in_f64(tmp_path: Path) -> None:
    """A state adds 0.1 in each run: in f32, and in f64 from the f32 constant."""
    ir = IR()
    tenth = np.float32([0.1])
    attributes = {"variable_id": "sum", "variable_type": "f32", "variable_shape": "1"}
    before = ir.layer(
        "ReadValue", [ir.const(np.float32([0]))], attributes, version="opset6", outputs=["1"]
    )
    after = ir.layer("Add", [before, ir.const(tenth)], outputs=["1"], names="y")
    ir.layer("Assign", [after], {"variable_id": "sum"}, version="opset6", outputs=["1"])
    ir.result(after)
    model = deconv_ir.load(ir.save(tmp_path), warn=False, accuracy="float64")
    state = State()
    for _ in range(10):
        (found,) = model.run([], state=state).values()
    np.testing.assert_allclose(found, 10 * tenth.astype(np.float64), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_conv_transpose(dtype: str) -> None:
    x = RNG.standard_normal((1, 5, 9)).astype(dtype)
    w, bias = RNG.standard_normal((5, 4, 3)).astype(dtype), np.ones(4, dtype)
    exact = np.ones((1, 4, 11))
    for tap in range(3):
        exact[..., tap : tap + 9] += np.einsum(
            "nix,io->nox", x.astype(np.float64), w[..., tap].astype(np.float64)
        )
    found = deconv_ir.conv_transpose(x, w, bias, accuracy="float64")
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-14)
    rounded = deconv_ir.conv_transpose(x, w, bias, accuracy="float64-rounded")
    assert rounded.dtype == dtype
    np.testing.assert_array_equal(rounded, found.astype(dtype))


def test_deconv_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = product(tmp_path)
    np.save("x.npy", X)
    given = (str(path), "--input", "x.npy", "--output", "y.npy", "--force")
    for options, dtype in (((), np.float64), (("--round",), np.float32)):
        done = invoke(*given, "--accuracy", "float64", *options)
        assert done.exit_code == 0, done.output
        assert np.load("y.npy").dtype == dtype
        np.testing.assert_array_equal(np.load("y.npy"), EXACT.astype(dtype))
    done = invoke(*given, "--round")
    assert (done.exit_code, "--round needs --accuracy float64" in done.output) == (2, True)
