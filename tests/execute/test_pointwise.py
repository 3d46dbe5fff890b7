"""Elementwise layers that are joined: the selection, the results, and the listing of the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR, Out

import deconv_ir
from deconv_ir.execute.listing import PlanRow, as_rows
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built here"
)


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def load(ir: IR, folder: Path) -> deconv_ir.Model:
    return deconv_ir.load(ir.save(folder), warn=False)


def rows_of(model: deconv_ir.Model, arrays: Any, **options: Any) -> dict[str, PlanRow]:
    return {row.layer: row for row in as_rows(model.bind(arrays, **options).plan)}


def residual() -> IR:
    """Compute (a * scale + shift) + b, then HSwish; a and b are large."""
    ir = IR()
    a, b = ir.parameter("a", "2,3,40,50"), ir.parameter("b", "2,3,40,50")
    scaled = ir.layer("Multiply", [a, ir.const(normal(1, 3, 1, 1))], name="scaled")
    shifted = ir.layer("Add", [ir.const(normal(3, 1, 1)), scaled], name="shifted")
    total = ir.layer("Add", [shifted, b], name="total")
    ir.result(ir.layer("HSwish", [total], name="act", names="y", version="opset4"))
    return ir


def test_a_chain_is_one_step(tmp_path: Path) -> None:
    model = load(residual(), tmp_path)
    a, b = normal(2, 3, 40, 50), normal(2, 3, 40, 50)[::-1].copy()
    (row,) = as_rows(model.bind([a, b]).plan)
    assert (row.layer, row.type) == ("act", "Multiply+Add+Add+HSwish")
    assert row.fused == ("scaled", "shifted", "total")
    t = a * normal(1, 3, 1, 1) + normal(3, 1, 1) + b
    expected = t * (np.clip(t + 3, 0, 6) / 6)
    kept = a.copy(), b.copy()
    np.testing.assert_array_equal(model.run([a, b])["y"], expected)
    np.testing.assert_array_equal((a, b), kept)


def test_a_profile_names_the_layers_that_are_joined(tmp_path: Path) -> None:
    model, profile = load(residual(), tmp_path), deconv_ir.Profile()
    model.run([normal(2, 3, 40, 50)] * 2, profile=profile)
    (row,) = profile.layers
    assert (row.layer, row.type) == ("act", "Multiply+Add+Add+HSwish")
    assert row.operations == 4 * 2 * 3 * 40 * 50


def test_joined_layers_are_not_counted_as_left_out(tmp_path: Path) -> None:
    plan = load(residual(), tmp_path).bind([normal(2, 3, 40, 50)] * 2).plan
    assert plan.dropped == 0


def test_a_tensor_that_is_wanted_is_computed(tmp_path: Path) -> None:
    model = load(residual(), tmp_path)
    arrays = [normal(2, 3, 40, 50)] * 2
    rows = rows_of(model, arrays, outputs=["act", "total"])
    assert set(rows) == {"total", "act"}
    assert rows["total"].fused == ("scaled", "shifted")
    found = model.run(arrays, outputs=["act", "total"])
    total = arrays[0] * normal(1, 3, 1, 1) + normal(3, 1, 1) + arrays[1]
    np.testing.assert_array_equal(found["total"], total)


def test_a_tensor_with_two_users_is_computed_once(tmp_path: Path) -> None:
    ir = IR()
    e = ir.layer("Exp", [ir.parameter("x", "4,5")], name="e")
    left = ir.layer("Sqrt", [e], name="left")
    right = ir.layer("Negative", [e], name="right")
    ir.result(ir.layer("Add", [left, right], name="sum", names="y"))
    model, x = load(ir, tmp_path), normal(4, 5)
    rows = rows_of(model, [x])
    assert set(rows) == {"e", "sum"}
    e64 = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(model.run([x])["y"], np.sqrt(e64) - e64, rtol=1e-5, atol=1e-6)


def test_what_is_small_is_not_computed_for_every_element(tmp_path: Path) -> None:
    """A gate of one number per channel, as in squeeze-and-excite."""
    ir = IR()
    x, pooled = ir.parameter("x", "1,3,40,50"), ir.parameter("pooled", "1,3,1,1")
    gate = ir.layer("Sigmoid", [pooled], name="gate")
    ir.result(ir.layer("Multiply", [x, gate], name="gated", names="y"))
    model, arrays = load(ir, tmp_path), [normal(1, 3, 40, 50), normal(1, 3, 1, 1)]
    assert set(rows_of(model, arrays)) == {"gate", "gated"}
    expected = arrays[0] / (1 + np.exp(-arrays[1].astype(np.float64)))
    np.testing.assert_allclose(model.run(arrays)["y"], expected, rtol=1e-5)


def test_joining_does_not_keep_more_tensors_alive(tmp_path: Path) -> None:
    """Two tensors die in a sum that is needed later: the sum is not joined to its consumer."""
    ir = IR()
    x = ir.parameter("x", "1,4,64,64")
    a = ir.layer("SoftMax", [x], {"axis": "1"}, name="a")
    b = ir.layer("SoftMax", [x], {"axis": "2"}, name="b")
    total = ir.layer("Add", [a, b], name="total")
    pooled = ir.layer("MaxPool", [x], {"strides": "1,1", "kernel": "3,3", "pads_begin": "1,1",
                                       "pads_end": "1,1"}, name="pooled")  # fmt: skip
    ir.result(ir.layer("Multiply", [total, pooled], name="product", names="y"))
    model, data = load(ir, tmp_path), normal(1, 4, 64, 64)
    rows = rows_of(model, [data])
    assert list(rows) == ["a", "b", "total", "pooled", "product"]
    assert rows["total"].overwrites == "a"
    assert model.bind([data]).plan.tensor_bytes == 2 * data.nbytes


def test_a_chain_from_one_tensor_is_joined_over_other_layers(tmp_path: Path) -> None:
    """The input stays alive instead of the output, which is as large."""
    ir = IR()
    x = ir.parameter("x", "1,4,64,64")
    a = ir.layer("SoftMax", [x], {"axis": "1"}, name="a")
    root = ir.layer("Sqrt", [a], name="root")
    b = ir.layer("SoftMax", [x], {"axis": "2"}, name="b")
    ir.result(ir.layer("Multiply", [root, b], name="product", names="y"))
    model, data = load(ir, tmp_path), normal(1, 4, 64, 64)
    rows = rows_of(model, [data])
    assert list(rows) == ["a", "b", "product"]
    assert rows["product"].overwrites == "a"
    assert model.bind([data]).plan.tensor_bytes == 2 * data.nbytes


def test_constants_and_small_tensors_do_not_hinder_joining(tmp_path: Path) -> None:
    """Of the inputs of the sum, only one is as large as the sum itself and not kept anyway."""
    ir = IR()
    x, gate = ir.parameter("x", "1,4,64,64"), ir.parameter("gate", "1,4,1,1")
    a = ir.layer("SoftMax", [x], {"axis": "1"}, name="a")
    gated = ir.layer("Multiply", [a, gate], name="gated")
    total = ir.layer("Add", [gated, ir.const(normal(1, 4, 64, 64))], name="total")
    b = ir.layer("SoftMax", [x], {"axis": "2"}, name="b")
    ir.result(ir.layer("Multiply", [total, b], name="product", names="y"))
    model = load(ir, tmp_path)
    assert list(rows_of(model, [normal(1, 4, 64, 64), normal(1, 4, 1, 1)])) == ["a", "b", "product"]


Chain = Callable[[IR, Out], Out]


def compare_and_select(ir: IR, x: Out) -> Out:
    mask = ir.layer("Greater", [x, ir.const(np.array(0.25, np.float32))], precision="BOOL")
    other = ir.layer("Multiply", [x, ir.const(np.array(-3, np.float32))])
    return ir.layer("Select", [mask, x, other])


def to_half_and_back(ir: IR, x: Out) -> Out:
    half = ir.layer("Convert", [x], {"destination_type": "f16"}, precision="FP16")
    return ir.layer("Convert", [half], {"destination_type": "f32"})


CHAINS: dict[str, tuple[Chain, Callable[[Any], Any]]] = {
    "comparison and choice": (compare_and_select, lambda x: np.where(x > 0.25, x, x * -3)),
    "rounding to f16": (to_half_and_back, lambda x: x.astype(np.float16).astype(np.float32)),
    "a square by itself": (
        lambda ir, x: ir.layer("Multiply", [ir.layer("Abs", [x])] * 2),
        lambda x: np.abs(x) * np.abs(x),
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_compute_what_their_layers_mean(name: str, tmp_path: Path) -> None:
    build, expected = CHAINS[name]
    ir = IR()
    ir.result(build(ir, ir.parameter("x", "3,700")))
    model, x = load(ir, tmp_path), normal(3, 700)
    assert len(model.bind([x]).plan.steps) == 1
    (found,) = model.run([x]).values()
    np.testing.assert_array_equal(found, expected(x))


def test_shapes_may_change_from_run_to_run(tmp_path: Path) -> None:
    ir = IR()
    x, y = ir.parameter("x", "?,?"), ir.parameter("y", "?,1")
    total = ir.layer("Add", [x, y])
    ir.result(ir.layer("ReLU", [total], names="y"))
    model = load(ir, tmp_path)
    for shapes in (((3, 4), (3, 1)), ((1, 900), (7, 1)), ((0, 4), (1, 1)), ((5, 1), (5, 1))):
        a, b = normal(*shapes[0]), normal(*shapes[1])
        np.testing.assert_array_equal(model.run([a, b])["y"], np.maximum(a + b, 0))


def test_a_slope_of_each_channel_joins_a_sum(tmp_path: Path) -> None:
    ir = IR()
    x, y = ir.parameter("x", "2,3,8,9"), ir.parameter("y", "2,3,8,9")
    slope = normal(3)
    ir.result(ir.layer("PReLU", [ir.layer("Add", [x, y]), ir.const(slope)], names="y"))
    model, a, b = load(ir, tmp_path), normal(2, 3, 8, 9), -normal(2, 3, 9, 8).reshape(2, 3, 8, 9)
    (row,) = as_rows(model.bind([a, b]).plan)
    assert row.type == "Add+PReLU"
    expected = np.where(a + b < 0, (a + b) * slope.reshape(1, 3, 1, 1), a + b)
    np.testing.assert_array_equal(model.run([a, b])["y"], expected)


def test_what_a_convolution_does_not_take_over_is_joined(tmp_path: Path) -> None:
    """The convolution adds the bias; slopes of channels and a sum behind it are joined."""
    ir = IR()
    x, skip = ir.parameter("x", "1,2,5,6"), ir.parameter("skip", "1,3,6,7")
    up = ir.layer("ConvolutionBackpropData", [x, ir.const(normal(2, 3, 2, 2))], name="up")
    biased = ir.layer("Add", [up, ir.const(normal(1, 3, 1, 1))], name="biased")
    curved = ir.layer("PReLU", [biased, ir.const(np.abs(normal(3)))], name="curved")
    ir.result(ir.layer("Add", [curved, skip], name="total", names="y"))
    model, data, other = load(ir, tmp_path), normal(1, 2, 5, 6), normal(1, 3, 6, 7)
    rows = rows_of(model, [data, other])
    assert rows["up"].fused == ("biased",)
    assert (rows["total"].type, rows["total"].fused) == ("PReLU+Add", ("curved",))
    assert rows["total"].overwrites == "biased"
    before = model.run([data, other], outputs=["biased"])["biased"]
    slopes = np.abs(normal(3)).reshape(1, 3, 1, 1)
    expected = np.where(before < 0, before * slopes, before) + other
    np.testing.assert_allclose(model.run([data, other])["y"], expected, rtol=1e-6)


def test_integers_and_f64_are_left_to_numpy(tmp_path: Path) -> None:
    for precision, dtype in (("i32", np.int32), ("f64", np.float64)):
        ir = IR()
        x = ir.parameter("x", "4,5", precision)
        ir.result(ir.layer("Abs", [ir.layer("Negative", [x])], names="y"))
        model, data = load(ir, tmp_path), np.arange(-10, 10).reshape(4, 5).astype(dtype)
        assert [row.type for row in as_rows(model.bind([data]).plan)] == ["Negative", "Abs"]
        np.testing.assert_array_equal(model.run([data])["y"], np.abs(data))
