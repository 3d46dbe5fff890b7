"""IR806: constants with an element for each channel that lie along another axis."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

OPTIONS = choose(select=["IR806"])


def network(shape: tuple[int, ...], kind: str, size: tuple[int, int] = (8, 8)) -> IR:
    """Build a convolution of 8 channels, and a layer that takes a constant of 8 elements."""
    ir = IR()
    x = ir.parameter("x", f"1,3,{size[0]},{size[1]}")
    filter_ = ir.const(np.ones((8, 3, 1, 1), np.float32))
    pads = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    y = ir.layer("Convolution", [x, filter_], pads)
    values = np.arange(1, 9, dtype=np.float32).reshape(shape)
    if kind == "FakeQuantize":
        bounds = [ir.const(sign * values) for sign in (-1, 1)] * 2
        y = ir.layer("FakeQuantize", [y, *bounds], {"levels": "256"})
    else:
        y = ir.layer(kind, [y, ir.const(values)])
    ir.result(y)
    return ir


@pytest.mark.parametrize("kind", ["Add", "Multiply", "FakeQuantize"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((8,), 3), ((1, 8), 3), ((1, 1, 1, 8), 3), ((8, 1), 2), ((1, 1, 8, 1), 2),
     ((8, 1, 1), 0), ((1, 8, 1, 1), 0)],
)  # fmt: skip
def test_axis(kind: str, shape: tuple[int, ...], axis: int, tmp_path: Path) -> None:
    found = check_file(network(shape, kind).save(tmp_path), OPTIONS).findings
    ports = {1, 2, 3, 4} if kind == "FakeQuantize" else {1}
    assert {f.part.port for f in found} == (ports if axis else set())
    assert all(f"along axis {axis} of" in f.message for f in found)


@pytest.mark.parametrize(("shape", "size"), [((8, 1), (8, 5)), ((1, 1, 1, 8), (5, 8))])
def test_other_extents(shape: tuple[int, ...], size: tuple[int, int], tmp_path: Path) -> None:
    """The other spatial axis does not matter."""
    assert len(check_file(network(shape, "Add", size).save(tmp_path), OPTIONS).findings) == 1
