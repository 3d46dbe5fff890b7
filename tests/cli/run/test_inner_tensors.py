"""Names of tensors within bodies: --until, --output-layer, --dump --all, and deconv-cut.

The bodies' oracle is the loop in the test: `iterator` multiplies each element by 2, and sums rows.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from tests.compare.test_bodies import behind_weights, iterator
from tests.support import IR, invoke, invoke_script

X = np.arange(8, dtype=np.float32).reshape(4, 2)
START = np.ones((1, 2), np.float32)
TOTALS = 1 + np.cumsum(2 * X, axis=0)[:, None]
SCALED = (2 * X)[:, :, None, None]
TENSORS = {"rows/body/total": TOTALS, "rows/body/columns/body/scaled": SCALED}


@pytest.fixture
def given(tmp_path: Path) -> list[object]:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "start.npy", START)
    path = iterator(tmp_path / "net")
    return [
        path,
        "--input",
        f"x={tmp_path / 'x.npy'}",
        "--input",
        f"start={tmp_path / 'start.npy'}",
    ]


@pytest.mark.parametrize("option", ["--until", "--output-layer"])
@pytest.mark.parametrize("name", TENSORS)
def test_one_tensor(name: str, option: str, given: list[object], tmp_path: Path) -> None:
    done = invoke(*given, option, name, "--output", tmp_path / "y.npy")
    assert done.exit_code == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), TENSORS[name])


@pytest.mark.parametrize("again", [False, True])
def test_dumps(again: bool, given: list[object], tmp_path: Path) -> None:
    for _ in range(1 + again):
        done = invoke(*given, "--no-output", "--dump", tmp_path / "d", "--all", "--force")
        assert done.exit_code == 0, done.stderr
    rows = json.loads((tmp_path / "d" / "deconv-tensors.json").read_text())["tensors"]
    files = {"/".join((*row.get("within", ()), row["name"])): row["file"] for row in rows}
    assert len(rows) == len(files) == len(list((tmp_path / "d").glob("*.npy")))
    for name, expected in TENSORS.items():
        np.testing.assert_array_equal(np.load(tmp_path / "d" / files[name]), expected)
    within = next(row["within"] for row in rows if row["name"] == "scaled")
    assert within == ["rows", "body", "columns", "body"]
    done = invoke_script("diff", *given, "--against", tmp_path / "d")
    assert done.exit_code == 0, done.stdout


@pytest.mark.parametrize("condition", [True, False])
def test_the_branch_that_runs(condition: bool, tmp_path: Path) -> None:
    (tmp_path / "if").mkdir()
    np.save(tmp_path / "x.npy", np.ones((4, 32), np.float32))
    np.save(tmp_path / "c.npy", np.array(condition))
    options = [behind_weights("If").save(tmp_path / "if"), "--no-output"]
    options += ["--input", f"x={tmp_path / 'x.npy'}", "--input", f"condition={tmp_path / 'c.npy'}"]
    done = invoke(*options, "--dump", tmp_path / "d", "--all")
    assert done.exit_code == 0, done.stderr
    rows = json.loads((tmp_path / "d" / "deconv-tensors.json").read_text())["tensors"]
    (row,) = [row for row in rows if row["name"] == "scaled"]
    assert row["within"] == ["outer", "then_body" if condition else "else_body"]
    numbers = np.arange(1, 33, dtype=np.float32)
    expected = 1.5 * numbers if condition else 1.5 + numbers
    found = np.load(tmp_path / "d" / row["file"])
    np.testing.assert_array_equal(found, np.broadcast_to(expected, (1, 4, 32)))


def test_a_part_of_a_body(given: list[object], tmp_path: Path) -> None:
    inner = "rows/body/columns/body"
    part = tmp_path / "part.xml"
    done = invoke_script(
        "cut", given[0], "--from", f"{inner}/item", "--to", f"{inner}/joined", "--output", part
    )
    assert done.exit_code == 0, done.stderr
    found = deconv_ir.load(part).run(np.float32([[3]]))
    np.testing.assert_array_equal(found["joined"], [[6]])


def test_a_part_from_a_body_to_the_network(given: list[object], tmp_path: Path) -> None:
    done = invoke_script(
        "cut", given[0], "--from", "rows/body/total", "--to", "rows", "--output", tmp_path / "p.xml"
    )
    assert done.exit_code == 2
    assert "must be tensors of the same body" in done.stderr


def test_an_unknown_name(given: list[object]) -> None:
    done = invoke(*given, "--until", "rows/body/none")
    assert done.exit_code == 2
    assert "there is no tensor or layer 'rows/body/none'" in done.stderr


def test_tensors_that_grow_from_run_to_run_are_named(tmp_path: Path) -> None:
    """Each run of the body doubles its state: the runs have no tensor of one shape."""
    ir = IR()
    x, start = ir.parameter("x", "3,1"), ir.parameter("start", "?,1")
    body = ir.body()
    body.parameter("row", "1,1")
    state = body.parameter("state", "?,1")
    body.result(body.layer("Concat", [state, state], {"axis": "0"}, name="twice"), name="out")
    ports = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0"/>'
        '<input external_port_id="1" internal_layer_id="1"/>'
        '<output external_port_id="2" internal_layer_id="3"/></port_map>'
        '<back_edges><edge from-layer="3" to-layer="1"/></back_edges>'
    )
    bodies = f"{ports}<body>{body.sections()}</body>"
    ir.result(ir.layer("TensorIterator", [x, start], bodies=bodies, name="rows"))
    np.save(tmp_path / "x.npy", np.zeros((3, 1), np.float32))
    np.save(tmp_path / "start.npy", np.ones((1, 1), np.float32))
    options = [ir.save(tmp_path), "--no-output", "--dump", tmp_path / "d", "--all"]
    for name in ("x", "start"):
        options += ["--input", f"{name}={tmp_path / name}.npy"]
    done = invoke(*options)
    assert done.exit_code == 0, done.stderr
    assert "of bodies, such as 'rows/body/state'" in done.stderr
    assert np.load(tmp_path / "d" / "rows.npy").shape == (8, 1)
