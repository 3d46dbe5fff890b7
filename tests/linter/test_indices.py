"""Constant indices outside of their axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import IR

from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

OPTIONS = choose(select=["IR511", "IR512"])


class Row(NamedTuple):
    """A layer that reads [4,3] at constant indices."""

    type: str
    version: str
    right: Any
    wrong: Any
    """Indices with one that is outside."""
    code: str = "IR511"
    more: tuple[Any, ...] = ()
    """Constants behind the indices."""
    attributes: dict[str, str] = {}  # noqa: RUF012 - a NamedTuple


NINES = np.full((1, 3), 9, np.float32)
ZERO = np.array(0)
ROWS = [
    Row("Gather", "opset1", [0, 3], [0, 4], more=(ZERO,)),
    Row("Gather", "opset1", [0, 3], [0, -1], more=(ZERO,)),
    Row("Gather", "opset7", [0, 3], [0, -1], more=(ZERO,)),
    Row("Gather", "opset7", [[0, 3]], [[0, 4]], more=(ZERO,)),
    Row("Gather", "opset8", [-4, 3], [0, 4], "IR512", (ZERO,)),
    Row("Gather", "opset8", [-3, 2], [-4, 2], "IR512", (np.array(-1),)),
    Row("GatherElements", "opset6", [[0, 3, -4]], [[0, 4, 1]], attributes={"axis": "0"}),
    Row("GatherElements", "opset6", [[2]] * 4, [[2]] * 3 + [[-4]], attributes={"axis": "1"}),
    Row("GatherND", "opset8", [[3, 2]], [[3, 3]]),  # the second number is along axis 1
    Row("GatherND", "opset5", [[2]] * 4, [[3]] * 4, attributes={"batch_dims": "1"}),
    Row("ScatterUpdate", "opset3", [3], [4], more=(NINES, ZERO)),
    Row("ScatterUpdate", "opset3", [0], [-1], more=(NINES, ZERO)),
    Row("ScatterElementsUpdate", "opset3", [[0, 1, 3]], [[0, 1, -5]], more=(NINES, ZERO)),
    Row("ScatterElementsUpdate", "opset12", [[0, 1, 3]], [[0, 1, 4]], more=(NINES, ZERO)),
    Row("ScatterNDUpdate", "opset4", [[3]], [[4]], more=(NINES,)),
    Row("ScatterNDUpdate", "opset15", [[-4]], [[-5]], more=(NINES,)),
    Row("EmbeddingBagOffsetsSum", "opset3", [0, 3], [0, 4], more=(np.array([0, 1]),)),
    Row("EmbeddingBagPackedSum", "opset3", [[0, 3]], [[0, -1]]),
    Row("EmbeddingSegmentsSum", "opset3", [0, 3], [0, 4], "IR511",
        (np.array([0, 1]), np.array(2))),
    Row("ReverseSequence", "opset1", [3, 1, 1, 2], [3, 0, 1, 2],
        attributes={"batch_axis": "0", "seq_axis": "1"}),
]  # fmt: skip


def of_row(row: Row, indices: Any) -> IR:
    """Build the network of a row."""
    ir = IR()
    x = ir.parameter("x", "4,3")
    inputs = [x, ir.const(np.array(indices)), *map(ir.const, row.more)]
    ir.result(ir.layer(row.type, inputs, row.attributes, version=row.version))
    return ir


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.type}-{row.version}")
def test_indices(row: Row, tmp_path: Path) -> None:
    assert check_file(of_row(row, row.right).save(tmp_path), OPTIONS).findings == []
    (found,) = check_file(of_row(row, row.wrong).save(tmp_path), OPTIONS).findings
    assert found.code == row.code
    assert found.actual in np.array(row.wrong)


def test_many_indices_are_read_from_the_bin(tmp_path: Path) -> None:
    """The second of two layers that differ only in the bytes of a constant."""
    many = np.arange(2000).reshape(1000, 2) % 4
    wrong = many.copy()
    wrong[999, 1] = 4
    ir = IR()
    x = ir.parameter("x", "4")
    for indices in (many, wrong):
        ir.result(ir.layer("Gather", [x, ir.const(indices), ir.const(ZERO)], version="opset7"))
    (found,) = check_file(ir.save(tmp_path), OPTIONS).findings
    assert (found.code, found.actual, found.part.layer) == ("IR511", 4, 7)


@pytest.mark.parametrize("data", ["?,3", "2..9,3"])
def test_extents_that_are_not_known(data: str, tmp_path: Path) -> None:
    ir = IR()
    inputs = [ir.parameter("x", data), ir.const(np.array([7])), ir.const(ZERO)]
    ir.result(ir.layer("Gather", inputs, version="opset8"))
    assert check_file(ir.save(tmp_path), OPTIONS).findings == []
