"""Variables in bodies: each iteration reads the value of the previous one, also across runs.

The oracle is a loop in the test; tests/peers/test_control_flow.py compares with OpenVINO.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.errors import DeconvError
from deconv_ir.execute.listing import as_rows
from tests.support import IR, Out, invoke

from .test_loops import cut, joints


def accumulate(graph: IR, x: Out, *, name: str = "total", grows: bool = False) -> Out:
    """Add x to a variable, or append it; without a first value, it begins empty or with zeros."""
    shape = {"variable_shape": "?,2" if grows else "1,2"}
    known = {"variable_id": name, "variable_type": "f32", **shape}
    read = graph.layer("ReadValue", [], known, version="opset6", name=f"read {name}")
    if grows:
        after = graph.layer("Concat", [read, x], {"axis": "0"}, name=f"add {name}")
    else:
        after = graph.layer("Add", [read, x], {"auto_broadcast": "numpy"}, name=f"add {name}")
    graph.layer("Assign", [after], {"variable_id": name}, version="opset6", name=f"write {name}")
    return after


def loop(*, nested: bool = False, constant: bool = False, grows: bool = False) -> IR:
    """A Loop over x [1,2] that returns all values of a variable of its body, or the last of them.

    `nested`: the body has an If, and it is the then_body of this that has the variable.
    """
    ir = IR()
    trips = ir.const(np.array(3)) if constant else ir.parameter("trips", "", "i64")
    go = ir.raw_const(b"\1", "boolean", ())
    x = ir.const(np.ones((1, 2), np.float32)) if constant else ir.parameter("x", "1,2")
    body = ir.body()
    piece = body.parameter("piece", "1,2")
    found = branch(body, piece) if nested else accumulate(body, piece, grows=grows)
    result = body.result(found)
    whole = "" if grows else cut()
    inside = joints(("input", 2, piece[0], ""), ("output", 3, result[0], whole))
    sections = f"<body>\n{body.sections()}</body>\n"
    made = ir.layer("Loop", [trips, go, x], version="opset5", name="sums", bodies=inside + sections)
    ir.result(made)
    if constant:  # a model must have an input
        ir.result(ir.parameter("unused", "1"))
    return ir


def branch(ir: IR, x: Out, cond: Out | None = None) -> Out:
    """Add x to a variable if a condition holds (by default), else return x."""
    cond = cond or ir.raw_const(b"\1", "boolean", ())
    maps = sections = ""
    for name in ("then", "else"):
        body = ir.body()
        piece = body.parameter("piece", "1,2")
        result = body.result(accumulate(body, piece) if name == "then" else piece)
        ports = joints(("input", 1, piece[0], ""), ("output", 2, result[0], ""))
        maps += ports.replace("port_map", f"{name}_port_map")
        sections += f"<{name}_body>\n{body.sections()}</{name}_body>\n"
    return ir.layer("If", [cond, x], version="opset8", name="choice", bodies=maps + sections)


X = np.array([[1, 2]], np.float32)


def run(
    model: deconv_ir.Model, trips: int, state: deconv_ir.State | None = None
) -> list[list[float]]:
    (found,) = model.run([np.int64(trips), X], state=state).values()
    return found.tolist()


def multiples(*numbers: int) -> list[list[float]]:
    return [[n, 2.0 * n] for n in numbers]


@pytest.mark.parametrize("nested", [False, True])
def test_iterations_and_runs_follow_each_other(nested: bool, tmp_path: Path) -> None:
    model = deconv_ir.load(loop(nested=nested).save(tmp_path))
    state = deconv_ir.State()
    assert run(model, 2, state) == multiples(1, 2)
    assert run(model, 0, state) == []
    assert run(model, 1, state) == multiples(3)
    assert state.values["total"].tolist() == multiples(3)
    assert run(model, 3, state) == multiples(4, 5, 6)
    assert run(model, 2) == run(model, 2) == multiples(1, 2), "without a state, each run is new"
    state.reset()
    assert run(model, 3, state) == multiples(1, 2, 3)


def test_a_loop_of_constants_is_computed_in_each_run(tmp_path: Path) -> None:
    model = deconv_ir.load(loop(constant=True).save(tmp_path))
    state, unused = deconv_ir.State(), np.zeros(1, np.float32)
    for last in (3, 6):
        found, _ = model.run(unused, state=state).values()
        assert found.tolist() == [[n, n] for n in range(last - 2, last + 1)]


def test_a_variable_of_a_body_may_grow(tmp_path: Path) -> None:
    model = deconv_ir.load(loop(grows=True).save(tmp_path))
    state = deconv_ir.State()
    assert run(model, 2, state) == multiples(1, 1)
    assert run(model, 1, state) == multiples(1, 1, 1)


def test_only_the_branch_that_runs_writes(tmp_path: Path) -> None:
    ir = IR()
    cond, x = ir.parameter("cond", "", "boolean"), ir.parameter("x", "1,2")
    ir.result(branch(ir, x, cond))
    model = deconv_ir.load(ir.save(tmp_path))
    state = deconv_ir.State()
    found = [
        model.run([np.bool_(c), X], state=state).popitem()[1].tolist() for c in (1, 0, 1, 1, 0)
    ]
    assert found == [multiples(n) for n in (1, 1, 2, 3, 1)]


def test_threads_have_states_of_their_own(tmp_path: Path) -> None:
    model = deconv_ir.load(loop().save(tmp_path))
    found: dict[int, list[list[list[float]]]] = {}

    def work(number: int) -> None:
        state = deconv_ir.State()
        found[number] = [run(model, number, state) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, results in found.items():
        rows = [row for result in results for row in result]
        assert rows == multiples(*range(1, 20 * number + 1))


def test_a_variable_is_written_whatever_is_asked_for(tmp_path: Path) -> None:
    model = deconv_ir.load(loop().save(tmp_path))
    state, profile = deconv_ir.State(), deconv_ir.Profile()
    given: Mapping[str, object] = {"trips": np.int64(2), "x": X}
    assert model.run(given, outputs="x", state=state, profile=profile)["x"].tolist() == X.tolist()  # type: ignore[arg-type]
    assert state.values["total"].tolist() == multiples(2)
    assert {row.within for row in profile.layers} == {"sums/body", ""}


def test_values_are_apart_from_inputs_and_outputs(tmp_path: Path) -> None:
    """A body that assigns its unchanged input does not keep a reference to the caller's array."""
    ir = IR()
    data = [ir.const(np.array(1)), ir.raw_const(b"\1", "boolean", ()), ir.parameter("x", "1,2")]
    body = ir.body()
    piece = body.parameter("piece", "1,2")
    stated = {"variable_id": "last", "variable_type": "f32", "variable_shape": "1,2"}
    result = body.result(body.layer("ReadValue", [piece], stated, version="opset6"))
    body.layer("Assign", [piece], {"variable_id": "last"}, version="opset6")
    ports = joints(("input", 2, piece[0], ""), ("output", 3, result[0], ""))
    sections = f"<body>\n{body.sections()}</body>\n"
    ir.result(ir.layer("Loop", data, version="opset5", bodies=ports + sections))
    model = deconv_ir.load(ir.save(tmp_path))
    state, x = deconv_ir.State(), X.copy()
    (found,) = model.run(x, state=state).values()
    x[:] = found[:] = 0
    (before,) = model.run(x, state=state).values()
    assert before.tolist() == X.tolist()


