"""Arrays are overwritten after their last use, and never before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plan_rows import normal, rows_of
from support import IR

import deconv_ir
from deconv_ir.execute import request
from deconv_ir.kernels import empty

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


def test_an_array_that_something_holds_is_not_overwritten() -> None:
    array = np.zeros(3)
    values: list[object] = [np.zeros(3), array, np.zeros((2, 3)).reshape(6), array[:2], None]
    assert request.is_alone(values, 0)
    assert not request.is_alone(values, 1)
    assert request.is_alone(values, 2)
    assert not request.is_alone(values, 3)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    values[4] = frozen
    del frozen
    assert not request.is_alone(values, 4)
    values[0] = empty((1 << 18,), np.dtype(np.uint8))[:8].view(np.float32)
    assert request.is_alone(values, 0)
    other = values[0][:1]  # type: ignore[index]
    assert not request.is_alone(values, 0)
    del other
    assert request.is_alone(values, 0)
