"""Attention written as products, a scale, a mask and SoftMax runs as one step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR
from tiling.exactness import in_tiles

import deconv_ir
from deconv_ir.execute.listing import PlanRow, as_rows
from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels import set_threads
from deconv_ir.kernels.runtime.extension import compiled_module

compiled = pytest.mark.skipif(compiled_module() is None, reason="the extension was not built here")
LAST = "mixed"


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def text(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape))


class Case:
    """An attention over stacks of matrices, written layer by layer."""

    def __init__(
        self,
        stack: tuple[int, ...] = (2, 3),
        queries: int = 50,
        keys: int = 40,
        *,
        scale: str | None = None,
        mask: tuple[int, ...] | None = None,
        turned: tuple[bool, bool, bool] = (False, False, False),
        kind: str = "f32",
        axis: int = -1,
        mask_first: bool = False,
        dynamic: bool = False,
    ) -> None:
        self.scale, self.axis = scale, axis
        shapes = [(*stack, queries, 32), (*stack, keys, 32), (*stack, keys, 20)]
        self.arrays = [normal(*shape) for shape in shapes]
        self.mask = None if mask is None else normal(*mask)
        dtype = np.float16 if kind == "f16" else np.float32
        given = [
            np.ascontiguousarray(x.swapaxes(-1, -2)) if turn else x
            for x, turn in zip(self.arrays, turned, strict=True)
        ]
        given += [] if self.mask is None else [self.mask]
        self.given = [x.astype(dtype) for x in given]
        self.ir = ir = IR()
        names = ("query", "key", "value", "mask")
        ports = [
            ir.parameter(name, ",".join("?" * x.ndim) if dynamic else text(x.shape), kind)
            for name, x in zip(names, given, strict=False)
        ]
        flags = {"transpose_a": str(turned[0]).lower(), "transpose_b": str(not turned[1]).lower()}
        at = ir.layer("MatMul", ports[:2], flags, name="scores")
        if scale is not None:
            factor = ir.const(np.full((1,) * len(stack), 0.25, dtype))
            pair = [factor, at] if scale == "Multiply, first" else [at, factor]
            at = ir.layer(scale.split(",")[0], pair, name="scaled")
        if mask is not None:
            at = ir.layer("Add", [ports[3], at] if mask_first else [at, ports[3]], name="masked")
        at = ir.layer("SoftMax", [at], {"axis": str(axis)}, name="weights", version="opset8")
        flags = {"transpose_a": "false", "transpose_b": str(turned[2]).lower()}
        ir.result(ir.layer("MatMul", [at, ports[2]], flags, name=LAST, names=LAST))

    def load(self, folder: Path) -> deconv_ir.Model:
        return deconv_ir.load(self.ir.save(folder), warn=False)

    def expected(self) -> Any:
        """Compute the attention by its formula in f64."""
        query, key, value = (x.astype(np.float64) for x in self.arrays)
        scores = query @ key.swapaxes(-1, -2)
        if self.scale is not None:
            scores = scores / 0.25 if self.scale == "Divide" else scores * 0.25
        if self.mask is not None:
            scores = scores + self.mask
        weights = np.exp(scores - scores.max(self.axis, keepdims=True))
        return weights / weights.sum(self.axis, keepdims=True) @ value


def rows_of(model: deconv_ir.Model, arrays: Any, **options: Any) -> dict[str, PlanRow]:
    return {row.layer: row for row in as_rows(model.bind(arrays, **options).plan)}


JOINED: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": "Multiply"},
    "number first": {"scale": "Multiply, first"},
    "division": {"scale": "Divide"},
    "mask": {"mask": (2, 3, 50, 40)},
    "mask of heads": {"mask": (3, 1, 40), "scale": "Divide", "mask_first": True},
    "mask of more axes": {"mask": (2, 1, 1, 50, 40), "stack": (3,)},
    "mask of a larger stack": {"mask": (4, 1, 40), "stack": (1,)},
    "one matrix": {"stack": (), "axis": 1, "mask": (50, 40)},
    "other layouts": {"turned": (True, True, True), "scale": "Multiply"},
    "other values": {"turned": (False, False, True)},
    "few queries": {"queries": 3, "mask": (40,)},
}


@compiled
@pytest.mark.parametrize("name", JOINED)
def test_an_attention_is_one_step(name: str, tmp_path: Path) -> None:
    case = Case(**JOINED[name])
    model = case.load(tmp_path)
    rows = rows_of(model, case.given)
    assert list(rows) == [LAST]
    between = ("scaled",) * (case.scale is not None) + ("masked",) * (case.mask is not None)
    assert rows[LAST].fused == ("scores", *between, "weights")
    found = model.run(case.given)[LAST]
    np.testing.assert_allclose(found, case.expected(), rtol=1e-4, atol=1e-5)
    # Layers are run one by one if the weights are needed elsewhere.
    apart = model.run(case.given, outputs=["weights", LAST])[LAST]
    np.testing.assert_allclose(found, apart, rtol=1e-4, atol=1e-5, strict=True)


APART: dict[str, dict[str, Any]] = {
    "f16": {"kind": "f16"},
    "another axis": {"axis": -2},
}


@pytest.mark.parametrize("name", APART)
def test_what_is_no_attention_stays_apart(name: str, tmp_path: Path) -> None:
    case = Case(**APART[name])
    model = case.load(tmp_path)
    assert {"scores", "weights", LAST} <= set(rows_of(model, case.given))
    found = model.run(case.given)[LAST]
    np.testing.assert_allclose(found, case.expected(), rtol=1e-2, atol=5e-3)


@pytest.mark.parametrize("wanted", ["scores", "scaled", "masked", "weights"])
def test_a_tensor_that_is_wanted_is_computed(wanted: str, tmp_path: Path) -> None:
    case = Case(scale="Multiply", mask=(50, 40))
    model = case.load(tmp_path)
    assert wanted in rows_of(model, case.given, outputs=[wanted, LAST])
    found = model.run(case.given, outputs=[wanted, LAST])[LAST]
    np.testing.assert_allclose(found, case.expected(), rtol=1e-4, atol=1e-5)


@compiled
def test_factors_that_are_no_numbers_to_move_stay_apart(tmp_path: Path) -> None:
    ir = IR()
    query, key = ir.parameter("query", "2,50,32"), ir.parameter("key", "2,32,40")
    at = ir.layer("MatMul", [query, key], name="scores")
    at = ir.layer("Multiply", [at, ir.const(np.zeros((1, 1), np.float32))], name="scaled")
    at = ir.layer("SoftMax", [at], {"axis": "2"}, name="weights")
    ir.result(ir.layer("MatMul", [at, ir.parameter("value", "2,40,20")], name=LAST, names=LAST))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    given = [normal(2, 50, 32), normal(2, 32, 40), normal(2, 40, 20)]
    assert "scores" in rows_of(model, given)
    found = model.run(given)[LAST]
    mean = np.broadcast_to(given[2].mean(1, keepdims=True), found.shape)
    np.testing.assert_allclose(found, mean, rtol=1e-4, atol=1e-5)


@compiled
@pytest.mark.parametrize("turned", [False, True])
def test_a_tensor_that_attends_to_itself(turned: bool, tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "2,60,32")
    at = ir.layer("MatMul", [x, x], {"transpose_b": "true"}, name="scores")
    at = ir.layer("SoftMax", [at], {"axis": "2"}, name="weights")
    # If the weights are also the values, the layers are not an attention.
    pair = [at, at] if turned else [at, x]
    ir.result(ir.layer("MatMul", pair, name=LAST, names=LAST))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    data = normal(2, 60, 32)
    assert ("scores" in rows_of(model, [data])) == turned
    scores = data.astype(np.float64) @ data.swapaxes(1, 2)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found = model.run([data])[LAST]
    np.testing.assert_allclose(found, weights @ (weights if turned else data), atol=1e-5)


@compiled
def test_bits_are_those_of_any_number_of_threads_and_of_tiles(tmp_path: Path) -> None:
    case = Case(scale="Divide", mask=(3, 50, 40))
    model = case.load(tmp_path)
    arrays = dict(zip(("query", "key", "value", "mask"), case.given, strict=True))
    found = [in_tiles(model, arrays, tile) for tile in ((1, 3, 50, 20), (1, 2, 50, 7))]
    for threads in (1, 2, 5):
        set_threads(threads)
        try:
            found.append(model.run(case.given)[LAST])
        finally:
            set_threads(None)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@compiled
def test_later_runs_may_have_other_shapes(tmp_path: Path) -> None:
    first = Case(stack=(1,), mask=(1, 50, 40), dynamic=True)
    path = first.ir.save(tmp_path)
    model = deconv_ir.load(path, warn=False)
    model.run(first.given)
    for mask, keys in (((1, 1, 40), 40), ((3, 50, 1), 40), ((1, 1, 1), 5)):
        case = Case(stack=(3,), mask=mask, keys=keys)
        found = model.run(case.given)[LAST]
        np.testing.assert_allclose(found, case.expected(), rtol=1e-4, atol=1e-5)


@compiled
def test_a_chain_of_many_additions_is_read_once(tmp_path: Path) -> None:
    ir = IR()
    at = ir.layer("MatMul", [ir.parameter("a", "9,8"), ir.parameter("b", "8,9")], name="scores")
    for i in range(64):
        at = ir.layer("Add", [at, at], name=f"add{i}")
    at = ir.layer("SoftMax", [at], {"axis": "1"}, name="weights")
    ir.result(ir.layer("MatMul", [at, ir.parameter("c", "9,5")], name=LAST))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    given = [normal(9, 8), normal(8, 9), normal(9, 5)]
    assert "weights" in rows_of(model, given)


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    total: Array = powers / powers.sum(-1, keepdims=True)
    return total


@pytest.mark.parametrize(
    ("kind", "masks", "scales"),
    [
        ("plain", None, None),
        ("causal", None, None),
        # A mask of one zero is none; one of a number that is not finite decides the result.
        ("absent", [[0.0], [np.nan], [0.0]], None),
        ("mask", ["random", "random"], [0.25, 0.125]),
        ("boolean", ["boolean", "boolean"], None),
    ],
)
def test_a_bound_attention_reads_mask_and_scale_in_each_run(
    kind: str, masks: list[Any] | None, scales: list[float] | None, tmp_path: Path
) -> None:
    """OpenVINO ScaledDotProductAttention-13, 'Detailed description', in float64."""
    ir, names = IR(), ["query", "key", "value"]
    inputs = [ir.layer("Abs", [ir.parameter(name, "2,33,32")]) for name in names]
    if masks is not None:
        shape = "1" if kind == "absent" else "33,33"
        inputs.append(ir.parameter("mask", shape, "boolean" if kind == "boolean" else "f32"))
    if scales is not None:
        inputs.append(ir.parameter("scale", ""))
    attributes = {"causal": "true" if kind == "causal" else "false"}
    out = ir.layer("ScaledDotProductAttention", inputs, attributes, version="opset13")
    ir.result(ir.layer("Abs", [out]))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    rng = np.random.default_rng(3)
    for turn in range(3 if masks is None else len(masks)):
        given = [rng.standard_normal((2, 33, 32), np.float32) for _ in names]
        query, key, value = (np.abs(x).astype(np.float64) for x in given)
        scale = 1 / np.sqrt(32) if scales is None else scales[turn]
        scores = scale * query @ key.swapaxes(1, 2)
        if kind == "causal":
            scores = np.where(np.tri(33) > 0, scores, -np.inf)
        if masks is not None and kind == "boolean":
            given.append(rng.random((33, 33)) < 0.8)
            scores = np.where(given[-1], scores, -np.inf)
        elif masks is not None:
            drawn = rng.standard_normal((33, 33)) if kind == "mask" else masks[turn]
            given.append(np.asarray(drawn, np.float32))
            scores = scores + given[-1]
        if scales is not None:
            given.append(np.asarray(scale, np.float32))
        (found,) = model.run(given).values()
        expected = np.abs(softmax(scores) @ value)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
