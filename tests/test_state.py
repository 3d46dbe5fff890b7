"""Variables: ReadValue reads the value that Assign wrote in the previous run.

Sources: OpenVINO operation specifications, ReadValue-3, ReadValue-6, Assign-3, Assign-6.
"""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.errors import DeconvError
from tests.support import IR


def counter(version: str = "opset6", *, first: bool = True) -> IR:
    """Add x to a variable, which begins with 10 and 20, or with zeros."""
    ir = IR()
    x = ir.parameter("x", "1,2")
    attributes = {"variable_id": "total"}
    if version == "opset6":
        attributes |= {"variable_type": "f32", "variable_shape": "1,2"}
    start = [ir.const(np.array([[10, 20]], np.float32))] if first else []
    read = ir.layer("ReadValue", start, attributes, version=version, name="read")
    total = ir.layer("Add", [read, x], {"auto_broadcast": "numpy"})
    ir.layer("Assign", [total], {"variable_id": "total"}, version=version, name="assign")
    ir.result(total)
    return ir


ONES = np.ones((1, 2), np.float32)


def run(model: deconv_ir.Model, state: deconv_ir.State | None = None) -> list[float]:
    (found,) = model.run(ONES, state=state).values()
    return found.ravel().tolist()


@pytest.mark.parametrize("version", ["opset3", "opset6"])
def test_a_state_lasts_until_it_is_reset(version: str, tmp_path: Path) -> None:
    model = deconv_ir.load(counter(version).save(tmp_path))
    state = deconv_ir.State()
    assert [run(model, state) for _ in range(3)] == [[11, 21], [12, 22], [13, 23]]
    assert state.values["total"].tolist() == [[13, 23]]
    state.reset()
    assert run(model, state) == [11, 21]
    state.reset("total", "unknown")
    assert not state.values


def test_without_a_state_each_run_begins_anew(tmp_path: Path) -> None:
    model = deconv_ir.load(counter().save(tmp_path))
    assert [run(model), run(model)] == [[11, 21], [11, 21]]


def test_a_variable_without_first_value_begins_with_zeros(tmp_path: Path) -> None:
    model = deconv_ir.load(counter(first=False).save(tmp_path))
    state = deconv_ir.State()
    assert [run(model, state), run(model, state)] == [[1, 1], [2, 2]]


def test_outputs_and_values_are_apart(tmp_path: Path) -> None:
    """Writing to an output array does not change a variable."""
    model = deconv_ir.load(counter().save(tmp_path))
    state = deconv_ir.State()
    (found,) = model.run(ONES, state=state).values()
    found[:] = 0
    assert state.values["total"].tolist() == [[11, 21]]


def test_inner_tensors_and_profile_with_a_state(tmp_path: Path) -> None:
    model = deconv_ir.load(counter().save(tmp_path))
    state, profile = deconv_ir.State({"total": [[1.0, 2.0]]}), deconv_ir.Profile()
    with pytest.raises(DeconvError, match="'total' takes f32"):
        model.run(ONES, state=state)
    state = deconv_ir.State({"total": np.array([[1, 2]], np.float32)})
    found = model.run(ONES, outputs="read", state=state, profile=profile)
    assert found["read"].tolist() == [[1, 2]]
    assert state.values["total"].tolist() == [[2, 3]], "the variable is written all the same"
    assert [row.type for row in profile.layers] == ["Add"]


def test_a_variable_may_grow(tmp_path: Path) -> None:
    """The variable collects the frames seen so far, as in a streaming network."""
    ir = IR()
    x = ir.parameter("x", "1,2")
    kept = {"variable_id": "seen", "variable_type": "f32", "variable_shape": "?,2"}
    read = ir.layer("ReadValue", [], kept, version="opset6")
    both = ir.layer("Concat", [read, x], {"axis": "0"})
    ir.layer("Assign", [both], {"variable_id": "seen"}, version="opset6")
    ir.result(both)
    model = deconv_ir.load(ir.save(tmp_path))
    state = deconv_ir.State()
    for count in (1, 2, 3):
        (found,) = model.run(ONES, state=state).values()
        assert found.tolist() == [[1, 1]] * count


def test_threads_have_states_of_their_own(tmp_path: Path) -> None:
    model = deconv_ir.load(counter().save(tmp_path))
    found: dict[int, list[list[float]]] = {}

    def work(number: int) -> None:
        state = deconv_ir.State()
        found[number] = [run(model, state) for _ in range(20 + number)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, results in found.items():
        assert results == [[11 + i, 21 + i] for i in range(20 + number)]


def test_a_state_serves_one_run_at_a_time(tmp_path: Path) -> None:
    model = deconv_ir.load(counter().save(tmp_path))
    state = deconv_ir.State()
    with state.taken(), pytest.raises(deconv_ir.InputError, match="each thread needs its own"):
        run(model, state)
    assert run(model, state) == [11, 21]


def test_a_failed_run_leaves_the_state(tmp_path: Path) -> None:
    model = deconv_ir.load(counter().save(tmp_path))
    state = deconv_ir.State()
    run(model, state)
    with pytest.raises(deconv_ir.InputError):
        model.run(np.ones((3, 3), np.float32), state=state)
    assert run(model, state) == [12, 22]


def test_a_state_can_be_pickled() -> None:
    state = pickle.loads(pickle.dumps(deconv_ir.State({"a": np.ones(2)})))
    assert state.values["a"].tolist() == [1, 1]


def test_a_variable_is_assigned_once(tmp_path: Path) -> None:
    ir = counter()
    ir.layer("Assign", [(2, 1)], {"variable_id": "total"}, version="opset6", name="again")
    model = deconv_ir.load(ir.save(tmp_path))
    with pytest.raises(deconv_ir.IRError, match="variable 'total' is assigned twice"):
        run(model, deconv_ir.State())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('variable_shape="1,2"', 'variable_shape="1,3"', r"has shape \[1,3\], init_value has"),
        ('variable_type="f32"', 'variable_type="i64"', "is i64, init_value is f32"),
    ],
)
def test_mistakes(old: str, new: str, message: str) -> None:
    ir = counter()
    assert old in ir.xml()
    with pytest.raises(DeconvError, match=message):
        deconv_ir.load(ir.xml().replace(old, new).encode(), bytes(ir.weights))
