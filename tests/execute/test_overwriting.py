"""Arrays are overwritten after their last use, and never before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from plan_rows import normal, rows_of
from support import IR

import deconv_ir
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.kernels import empty
from deconv_ir.ops import base
from deconv_ir.ops.plugins import register

CHAINS: dict[str, tuple[str, dict[str, str], object]] = {
    "Add": ("Add", {}, np.add),
    "Subtract": ("Subtract", {}, np.subtract),
    "Multiply": ("Multiply", {}, np.multiply),
    "Divide": ("Divide", {}, np.divide),
    "Maximum": ("Maximum", {}, np.maximum),
    "SquaredDifference": ("SquaredDifference", {}, lambda a, b: (a - b) * (a - b)),
    "ReLU": ("ReLU", {}, lambda a: np.maximum(a, 0)),
    "Sigmoid": ("Sigmoid", {}, lambda a: 1 / (1 + np.exp(-a))),
    "Tanh": ("Tanh", {}, np.tanh),
    "Clamp": ("Clamp", {"min": "-0.5", "max": "0.25"}, lambda a: np.clip(a, -0.5, 0.25)),
    "Elu": ("Elu", {"alpha": "0.5"}, lambda a: np.where(a < 0, 0.5 * np.expm1(a), a)),
    "Swish": ("Swish", {}, lambda a: a / (1 + np.exp(-a))),
    "HSwish": ("HSwish", {}, lambda a: a * np.clip(a + 3, 0, 6) / 6),
    "MVN": (
        "MVN",
        {"across_channels": "false", "normalize_variance": "false", "eps": "1"},
        lambda a: a - a.mean(axis=2, keepdims=True),
    ),
}
VERSIONS = {"Swish": "opset4", "HSwish": "opset4", "MVN": "opset2"}


@pytest.mark.parametrize("name", CHAINS)
def test_an_input_that_dies_is_overwritten(name: str, tmp_path: Path) -> None:
    """The caller's array, which outlives the run, is not overwritten."""
    kind, attributes, function = CHAINS[name]
    version = VERSIONS.get(kind, "opset1")
    ir = IR()
    x, other = ir.parameter("x", "2,3,4"), ir.parameter("other", "3,1")
    own = ir.layer("Sinh", [x], name="own")
    inputs = [own, other] if kind in list(CHAINS)[:6] else [own]
    ir.result(ir.layer(kind, inputs, attributes, name="op", names="y", version=version))
    model = deconv_ir.load(ir.save(tmp_path))
    given = [normal(2, 3, 4), normal(3, 1)]
    copies = [a.copy() for a in given]
    rows = rows_of(model, given)
    assert rows["own"].overwrites is None
    assert rows["op"].overwrites == "own"
    arrays = [np.sinh(given[0].astype(np.float64)), given[1]][: len(inputs)]
    np.testing.assert_allclose(model.run(given)["y"], function(*arrays), rtol=2e-6, atol=1e-6)  # type: ignore[operator]
    for array, copy in zip(given, copies, strict=True):
        assert np.array_equal(array, copy)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        pytest.param(lambda ir, e: ir.layer("Add", [e, e]), lambda e: e + e, id="both inputs"),
        pytest.param(
            lambda ir, e: ir.layer("Add", [ir.layer("ReLU", [e]), e]),
            lambda e: np.maximum(e, 0) + e,
            id="used later",
        ),
        pytest.param(
            lambda ir, e: ir.layer(
                "Add",
                [ir.layer("Tanh", [e]), ir.layer("Transpose", [e, ir.const(np.array([1, 0]))])],
            ),
            lambda e: np.tanh(e) + e.T,
            id="a view used later",
        ),
        pytest.param(
            lambda ir, e: ir.layer(
                "Subtract", [e, ir.layer("Transpose", [e, ir.const(np.array([1, 0]))])]
            ),
            lambda e: e - e.T,
            id="both are the same memory",
        ),
        pytest.param(
            lambda ir, e: ir.layer(
                "Tanh",
                [
                    ir.layer(
                        "Reshape",
                        [
                            ir.layer("Transpose", [e, ir.const(np.array([1, 0]))]),
                            ir.const(np.array([4, 4])),
                        ],
                        {"special_zero": "false"},
                    )
                ],
            ),
            lambda e: np.tanh(e.T),
            id="a view of a view",
        ),
    ],
)  # fmt: skip
def test_memory_that_is_shared_is_not_overwritten(build, expected, tmp_path: Path) -> None:
    """Results are right whatever the plan proposes; a careless plan fails each of these cases."""
    ir = IR()
    e = ir.layer("Sinh", [ir.parameter("x", "4,4")], name="e")
    ir.result(build(ir, e))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    x = normal(4, 4)
    (found,) = model.run([x]).values()
    np.testing.assert_allclose(found, expected(np.sinh(x.astype(np.float64))), rtol=1e-5)


