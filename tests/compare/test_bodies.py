"""Models with layers that run their own graphs: differences inside these are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from tests.ops.control_flow.test_loops import back_edges, cut, joints
from tests.support import IR


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
