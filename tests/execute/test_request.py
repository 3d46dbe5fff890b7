"""The arena of a plan: live tensors do not overlap in it, and results do not lie in it."""

from __future__ import annotations

import gc
import weakref
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plan_rows import normal
from support import IR, Out

import deconv_ir
from deconv_ir.execute import request
from deconv_ir.execute.places import ALIGNMENT, SharedPlace, Union, arrange
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.kernels.runtime.idle import Idle
from deconv_ir.ops import base
from deconv_ir.ops.plugins import register


@pytest.mark.parametrize("seed", range(20))
def test_tensors_that_are_alive_together_are_apart(seed: int) -> None:
    """Lifetimes and sizes are random, for any limit."""
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(2, 30))
    groups = []
    for begin in rng.integers(0, steps, rng.integers(1, 40)).tolist():
        size = int(rng.choice([0, 1, 63, 64, 100, 1000, 65536]))
        group = SharedPlace(begin, size, takes_out=bool(rng.random() < 0.8))
        group.end = int(rng.integers(begin, steps + 1))
        groups.append(group)
    alive = [
        sum(g.bytes for g in groups if g.begin <= step <= min(g.end, steps - 1))
        for step in range(steps)
    ]
    taken = rng.integers(0, 1000, steps).tolist()
    limit = int(max(alive) * rng.choice([0.0, 1.0, 1.2, 9.0]))
    arena, live = arrange(groups, taken, limit)
    assert not arena or max(map(sum, zip(live, taken, strict=True))) <= limit
    inside = [g for g in groups if g.offset is not None]
    for group in inside:
        assert group.takes_out
        assert group.end < steps
        assert group.offset is not None
        assert group.offset % ALIGNMENT == 0
        assert group.offset + group.bytes <= arena
    for a, b in combinations(inside, 2):
        if a.begin <= b.end and b.begin <= a.end:
            assert a.offset is not None
            assert b.offset is not None
            assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
    for step in range(steps):
        outside = [g for g in groups if g.offset is None and g.begin <= step <= g.end]
        assert live[step] == arena + sum(g.bytes for g in outside)


@pytest.mark.parametrize("seed", range(20))
def test_parts_lie_in_the_whole_or_have_places_of_their_own(seed: int) -> None:
    """The lifetimes of a whole's parts end where the whole begins; wholes may be parts."""
    rng = np.random.default_rng(seed)
    steps = 12
    groups: list[SharedPlace] = []
    unions: list[Union] = []
    for step in sorted(rng.integers(2, steps - 1, 3).tolist()):
        parts = [
            SharedPlace(int(rng.integers(0, step)), 64 * int(rng.integers(1, 9))) for _ in range(2)
        ]
        whole = SharedPlace(step, sum(part.bytes for part in parts), takes_out=True)
        whole.end = int(rng.integers(step, steps))
        for part in parts:
            part.takes_out, part.end = True, step
        distances = (0, parts[0].bytes)
        unions.append(Union([(whole, 0), *zip(parts, distances, strict=True)]))
        groups += [whole, *parts]
    groups += [SharedPlace(step, 1000, takes_out=True) for step in range(steps)]
    limit = int(rng.choice([0, 4000, 1 << 20]))
    arena, live = arrange(groups, [0] * steps, limit, unions)
    assert not arena or max(live) <= limit
    joined = [union for union in unions if union.group.offset is not None]
    assert len(joined) == len(unions) or limit < 1 << 20
    for union in joined:
        (whole, _), *parts_of = union.members
        for part, distance in parts_of:
            assert (whole.offset or 0) + distance == part.offset
    together = {frozenset((u.members[0][0], part)) for u in joined for part, _ in u.members[1:]}
    for a, b in combinations(groups, 2):
        alive = a.begin <= b.end and b.begin <= a.end
        if alive and None not in (a.offset, b.offset) and frozenset((a, b)) not in together:
            assert a.offset is not None
            assert b.offset is not None
            assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset


def dense_network(ir: IR, x: Array, rng: np.random.Generator) -> list[Array]:
    """Build layers on random earlier tensors, many of them Concat; return the outputs."""
    tensors: list[tuple[Out, Array]] = [(ir.parameter("x", "1,16,16"), x.astype(np.float64))]
    wanted = []
    for _ in range(14):
        kind = str(
            rng.choice(["Sinh", "Relu", "Concat", "Concat", "Transpose", "Squeeze", "Split"])
        )
        given = [tensors[-1 - int(i)] for i in rng.integers(0, min(4, len(tensors)), 3)]
        out, value = given[0]
        if kind == "Concat":
            out = ir.layer("Concat", [o for o, _ in given], {"axis": "1"})
            value = np.concatenate([v for _, v in given], 1)
        elif kind == "Squeeze":
            first = ir.const(np.array([0]))
            out = ir.layer("Squeeze", [ir.layer("Unsqueeze", [out, first]), first])
        elif kind == "Split":
            lengths = ir.const(np.array([16, -1]))
            out = ir.layer("VariadicSplit", [out, ir.const(np.array(1)), lengths], outputs=["", ""])
            value = value[:, :16]
        elif kind == "Transpose" and value.shape == x.shape:
            out = ir.layer("Transpose", [out, ir.const(np.array([0, 2, 1]))])
            value = value.swapaxes(1, 2)
        else:
            kind = "Relu" if kind == "Relu" else "Sinh"
            out = ir.layer(kind, [out])
            value = np.sinh(value) if kind == "Sinh" else np.maximum(value, 0)
        tensors.append((out, value))
        if rng.random() < 0.2:
            wanted.append(value)
            ir.result(out)
    wanted.append(np.sinh(value))
    ir.result(ir.layer("Sinh", [out]))
    return wanted


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_a_concat_that_are_used_elsewhere(seed: int, tmp_path: Path) -> None:
    """Parts may be wanted, used twice or later, or overwritten, and memory may be short."""
    ir, x = IR(), normal(1, 16, 16).clip(-0.3, 0.3)
    expected = dense_network(ir, x, np.random.default_rng(seed))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    plan = model.bind(x).plan
    short = deconv_ir.load(
        tmp_path / "model.xml", warn=False, memory_limit=plan.bound_bytes + plan.scratch_bytes
    )
    for tried in (model, model, short):
        for found, value in zip(tried.run([x]).values(), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=2e-5)


def test_views_are_no_parts_of_a_concat(tmp_path: Path) -> None:
    """Elements of a transposed tensor are copied, and of a slice, in the order of the output."""
    ir, x = IR(), normal(1, 16, 16)
    given, axis, order = ir.parameter("x", "1,16,16"), np.array(1), np.array([0, 2, 1])
    turned = ir.layer("Transpose", [ir.layer("Sinh", [given]), ir.const(order)])
    inputs = [ir.layer("Cosh", [given]), ir.const(axis), ir.const(np.array([8, 8]))]
    first = ir.layer("VariadicSplit", inputs, outputs=["", ""])
    joined = ir.layer("Concat", [turned, first], {"axis": "1"})
    ir.result(ir.layer("ReduceMax", [joined, ir.const(np.array([0]))], {"keep_dims": "true"}))
    (found,) = deconv_ir.load(ir.save(tmp_path)).run([x]).values()
    value = np.concatenate([np.sinh(x).swapaxes(1, 2), np.cosh(x)[:, :8]], 1)
    np.testing.assert_allclose(found, value, rtol=2e-5)


def test_the_inputs_of_a_concat_are_computed_in_it(tmp_path: Path) -> None:
    """As in the decoder of a U-Net, where the skip connection is also an input of other layers."""
    ir = IR()
    skip = ir.layer("Sinh", [ir.parameter("x", "1,64,32")])
    below = ir.layer("SoftMax", [skip], {"axis": "1"})
    joined = ir.layer("Concat", [skip, below], {"axis": "1"})
    ir.result(ir.layer("SoftMax", [joined], {"axis": "1"}))
    model = deconv_ir.load(ir.save(tmp_path))
    steps = model.bind(np.zeros((1, 64, 32), np.float32)).plan.steps
    first, second, concat, _ = (step.offset for step in steps)
    assert concat is not None
    assert (first, second) == (concat, concat + 64 * 32 * 4)