def test_outputs_are_arrays_of_their_own(tmp_path: Path) -> None:
    """Two outputs are views of one array, and a third must not be overwritten."""
    ir = IR()
    e = ir.layer("Exp", [ir.parameter("x", "4,4")], name="e")
    halves = ir.layer(
        "Split", [e, ir.const(np.array(0))], {"num_splits": "2"}, outputs=("", ""), name="s"
    )
    ir.result(e)
    ir.result(halves)
    ir.result(ir.layer("Sqrt", [e], name="r"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    x = normal(4, 4)
    results = model.run([x])
    expected = np.exp(x)
    assert len(results) == 3
    for name, want in zip(results, (expected, expected[:2], np.sqrt(expected)), strict=True):
        np.testing.assert_allclose(results[name], want, rtol=1e-6)
        results[name][...] = -1
    np.testing.assert_allclose(next(iter(model.run([x]).values())), expected, rtol=1e-6)


class _Kept(Operation):
    """Return an array that the operation keeps, or refers to, as an array of its own."""

    kept: ClassVar[list[np.ndarray]] = []
    given: ClassVar[Callable[[np.ndarray], np.ndarray]]

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return (inputs[0],)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (type(self).given(inputs[0]),)


def keep(array: np.ndarray) -> np.ndarray:
    _Kept.kept.append(array)
    return array


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


GIVEN: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the array": lambda x: keep(np.cosh(x)),
    "a part of it": lambda x: keep(np.cosh(np.concatenate([x, x])))[:4],
    "all of it in another shape": lambda x: keep(np.cosh(x).reshape(16)).reshape(4, 4),
    "a part of pooled memory": lambda x: keep(pooled(np.cosh(x)))[:4],
    "memory that is not NumPy's": lambda x: np.frombuffer(keep(np.cosh(x)), np.float32).reshape(
        4, 4
    ),
    "an array that must not be written": lambda x: frozen(np.cosh(x)),
    "one element": lambda x: np.broadcast_to(np.cosh(x[:1, :1]), (4, 4)),
}


def pooled(array: np.ndarray) -> np.ndarray:
    out = empty((1 << 16, 4), np.dtype(np.float32))
    out[:4] = array
    return out


@pytest.mark.parametrize("name", GIVEN)
def test_an_array_that_something_holds_is_not_overwritten(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan, which knows nothing of it, proposes to overwrite the array."""
    monkeypatch.setitem(base.REGISTRY, "Kept", {})
    register("Kept", "tests", inputs=("data",))(_Kept)
    monkeypatch.setattr(_Kept, "given", staticmethod(GIVEN[name]), raising=False)
    monkeypatch.setattr(_Kept, "kept", [])
    ir = IR()
    x = ir.parameter("x", "4,4")
    kept = ir.layer("Kept", [x], name="kept", version="tests")
    ir.result(ir.layer("Sinh", [kept], name="op", names="y"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    given = normal(4, 4)
    assert rows_of(model, [given])["op"].overwrites == "kept"
    for _ in range(2):
        found = model.run([given])["y"]
        wide = np.cosh(given.astype(np.float64))
        wide = np.full((4, 4), wide[0, 0]) if name == "one element" else wide
        np.testing.assert_allclose(found, np.sinh(wide), rtol=1e-5)
        for array in _Kept.kept:
            np.testing.assert_allclose(array.ravel()[:16], np.cosh(given).ravel(), rtol=1e-5)


@pytest.mark.parametrize("make", [np.cosh, lambda x: pooled(np.cosh(x))[:4]], ids=["own", "pooled"])
def test_an_array_that_nothing_holds_is_overwritten(
    make: Callable[[np.ndarray], np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(base.REGISTRY, "Kept", {})
    register("Kept", "tests", inputs=("data",))(_Kept)
    made: list[int] = []

    def note(array: np.ndarray) -> np.ndarray:
        result = make(array)
        made.append(result.ctypes.data)
        return result

    monkeypatch.setattr(_Kept, "given", staticmethod(note), raising=False)
    ir = IR()
    kept = ir.layer("Kept", [ir.parameter("x", "4,4")], version="tests")
    ir.result(ir.layer("Sinh", [kept], names="y"))
    found = deconv_ir.load(ir.save(tmp_path), warn=False).run([normal(4, 4)])["y"]
    assert found.ctypes.data == made[-1]
