"""Bodies and variables in OpenVINO and here: built by its API, or converted from torch and ONNX."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deconv_ir

from .operations.harness import TOLERANCES, compare, core, ov

pytestmark = pytest.mark.peers

Built = tuple[Any, list[list[np.ndarray]]]
"""A model, and the inputs of several runs."""
KINDS = {"f32": np.float32, "f16": np.float16}


def check(model: Any, runs: Sequence[Sequence[np.ndarray]], folder: Path, kind: str) -> None:
    """Compare all runs, with one state; the linter must have no finding in the file."""
    path = folder / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    ours, state = deconv_ir.load(path), deconv_ir.State()
    assert not [f for f in ours.findings if f.rule != "profiles-differ"]
    errors = [f for f in deconv_ir.lint(path) if f.severity is deconv_ir.Severity.ERROR]
    assert not errors
    request = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    request = request.create_infer_request()
    for inputs in runs:
        found = list(ours.run(inputs, state=state).values())
        expected = list(request.infer(list(inputs)).values())
        for mine, theirs in zip(found, expected, strict=True):
            # Without iterations OpenVINO sets extents that it does not know to 0.
            known = [
                b or (a if mine.size == 0 else 0)
                for a, b in zip(mine.shape, theirs.shape, strict=True)
            ]
            assert list(mine.shape) == known
            theirs = np.array(theirs).reshape(mine.shape)
            compare(mine, theirs.astype(mine.dtype), TOLERANCES[kind])


def shape_of(*dims: int, dynamic: bool) -> Any:
    return ov.PartialShape([-1] * len(dims)) if dynamic else ov.PartialShape(list(dims))


Cut = tuple[int, int, int, int, int]
"""Start, stride, extent of a part, end and axis."""


def tensor_iterator(
    kind: str, dynamic: bool, *, backward: bool = False, part: int = 1, cut: Cut | None = None
) -> Built:
    """Build a recurrent layer with weights, forward or backward, or over a part of an axis."""
    o, dtype = ov.opset8, KINDS[kind]
    rng = np.random.default_rng(0)
    x = o.parameter(shape_of(2, 6, 3, dynamic=dynamic), dtype, name="x")
    h = o.parameter(shape_of(2, part, 4, dynamic=dynamic), dtype, name="h")
    piece = o.parameter(ov.PartialShape([-1, part, 3]), dtype)
    state = o.parameter(ov.PartialShape([-1, part, 4]), dtype)
    weights = o.constant(rng.standard_normal((3, 4)).astype(dtype) / 4)
    again = o.constant(rng.standard_normal((4, 4)).astype(dtype) / 4)
    both = o.add(o.matmul(piece, weights, False, False), o.matmul(state, again, False, False))
    after = o.tanh(both)
    layer = o.tensor_iterator()
    layer.set_body(ov.Model([after], [piece, state], "body"))
    where = (-1, -part, part, 0, 1) if backward else (0, part, part, -1, 1)
    layer.set_sliced_input(piece, x.output(0), *(cut or where))
    layer.set_merged_input(state, h.output(0), after.output(0))
    last = layer.get_iter_value(after.output(0), -1)
    everything = layer.get_concatenated_slices(after.output(0), *where)
    model = ov.Model([o.result(last), o.result(everything)], [x, h], "ti")
    given = [rng.standard_normal(s).astype(dtype) for s in ((2, 6, 3), (2, part, 4))]
    return model, [given]


def loop(kind: str, dynamic: bool, *, trips: int | None, limit: float) -> Built:
    """Add a row to a sum while it is below a limit; with `trips` None, an input has the count."""
    o, dtype = ov.opset8, KINDS[kind]
    x = o.parameter(shape_of(5, 2, dynamic=dynamic), dtype, name="x")
    first = o.parameter(shape_of(1, 2, dynamic=dynamic), dtype, name="first")
    count = o.parameter([], np.int64, name="count")
    row = o.parameter(ov.PartialShape([1, -1]), dtype)
    total = o.parameter(ov.PartialShape([-1, -1]), dtype)
    number = o.parameter([], np.int64)
    shifted = o.add(o.add(row, total), o.convert(number, kind))
    below = o.less(
        o.reduce_sum(shifted, o.constant([0, 1]), False), o.constant(np.array(limit, dtype))
    )
    layer = o.loop(count if trips is None else o.constant(np.int64(trips)), o.constant(True))
    layer.set_function(ov.Model([below, shifted], [row, total, number], "body"))
    layer.set_special_body_ports([2, 0])
    layer.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    layer.set_merged_input(total, first.output(0), shifted.output(0))
    last = layer.get_iter_value(shifted.output(0), -1)
    everything = layer.get_concatenated_slices(shifted.output(0), 0, 1, 1, -1, 0)
    inputs = [x, first] if trips is not None else [x, first, count]
    model = ov.Model([o.result(last), o.result(everything)], inputs, "loop")
    arrays = [np.ones((5, 2), dtype), np.full((1, 2), 0.5, dtype)]
    counts = [0, 1, 3, 5] if trips is None else [trips]
    return model, [[*arrays, np.int64(n)][: len(inputs)] for n in counts]


def nested(kind: str, dynamic: bool) -> Built:
    """Build an If in a Loop: even iterations add an outer tensor, odd ones double."""
    o, dtype = ov.opset8, KINDS[kind]
    x = o.parameter(shape_of(2, 3, dynamic=dynamic), dtype, name="x")
    outer = o.parameter([], dtype, name="outer")
    value = o.parameter(ov.PartialShape([-1, -1]), dtype)
    one = o.parameter([], dtype)
    number = o.parameter([], np.int64)
    even = o.equal(o.mod(number, o.constant(np.int64(2))), o.constant(np.int64(0)))
    a, b = (o.parameter(ov.PartialShape([-1, -1]), dtype) for _ in range(2))
    c = o.parameter([], dtype)
    then_result = o.result(o.add(a, c))
    else_result = o.result(o.multiply(b, o.constant(np.array(2, dtype))))
    choice = o.if_op(even.output(0))
    choice.set_then_body(ov.Model([then_result], [a, c]))
    choice.set_else_body(ov.Model([else_result], [b]))
    choice.set_input(value.output(0), a, b)
    choice.set_input(one.output(0), c, None)
    after = choice.set_output(then_result, else_result)
    go = o.constant(True)
    layer = o.loop(o.constant(np.int64(3)), o.constant(True))
    layer.set_function(ov.Model([go, after.get_node()], [value, one, number], "body"))
    layer.set_special_body_ports([2, 0])
    layer.set_merged_input(value, x.output(0), after)
    layer.set_invariant_input(one, outer.output(0))
    model = ov.Model([o.result(layer.get_iter_value(after, -1))], [x, outer], "nested")
    return model, [[np.arange(6, dtype=dtype).reshape(2, 3), dtype(n)] for n in (1, 2)]


def branches(kind: str, dynamic: bool) -> Built:
    """Build branches of different shapes."""
    o, dtype = ov.opset8, KINDS[kind]
    cond = o.parameter([], bool, name="cond")
    x = o.parameter(shape_of(2, 3, dynamic=dynamic), dtype, name="x")
    a, b = (o.parameter(ov.PartialShape([-1, -1]), dtype) for _ in range(2))
    then_result = o.result(o.add(a, o.constant(np.array(1, dtype))))
    else_result = o.result(o.reduce_sum(b, o.constant([0]), True))
    choice = o.if_op(cond.output(0))
    choice.set_then_body(ov.Model([then_result], [a]))
    choice.set_else_body(ov.Model([else_result], [b]))
    choice.set_input(x.output(0), a, b)
    found = choice.set_output(then_result, else_result)
    model = ov.Model([o.result(found)], [cond, x], "if")
    data = np.arange(6, dtype=dtype).reshape(2, 3)
    return model, [[np.bool_(value), data] for value in (True, False)]


def variable(kind: str, dynamic: bool, *, version: int) -> Built:
    """Build a moving sum over runs."""
    dtype = KINDS[kind]
    o = ov.opset3 if version == 3 else ov.opset6
    x = o.parameter(shape_of(1, 2, dynamic=dynamic and version == 6), dtype, name="x")
    start = o.constant(np.array([[1, 2]], dtype))
    more = () if version == 3 else (dtype, [1, 2])
    total = o.add(o.read_value(start, "total", *more), x)
    model = ov.Model([o.result(total)], [o.assign(total, "total")], [x], "state")
    return model, [[np.array([[n, 0.5]], dtype)] for n in range(3)]


def variable_in_body(kind: str, dynamic: bool, *, branch: bool = False) -> Built:
    """Build a Loop, or an If in it on even iterations, that adds to its own variable."""
    o, dtype = ov.opset6, KINDS[kind]
    x = o.parameter(shape_of(1, 2, dynamic=dynamic), dtype, name="x")
    count = o.parameter([], np.int64, name="count")

    def adding(piece: Any) -> tuple[Any, Any]:
        start = o.constant(np.array([[1, 2]], dtype))
        total = o.add(o.read_value(start, "total", dtype, [1, 2]), piece)
        return o.result(total), o.assign(total, "total")

    piece, number = o.parameter([1, 2], dtype), o.parameter([], np.int64)
    if branch:
        o8 = ov.opset8
        even = o8.equal(o8.mod(number, o8.constant(np.int64(2))), o8.constant(np.int64(0)))
        a, b = o.parameter([1, 2], dtype), o.parameter([1, 2], dtype)
        then_result, assign = adding(a)
        else_result = o.result(b)
        choice = o8.if_op(even.output(0))
        choice.set_then_body(ov.Model([then_result], [assign], [a], "then"))
        choice.set_else_body(ov.Model([else_result], [b], "else"))
        choice.set_input(piece.output(0), a, b)
        found, sinks = o.result(choice.set_output(then_result, else_result)), []
    else:
        found, assign = adding(piece)
        sinks = [assign]
    go = o.result(o.constant(True))
    layer = ov.opset8.loop(count, o.constant(True))
    layer.set_function(ov.Model([go, found], sinks, [piece, number], "body"))
    layer.set_special_body_ports([1, 0])
    layer.set_invariant_input(piece, x.output(0))
    everything = layer.get_concatenated_slices(found.output(0), 0, 1, 1, -1, 0)
    model = ov.Model([o.result(everything)], [x, count], "accumulating")
    return model, [[np.array([[n, 0.5]], dtype), np.int64(n)] for n in (2, 1, 3, 4)]


BUILDERS: dict[str, Callable[[str, bool], Built]] = {
    "tensor iterator": tensor_iterator,
    "tensor iterator, backward": lambda k, d: tensor_iterator(k, d, backward=True),
    "tensor iterator, two steps at once": lambda k, d: tensor_iterator(k, d, part=2),
    "loop, no trips": lambda k, d: loop(k, d, trips=0, limit=1e4),
    "loop, exit in the first": lambda k, d: loop(k, d, trips=5, limit=-1),
    "loop, all trips": lambda k, d: loop(k, d, trips=5, limit=1e4),
    "loop, one trip": lambda k, d: loop(k, d, trips=1, limit=1e4),
    "loop, early exit": lambda k, d: loop(k, d, trips=5, limit=9),
    "loop, trips of an input": lambda k, d: loop(k, d, trips=None, limit=1e4),
    "if in a loop": nested,
    "if": branches,
    "variable 3": lambda k, d: variable(k, d, version=3),
    "variable 6": lambda k, d: variable(k, d, version=6),
    "variable of a body": variable_in_body,
    "variable of a branch in a body": lambda k, d: variable_in_body(k, d, branch=True),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", BUILDERS)
def test_loops_and_branches_run_as_in_openvino(
    name: str, dynamic: bool, kind: str, tmp_path: Path
) -> None:
    model, runs = BUILDERS[name](kind, dynamic)
    check(model, runs, tmp_path, kind)


PARTS: dict[str, tuple[Cut, slice]] = {
    "from 1 to 5": ((1, 2, 2, 5, 1), slice(1, 5)),
    "from 5 to 1": ((-2, -2, 2, 1, 1), slice(1, 5)),
    "every second": ((0, 2, 1, -1, 1), slice(0, None, 2)),
    "every second, backward": ((-1, -2, 1, 0, 1), slice(1, None, 2)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_an_axis(name: str, dynamic: bool, kind: str, tmp_path: Path) -> None:
    """OpenVINO iterates over a slice: its CPU plugin ignores where a part starts and ends.

    It takes a stride for the extent of a part too, and its shape inference counts every element.
    """
    cut, rows = PARTS[name]
    _, stride, part, _, _ = cut
    built, ((x, h),) = tensor_iterator(kind, dynamic, backward=stride < 0, part=part, cut=cut)
    ov.save_model(built, tmp_path / "model.xml", compress_to_fp16=False)
    found = deconv_ir.load(tmp_path / "model.xml", warn=False).run([x, h])
    whole, _ = tensor_iterator(kind, True, backward=stride < 0, part=part)
    expected = core.compile_model(whole, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(
        [x[:, rows], h]
    )
    for mine, theirs in zip(found.values(), expected.values(), strict=True):
        assert mine.shape == theirs.shape
        compare(mine, np.array(theirs).astype(mine.dtype), TOLERANCES[kind])


STATEFUL = ("variable 6", "variable of a body", "variable of a branch in a body")


@pytest.mark.parametrize("name", STATEFUL)
def test_states_of_two_threads(name: str, tmp_path: Path) -> None:
    """Each thread has a State here and an infer request there; both are reset after some runs."""
    built, runs = BUILDERS[name]("f32", False)
    path = tmp_path / "model.xml"
    ov.save_model(built, path, compress_to_fp16=False)
    model = deconv_ir.load(path)
    compiled = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    both = threading.Barrier(2)

    def work(thread: int) -> list[tuple[np.ndarray, np.ndarray]]:
        state, request = deconv_ir.State(), compiled.create_infer_request()
        found = []
        for number in range(3 + thread):
            both.wait(60) if number < 3 else None
            for inputs in runs:
                given = [np.array(inputs[0] + np.float32(thread)), *inputs[1:]]
                (mine,) = model.run(given, state=state).values()
                (theirs,) = request.infer(given).values()
                found.append((mine, np.array(theirs)))
            if number == 1:
                state.reset()
                request.reset_state()
        return found

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, range(2)))
    for found in results:
        for mine, theirs in found:
            compare(mine, theirs, TOLERANCES["f32"])
    first, second = results
    count = len(runs)
    assert not np.array_equal(first[0][0], second[0][0]), "the threads have other data"
    assert not np.array_equal(first[0][0], first[count][0]), "the state lasts"
    np.testing.assert_array_equal(first[0][0], first[2 * count][0], "the state was reset")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("trips", [0, 1, 4])
def test_torch_loop_and_branch(trips: int, tmp_path: Path) -> None:
    """A scripted module has a loop over a number in an input, and a branch on its values."""
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(2, 2, 3, padding=1)

        def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
            for _ in range(int(count)):
                x = torch.relu(self.conv(x))
                x = x * 0.5 if bool(x.mean() > 0.2) else x + 0.25
            return x

    torch.manual_seed(0)
    source = torch.jit.script(Network().eval())
    x, count = torch.rand(1, 2, 6, 5), torch.tensor(trips)
    model = ov.convert_model(source)
    with torch.no_grad():
        expected = source(x, count).numpy()
    path = tmp_path / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    ours = deconv_ir.load(path, warn=False)
    assert {"Loop", "If"} <= {layer.type for graph in _graphs(ours.graph) for layer in graph.layers}
    (found,) = ours.run([x.numpy(), count.numpy()]).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def _graphs(graph: Any) -> Any:
    from deconv_ir.ir.graph import walk_graphs

    return list(walk_graphs(graph))


@pytest.mark.parametrize("steps", [1, 4])
def test_onnx_scan(steps: int, tmp_path: Path) -> None:
    """ONNX Scan, with scanned inputs and outputs, becomes a TensorIterator or a Loop."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    f32 = onnx.TensorProto.FLOAT

    def value(name: str, shape: Sequence[Any]) -> Any:
        return helper.make_tensor_value_info(name, f32, shape)

    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "item"], ["next"]),
            helper.make_node("Mul", ["next", "item"], ["seen"]),
        ],
        "body",
        [value("state", [2]), value("item", [2])],
        [value("next", [2]), value("seen", [2])],
    )
    scan = helper.make_node("Scan", ["first", "x"], ["last", "all"], body=body, num_scan_inputs=1)
    graph = helper.make_graph(
        [scan],
        "scan",
        [value("first", [2]), value("x", [steps, 2])],
        [value("last", [2]), value("all", [steps, 2])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(made, tmp_path / "scan.onnx")
    model = ov.convert_model(tmp_path / "scan.onnx")
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(2), rng.standard_normal((steps, 2))]
    check(model, [[a.astype(np.float32) for a in given]], tmp_path, "f32")