class _ViewOfInput(Operation):
    """Return the input unchanged, without declaring the output a view."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return (inputs[0],)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (inputs[0][...],)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base.REGISTRY, "ViewOfInput", {})
    register("ViewOfInput", "tests", inputs=("data",))(_ViewOfInput)


def chain(size: int, wrap: str | None = None, version: str = "opset1") -> IR:
    """sinh(x) + cosh(cosh(... sinh(x))); the first term may go through another layer."""
    ir = IR()
    y: Out = ir.layer("Sinh", [ir.parameter("x", f"1,{size}")])
    first = y if wrap is None else ir.layer(wrap, [y], version=version)
    for _ in range(4):
        y = ir.layer("Cosh", [ir.layer("Concat", [y, y], {"axis": "0"})])
        y = ir.layer("ReduceMean", [y, ir.const(np.array([0]))], {"keep_dims": "true"})
    ir.result(ir.layer("Add", [first, y]), "y")
    return ir


def expected(x: Array) -> Array:
    y = first = np.sinh(x.astype(np.float64))
    for _ in range(4):
        y = np.cosh(y)
    return first + y


@pytest.mark.parametrize("size", [3, 1 << 15])
@pytest.mark.parametrize(
    ("kind", "version"), [(None, ""), ("ViewOfInput", "tests"), ("Squeeze", "opset1")]
)
def test_views_of_the_arena_keep_their_elements(
    kind: str | None, version: str, size: int, tmp_path: Path
) -> None:
    """Elements are kept even where a layer returns an undeclared view."""
    ir = chain(size)
    if kind is not None:
        ir = chain(size, kind, version)
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    x = (normal(1, size) / 8).clip(-0.3, 0.3)
    for scale in (1, 0.5):
        (found,) = model.run([x * np.float32(scale)]).values()
        np.testing.assert_allclose(
            found.reshape(1, size), expected(x * np.float32(scale)), rtol=2e-5
        )


def test_results_outlive_later_runs(tmp_path: Path) -> None:
    model = deconv_ir.load(chain(100).save(tmp_path))
    x = normal(1, 100).clip(-0.3, 0.3)
    results = [next(iter(model.run([x * np.float32(s)]).values())) for s in (1, 0.5, 0.25)]
    for scale, result in zip((1, 0.5, 0.25), results, strict=True):
        np.testing.assert_allclose(result, expected(x * np.float32(scale)), rtol=2e-5)


@pytest.mark.parametrize(("limit", "kept"), [(None, 2), (1 << 30, 1)])
def test_a_memory_limit_releases_idle_arenas(
    limit: int | None, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arenas of plans for other shapes, which runs otherwise keep, are released."""
    made: list[weakref.ref[request.InferRequest]] = []

    class Watched(request.InferRequest):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(weakref.ref(self))

    monkeypatch.setattr(request, "InferRequest", Watched)
    ir = IR()
    sinh = ir.layer("Sinh", [ir.parameter("x", "?,8")])
    ir.result(ir.layer("Concat", [sinh, sinh], {"axis": "0"}))
    model = deconv_ir.load(ir.save(tmp_path), memory_limit=limit)
    for rows in (1, 2):
        model.run([normal(rows, 8)])
    gc.collect()
    assert sum(reference() is not None for reference in made) == kept


def test_a_plan_that_ran_keeps_its_memory_until_the_pool_is_emptied() -> None:
    idle: Idle[str] = Idle()
    plans = [object() for _ in range(20)]
    for plan, name in zip(plans, "abc", strict=False):
        idle.give(plan, name, 80 << 20)
    assert idle.take(plans[0]) is None, "the oldest goes where the bound is met"
    assert idle.take(plans[2]) == "c"
    assert idle.take(plans[2]) is None, "one run at a time uses it"
    for number, plan in enumerate(plans):
        idle.give(plan, str(number), 0)
    assert idle.take(plans[2]) is None, "few are kept, however small"
    assert idle.take(plans[19]) == "19"
    try:
        deconv_ir.set_memory_pool_limit(1 << 20)
        assert all(idle.take(plan) is None for plan in plans)
        idle.give(plans[0], "large", 2 << 20)
        assert idle.take(plans[0]) is None
    finally:
        deconv_ir.set_memory_pool_limit(192 << 20)
