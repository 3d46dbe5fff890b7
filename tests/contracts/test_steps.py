"""The steps to load and run a graph grow in proportion to it, whatever its names and edges."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from support import IR

import deconv_ir


def steps(work: Callable[[], object]) -> int:
    """Count the bytecode instructions that Python executes during a call."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def of_results(count: int) -> IR:
    """Build many Results of one tensor."""
    ir = IR()
    y = ir.layer("ReLU", [ir.parameter("x", "2")])
    for _ in range(count):
        ir.result(y)
    return ir


def of_equal_names(count: int) -> IR:
    """Build many Parameters with the same name."""
    ir = IR()
    shape = {"shape": "2", "element_type": "f32"}
    made = [ir.layer("Parameter", attributes=shape, name="p") for _ in range(count)]
    ir.result(made[0])
    return ir


def of_inputs(count: int) -> IR:
    """Build many Parameters, each with its own name."""
    ir = IR()
    made = [ir.parameter(f"x{i}", "2") for i in range(count)]
    ir.result(ir.layer("Concat", made, {"axis": "0"}))
    return ir


def of_views(count: int) -> IR:
    """Build many outputs that are views of parts of one tensor."""
    ir = IR()
    x, axis = ir.parameter("x", f"{2 * count}"), ir.const(np.array(0))
    y = ir.layer("ReLU", [x])
    layer, port = ir.layer(
        "Split", [y, axis], {"num_splits": str(count)}, outputs=["2"] * count, precision="FP32"
    )
    for i in range(count):
        ir.result((layer, port + i))
    return ir


def measured(path: Path) -> dict[str, int]:
    """Count the steps of each way to use a model."""
    loaded: list[deconv_ir.Model] = []
    taken = {"load": steps(lambda: loaded.append(deconv_ir.load(path, warn=False)))}
    model = loaded[0]
    arrays = {n: np.ones(p.shape, np.float32) for n, p in model.inputs.items()}
    shapes = dict.fromkeys(list(arrays)[1:], (2,))
    taken["plan and run"] = steps(lambda: model.run(arrays))
    taken["run"] = steps(lambda: model.run(arrays))
    taken["names"] = steps(lambda: model.run(arrays, outputs=list(model.outputs)[:1]))
    taken["shapes"] = steps(lambda: model.infer_shapes(shapes))
    return taken


@pytest.mark.parametrize("build", [of_results, of_equal_names, of_inputs, of_views])
def test_twice_the_graph_takes_twice_the_steps(build: Callable[[int], IR], tmp_path: Path) -> None:
    found = []
    for count in (10, 100, 200, 400):  # the first model imports the modules
        folder = tmp_path / str(count)
        folder.mkdir()
        found.append(measured(build(count).save(folder)))
    for name in found[0]:
        first, second, third = (taken[name] for taken in found[1:])
        # A quadratic part adds four times as many steps from 200 to 400 as from 100 to 200.
        assert third - second <= 2.2 * max(second - first, 500), (name, first, second, third)


def test_outputs_share_no_memory(tmp_path: Path) -> None:
    """Outputs that share one tensor, or show an input, are copied; disjoint views are not."""
    path = of_views(20).save(tmp_path)
    x = np.arange(40, dtype=np.float32)
    found = list(deconv_ir.load(path).run([x]).values())
    assert [y.tolist() for y in found] == [[2 * i, 2 * i + 1] for i in range(20)]
    (tmp_path / "r").mkdir()
    same = list(deconv_ir.load(of_results(20).save(tmp_path / "r")).run([x[:2]]).values())
    for number, array in enumerate(same):
        array += number
    assert [y.tolist() for y in same] == [[i, i + 1] for i in range(20)]
    ir = IR()
    y = ir.parameter("x", "40")
    for _ in range(12):
        ir.result(y)
    (tmp_path / "i").mkdir()
    passed = deconv_ir.load(ir.save(tmp_path / "i")).run([x])
    for array in passed.values():
        assert not np.shares_memory(array, x)
        array[:] = -1
    assert x.tolist() == list(range(40))
