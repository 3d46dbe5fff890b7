"""Models with layers that run their own graphs: differences inside these are named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from tests.ops.control_flow.test_loops import back_edges, cut, joints
from tests.ops.control_flow.test_variables import loop
from tests.support import IR, invoke_script


def iterator(
    folder: Path, *, scale: float = 2.0, axis: str = "0", kind: str = "Add", carried: int = 0
) -> Path:
    """A TensorIterator within a TensorIterator: slices of x times a constant, and their sum."""
    ir = IR()
    x, start = ir.parameter("x", "4,2"), ir.parameter("start", "1,2")
    body = ir.body()
    piece, state = body.parameter("piece", "1,2"), body.parameter("state", "1,2")
    inner = body.body()
    item = inner.parameter("item", "1,1")
    factor = inner.const(np.array([[scale]], np.float32), name="factor")
    scaled = inner.layer("Multiply", [item, factor], name="scaled")
    back = inner.result(inner.layer("Concat", [scaled], {"axis": axis}, name="joined"))
    ports = joints(("input", 0, item[0], cut(1)), ("output", 1, back[0], cut(1)))
    text = f"{ports}<body>\n{inner.sections()}</body>\n"
    row = body.layer("TensorIterator", [piece], name="columns", bodies=text)
    total = body.layer(kind, [row, state], name="total")
    ends = [body.result(total, name="sum"), body.result(row, name="row")]
    ports = joints(
        ("input", 0, piece[0], cut()), ("input", 1, state[0], ""), ("output", 2, ends[0][0], "")
    )
    text = f"{ports}{back_edges((ends[carried], state))}<body>\n{body.sections()}</body>\n"
    ir.result(ir.layer("TensorIterator", [x, start], name="rows", bodies=text))
    folder.mkdir()
    return ir.save(folder)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        (
            {"scale": 2.5},
            [
                "rows/body: columns/body: 'factor' (Const, id 1): 1 of 1 elements differ, the "
                "largest difference is 0.5 where the largest magnitude is 2"
            ],
        ),
        (
            {"axis": "1"},
            ["rows/body: columns/body: 'joined' (Concat, id 3): axis: 0 in A, 1 in B"],
        ),
        (
            {"kind": "Maximum"},
            ["rows/body: 'total' (Add, id 3): type: Add in A, Maximum in B"],
        ),
        (
            {"carried": 1},
            ["'rows' (TensorIterator, id 2): port map or back edges of the body differ"],
        ),
    ],
)
def test_differences(changed: dict[str, object], expected: list[str], tmp_path: Path) -> None:
    a, b = iterator(tmp_path / "a"), iterator(tmp_path / "b", **changed)  # type: ignore[arg-type]
    assert [str(found) for found in deconv_ir.diff(a, b).differences] == expected


def test_a_tolerance_of_weights_holds_in_bodies(tmp_path: Path) -> None:
    a, b = iterator(tmp_path / "a"), iterator(tmp_path / "b", scale=2.001)
    assert deconv_ir.diff(a, b).differences
    assert deconv_ir.diff(a, b, weights_tolerance=1e-2).equal
    assert deconv_ir.diff(a, b, ignore=["weights"]).equal


def behind_weights(kind: str) -> IR:
    """Behind 4000 bytes of other weights, `kind` multiplies rows of x [4,32] by 1, 2, ... 32.

    The constants of an If are in both branches, where the second one adds them.
    """
    ir = IR()
    x = ir.parameter("x", "4,32")
    ir.const(np.ones(1000, np.float32), "unused")
    start = ir.layer("Add", [x, ir.const(np.full(32, 0.5, np.float32))], name="start")
    numbers = np.arange(1, 33, dtype=np.float32)
    bodies = [ir.body() for _ in range(2 if kind == "If" else 1)]
    ends = []
    for body, work in zip(bodies, ("Multiply", "Add"), strict=False):
        inner = body
        if kind == "nested":
            inner = body.body()
        piece = inner.parameter("piece", "?,32")
        found = inner.layer(work, [piece, inner.const(numbers, "numbers")], name="scaled")
        end = inner.result(found)
        if kind == "nested":
            ports = joints(("input", 0, piece[0], cut()), ("output", 1, end[0], cut()))
            text = f"{ports}<body>\n{inner.sections()}</body>\n"
            piece = body.parameter("piece", "?,32")
            end = body.result(body.layer("TensorIterator", [piece], name="rows", bodies=text))
        ends.append((piece, end))
    if kind == "If":
        given = [ir.parameter("condition", "", "boolean"), start]
        text = "".join(
            joints(("input", 1, piece[0], ""), ("output", 2, end[0], "")).replace(
                "port_map", f"{name}_port_map"
            )
            + f"<{name}_body>\n{body.sections()}</{name}_body>\n"
            for name, body, (piece, end) in zip(("then", "else"), bodies, ends, strict=True)
        )
    else:
        ((piece, end),) = ends
        trips = [ir.const(np.array(4)), ir.const(np.array([True]))] if kind == "Loop" else []
        given = [*trips, start]
        ports = [("input", len(trips), piece[0], cut()), ("output", len(given), end[0], cut())]
        if kind == "Loop":
            go = bodies[0].result(bodies[0].const(np.array([True])))
            ports.append(("output", -1, go[0], 'purpose="execution_condition"'))
        text = f"{joints(*ports)}<body>\n{bodies[0].sections()}</body>\n"
    type_ = "TensorIterator" if kind == "nested" else kind
    version = {"If": "opset8", "Loop": "opset5"}.get(kind, "opset1")
    ir.result(ir.layer(type_, given, name="outer", version=version, bodies=text), "y")
    return ir


@pytest.mark.parametrize("kind", ["TensorIterator", "nested", "Loop", "If"])
def test_constants_of_bodies_go_with_a_part(kind: str, tmp_path: Path) -> None:
    path = behind_weights(kind).save(tmp_path)
    part = deconv_ir.cut(path, tmp_path / "part.xml", start="start", end="outer")
    assert 0 < part.weight_bytes < 500  # 128 for the numbers, shared by both branches of an If
    x = np.random.default_rng(1).standard_normal((4, 32)).astype(np.float32)
    numbers = np.arange(1, 33, dtype=np.float32)
    model = deconv_ir.load(tmp_path / "part.xml", strict=True)
    for condition in (True, False) if kind == "If" else (None,):
        given = {"start": x} | ({} if condition is None else {"condition": np.array(condition)})
        expected = x + numbers if condition is False else x * numbers
        np.testing.assert_array_equal(model.run(given)["outer"], expected)
    deconv_ir.cut(path, tmp_path / "noise.xml", start="start", strip_weights=0)
    assert numbers.tobytes() in (tmp_path / "part.bin").read_bytes()
    assert numbers.tobytes() not in (tmp_path / "noise.bin").read_bytes()


@pytest.mark.parametrize("kind", ["TensorIterator", "nested", "Loop", "If"])
def test_networks_with_bodies_run_layer_by_layer(kind: str, tmp_path: Path) -> None:
    path = behind_weights(kind).save(tmp_path)
    x = np.random.default_rng(1).standard_normal((4, 32)).astype(np.float32)
    given = {"x": x} | ({"condition": np.array(True)} if kind == "If" else {})
    scaled = (x + np.float32(0.5)) * np.arange(1, 33, dtype=np.float32)
    assert deconv_ir.diff(path, path, given).equal
    assert deconv_ir.diff(path, None, given, against={"outer": scaled}).equal
    wrong = deconv_ir.diff(path, None, given, against={"start": x + 0.5, "outer": scaled + 1})
    assert wrong.culprit is not None
    assert wrong.culprit.tensor.name == "outer"


def test_variables_of_bodies_last_from_iteration_to_iteration(tmp_path: Path) -> None:
    """A Loop adds x to a variable of its body in each of three iterations."""
    path = loop().save(tmp_path)
    x = np.array([[1, 2]], np.float32)
    given = {"trips": np.array(3), "x": x}
    expected = np.concatenate([x, 2 * x, 3 * x])
    assert deconv_ir.diff(path, None, given, against={"sums": expected}).equal


def test_bisection_of_a_network_with_bodies(tmp_path: Path) -> None:
    path = behind_weights("nested").save(tmp_path)
    x = np.random.default_rng(1).standard_normal((4, 32)).astype(np.float32)

    def tool(part: Path, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = deconv_ir.load(part, strict=True).run(arrays)
        return {name: array + (name == "outer") for name, array in found.items()}

    found = deconv_ir.bisect(path, tool, x)
    assert found.culprit is not None
    assert found.culprit.tensor.name == "outer"


def test_pictures_of_a_network_with_bodies(tmp_path: Path) -> None:
    path = behind_weights("nested").save(tmp_path)
    page = tmp_path / "page.html"
    done = invoke_script(
        "show", path, "--random-inputs", 0, "--profile", "--against", path, "--output", page
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.search(r'"n":"outer".*"pictures":{.*"4:0":', page.read_text())


@pytest.mark.parametrize(
    "command",
    [
        ("cut", "--from", "{}", "--output", "part.xml"),
        ("cut", "--to", "{}", "--output", "part.xml"),
        ("run", "--output-layer", "{}", "--random-inputs", 0),
        ("run", "--until", "{}", "--random-inputs", 0),
        ("run", "--layer", "{}", "--random-inputs", 0),
    ],
)
@pytest.mark.parametrize("name", ["scaled", "scaled.0"])
def test_a_layer_of_a_body_is_refused_with_its_place(
    command: tuple[object, ...], name: str, tmp_path: Path
) -> None:
    path = iterator(tmp_path / "a")
    (line,) = [n for n, x in enumerate(path.read_text().split("\n"), 1) if '"scaled"' in x]
    done = invoke_script(command[0], path, *(str(x).format(name) for x in command[1:]))
    assert done.exit_code == 2
    assert done.stderr == (
        f"error: {path}:{line}: layer 'scaled' (Multiply, id 2): it is inside "
        "'rows/body/columns/body'; only layers and tensors of the network itself can be named here "
        "(the network has the layer 'rows')\n"
    )


def test_names_of_the_network_come_before_those_of_bodies(tmp_path: Path) -> None:
    ir = behind_weights("If")
    path = ir.save(tmp_path)
    path.write_text(path.read_text().replace('name="start"', 'name="scaled"'))
    x = np.ones((4, 32), np.float32)
    found = deconv_ir.load(path).run([x, np.array(True)], outputs="scaled")["scaled"]
    np.testing.assert_array_equal(found, x + np.float32(0.5))
