"""Tensors and times of layers in the bodies of If, Loop and TensorIterator on the page.

The oracles are loops in the tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deconv_cli.show.results import draw_tensors, profile
from support import IR, invoke_script

import deconv_ir
from deconv_ir.drawing.graph.bodies import flatten
from deconv_ir.ir.infer import infer
from tests.ops.control_flow.test_variables import loop

FIXTURES = Path(__file__).parents[2] / "fixtures"
MAX_BYTES = 1 << 20
X, START, SCALE = (
    np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    for seed, shape in enumerate([(5, 3), (1, 3), (1, 3)])
)


class Shown:
    """The pictures and times of a model with bodies, by the names of its layers."""

    def __init__(self, model: deconv_ir.Model) -> None:
        self.model = model
        outputs = infer(model.graph, model.context, collect=True).outputs
        self.flat = flatten(model.graph, outputs, model.context)
        self.names = [layer.name for layer in self.flat.graph.layers]

    def draw(
        self, arrays: dict[str, np.ndarray], others: dict[str, np.ndarray] | None = None
    ) -> tuple[dict[str, Any], dict[str, list[int]]]:
        parts = self.flat.parts
        pictures, runs = draw_tensors(self.model, arrays, others, MAX_BYTES, None, parts)
        self.missing = pictures.pop("", 0)
        drawn = {self.names[int(key.partition(":")[0])]: made for key, made in pictures.items()}
        owners = {f"{p.owner}:{p.body.name}": f"{self.names[p.owner]}:{p.body.name}" for p in parts}
        return drawn, {owners[key]: times for key, times in runs.items()}


def line(picture: dict[str, Any]) -> np.ndarray:
    """Return the points of the only line of a picture, which has four digits."""
    (points,) = picture["line"]
    return np.array(points)


def close(values: np.ndarray) -> Any:
    return pytest.approx(values.ravel(), rel=1e-3, abs=1e-3)


def totals(x: np.ndarray, start: np.ndarray) -> list[np.ndarray]:
    """total = x[k] * scale + total."""
    found = [start]
    for row in x:
        found.append(row[None] * SCALE + found[-1])
    return found


def test_the_last_iteration_of_a_loop_is_drawn() -> None:
    shown = Shown(deconv_ir.load(FIXTURES / "bodies/loop.xml"))
    arrays = dict(zip(shown.model.inputs, (X, START, SCALE), strict=True))
    pictures, runs = shown.draw(arrays)
    assert runs == {"Loop_53:body": [5]}
    before, last = totals(X, START)[-2:]
    for name, values in {
        "Parameter_37": X[-1], "Parameter_38": before, "Parameter_39": SCALE,
        "Multiply_41": X[-1:] * SCALE, "Add_42": last, "Relu_46": np.maximum(last, 0),
    }.items():  # fmt: skip
        (picture,) = pictures[name]
        assert line(picture) == close(values)

    others = arrays | {next(iter(arrays)): X + 1}
    pictures, runs = shown.draw(arrays, others)
    assert runs == {"Loop_53:body": [5, 5]}
    first, second, difference = pictures["Add_42"]
    assert line(first) == close(last)
    assert line(second) == close(totals(X + 1, START)[-1])
    assert line(difference) == close(5 * SCALE)


def test_a_branch_in_a_loop_with_a_variable(tmp_path: Path) -> None:
    """The then_body of the If adds x to a variable in each iteration; the else_body never runs."""
    shown = Shown(deconv_ir.load(loop(nested=True).save(tmp_path), warn=False))
    x = np.array([[1, 2]], np.float32)
    arrays = dict(zip(shown.model.inputs, (np.array(3), x), strict=True))
    pictures, runs = shown.draw(arrays)
    assert runs == {"sums:body": [3], "choice:then_body": [1], "choice:else_body": [0]}
    assert line(pictures["read total"][0]) == close(2 * x)
    assert line(pictures["add total"][0]) == close(3 * x)

    others = dict(zip(shown.model.inputs, (np.array(0), x), strict=True))
    pictures, runs = shown.draw(arrays, others)
    assert runs["sums:body"] == [3, 0]
    assert [picture["title"] for picture in pictures["add total"]] == ["first input"]
    pictures, runs = shown.draw(others)
    assert runs == {"sums:body": [0]}
    assert "add total" not in pictures
    assert shown.missing == 1  # the output of the loop, which is empty


def test_a_body_that_does_not_run_lacks_no_picture() -> None:
    shown = Shown(deconv_ir.load(FIXTURES / "bodies/if.xml"))
    arrays = {
        name: np.zeros(port.shape, port.element_type.numpy())
        for name, port in shown.model.inputs.items()
    }
    pictures, runs = shown.draw(arrays)
    assert sorted(runs.values()) == [[0], [1]]
    assert pictures
    assert not shown.missing


def test_times_are_summed_over_iterations() -> None:
    shown = Shown(deconv_ir.load(FIXTURES / "bodies/loop.xml"))
    arrays = dict(zip(shown.model.inputs, (X, START, SCALE), strict=True))
    found = profile(shown.model, arrays, shown.flat.parts)
    rows = {shown.names[index]: row for index, row in found["layers"].items()}
    counts = {name: (row[1], row[3]) for name, row in rows.items()}
    # A product and a sum of three elements, and three elements, in each of five iterations.
    assert counts == {"Loop_53": (None, 1), "Add_42": (5 * 6, 5), "Relu_46": (5 * 3, 5)}
    assert rows["Add_42"][0] + rows["Relu_46"][0] <= rows["Loop_53"][0] <= found["seconds"]


def f16_loop() -> IR:
    """A TensorIterator of f16 that sums the rows of x."""
    ir = IR()
    x, start = ir.parameter("x", "4,8", "f16"), ir.const(np.zeros((1, 8), np.float16))
    body = ir.body()
    part, total = (body.parameter(name, "1,8", "f16") for name in "pt")
    made = {"outputs": ("1,8",), "precision": "FP16"}
    body.result(body.layer("Add", [part, total], name="sum", **made))
    ports = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" stride="1" '
        'part_size="1"/><input external_port_id="1" internal_layer_id="1"/>'
        '<output external_port_id="2" internal_layer_id="3"/></port_map>'
        '<back_edges><edge from-layer="3" to-layer="1"/></back_edges>'
    )
    inside = f"{ports}<body>{body.sections()}</body>"
    ir.result(ir.layer("TensorIterator", [x, start], bodies=inside, **made))
    return ir


def test_layers_that_semantics_add_are_not_on_the_page(tmp_path: Path) -> None:
    """OpenVINO computes f16 in f32: its Converts take no index of a layer in the file."""
    path = f16_loop().save(tmp_path)
    x = np.arange(32, dtype=np.float16).reshape(4, 8)
    np.save(tmp_path / "x.npy", x)
    pages = []
    for semantics in ("spec", "openvino"):
        page = tmp_path / f"{semantics}.html"
        options = ("--semantics", semantics, "--input", tmp_path / "x.npy", "--profile")
        done = invoke_script("show", path, *options, "--output", page)
        assert done.exit_code == 0, done.output
        text = page.read_text().partition('id="data">')[2].partition("</script>")[0]
        data: dict[str, Any] = json.loads(text)
        names = [layer["n"] for layer in data["layers"]]
        (picture,) = data["pictures"][f"{names.index('sum')}:0"]
        assert line(picture) == close(x.sum(axis=0))
        assert data["profile"]["layers"][str(names.index("sum"))][3] == 4
        pages.append(set(data["pictures"]))
    assert pages[0] == pages[1]