def test_a_variable_outlives_the_tensor_that_a_body_was_given(tmp_path: Path) -> None:
    """Layers behind the loop overwrite the memory from which the body read the value."""
    ir = IR()
    x = ir.layer("Sinh", [ir.parameter("x", "1,2")])
    data = [ir.const(np.array(1)), ir.raw_const(b"\1", "boolean", ()), x]
    body = ir.body()
    piece = body.parameter("piece", "1,2")
    stated = {"variable_id": "last", "variable_type": "f32", "variable_shape": "1,2"}
    result = body.result(body.layer("ReadValue", [piece], stated, version="opset6"))
    body.layer("Assign", [piece], {"variable_id": "last"}, version="opset6")
    ports = joints(("input", 2, piece[0], ""), ("output", 3, result[0], ""))
    y = ir.layer(
        "Loop", data, version="opset5", bodies=ports + f"<body>\n{body.sections()}</body>\n"
    )
    for _ in range(3):
        y = ir.layer("Cosh", [ir.layer("Concat", [y, y], {"axis": "0"})])
        y = ir.layer("ReduceMean", [y, ir.const(np.array([0]))], {"keep_dims": "true"})
    ir.result(y)
    state = deconv_ir.State()
    deconv_ir.load(ir.save(tmp_path)).run(X / 4, state=state)
    np.testing.assert_allclose(state.values["last"], np.sinh(X / 4), rtol=1e-6)


def test_a_failed_run_leaves_the_state(tmp_path: Path) -> None:
    """A layer behind the loop fails after the loop has written its variable."""
    ir = loop()
    size = ir.parameter("size", "1", "i64")
    ir.result(ir.layer("Reshape", [(3, 3), size], {"special_zero": "false"}, name="last"))
    model = deconv_ir.load(ir.save(tmp_path))
    state = deconv_ir.State()
    given = [np.int64(1), X, np.array([2])]
    model.run(given, state=state)
    with pytest.raises(DeconvError, match="last"):
        model.run([np.int64(2), X, np.array([3])], state=state)
    assert state.values["total"].tolist() == multiples(1)


def test_one_graph_has_a_variable(tmp_path: Path) -> None:
    ir = loop()
    accumulate(ir, (2, 0))
    model = deconv_ir.load(ir.save(tmp_path))
    for state in (None, deconv_ir.State()):
        with pytest.raises(deconv_ir.UnsupportedError, match="'total' is also used outside"):
            run(model, 2, state)


def test_plan_and_profile_show_bodies_of_bodies(tmp_path: Path) -> None:
    """The variable is in a branch of a body; only the branch that runs is in the profile."""
    path = loop(nested=True).save(tmp_path)
    model = deconv_ir.load(path)
    inner = ("sums/body/choice/then_body", "add total")
    shown = [(row.within, row.layer) for row in as_rows(model.bind().plan)]
    read = (inner[0], "read total")
    assert shown == [("", "sums"), ("sums/body", "choice"), read, inner]
    profile = deconv_ir.Profile()
    model.run([np.int64(2), X], state=deconv_ir.State(), profile=profile)
    found = [(row.within, row.layer) for row in profile.layers]
    later = [inner, ("sums/body", "choice")]
    assert found == [read, *later, *later, ("", "sums")], "the first iteration makes the zeros"
    for option in ("--explain-plan", "--profile"):
        given = ["--random-inputs", 0, "--no-output"] if option == "--profile" else []
        output = invoke(path, option, *given).output
        assert "sums/body: choice" in output, output
        assert "sums/body/choice/then_body: add total" in output, output
