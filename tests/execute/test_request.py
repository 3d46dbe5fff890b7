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
from deconv_ir.execute.places import ALIGNMENT, Group, arrange
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
        group = Group(begin, size, takes_out=bool(rng.random() < 0.8))
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
    for name in ("a", "b", "c"):
        idle.give(name, 80 << 20)
    assert idle.take(lambda item: item == "a") is None, "the oldest goes where the bound is met"
    assert idle.take(lambda item: item == "c") == "c"
    assert idle.take(lambda item: item == "c") is None, "one run at a time uses it"
    for number in range(20):
        idle.give(str(number), 0)
    assert idle.take(lambda item: item == "1") is None, "few are kept, however small"
    assert idle.take(lambda item: item == "19") == "19"
    try:
        deconv_ir.set_memory_pool_limit(1 << 20)
        assert idle.take(lambda item: True) is None
        idle.give("large", 2 << 20)
        assert idle.take(lambda item: True) is None
    finally:
        deconv_ir.set_memory_pool_limit(192 << 20)
