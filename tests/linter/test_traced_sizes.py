"""IR417: a layer with a constant part fits at the size with which the model was traced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

from .drawn import declared

OPTIONS = choose(select=["IR417"])
PADS = {"dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}


def network(kind: str, fixed: tuple[int, ...], strides: int, larger: bool = False) -> IR:
    """Join a convolution of an image of any size with a constant."""
    ir = IR()
    x = ir.parameter("x", "1,2,?,?")
    filter_ = ir.const(np.ones((2, 2, 3, 3), np.float32))
    y = ir.layer("Convolution", [x, filter_], {"strides": f"{strides},{strides}", **PADS})
    parts = [y, ir.const(np.ones(fixed, np.float32))]
    if larger:
        other = ir.const(np.ones((2, 2, 1, 1), np.float32))
        parts.append(ir.layer("Convolution", [x, other], {"strides": "1,1", **PADS}))
    ir.result(ir.layer(kind, parts, {"axis": "1"} if kind == "Concat" else {}))
    return ir


@pytest.mark.parametrize(
    ("kind", "fixed", "strides", "larger", "count"),
    [
        ("Add", (1, 2, 4, 6), 1, False, 0),
        ("Add", (1, 2, 4, 6), 4, False, 0),
        ("Concat", (1, 3, 9, 11), 1, False, 0),
        ("Concat", (1, 3, 9, 11), 2, False, 0),
        ("Concat", (1, 3, 9, 11), 1, True, 1),  # the two that vary never have equal extents
    ],
)
def test_sizes(
    kind: str, fixed: tuple[int, ...], strides: int, larger: bool, count: int, tmp_path: Path
) -> None:
    ir = network(kind, fixed, strides, larger)
    (tmp_path / "m.bin").write_bytes(bytes(ir.weights))
    text = declared(ir).encode()
    assert len(check_bytes(text, "m.xml", OPTIONS, tmp_path / "m.bin").findings) == count
