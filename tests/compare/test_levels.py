"""Values on a rounding boundary of a quantised network.

FakeQuantize-1 of [0, 3] with 4 levels rounds to whole numbers: 0.5 and 1.5 are boundaries.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir

DATA = np.array([[0.0, 0.5, 1.2, 1.5]], np.float32)


def quantised(
    folder: Path, shift: float, factor: float = 10.0, last: float = 1.0, kind: str = "FakeQuantize"
) -> Path:
    """x + shift -> quantised -> * factor -> * last."""
    folder.mkdir()
    ir = IR()
    x = ir.parameter("x", "1,4")
    moved = ir.layer("Add", [x, ir.const(np.float32([shift]))], outputs=("1,4",), name="moved")
    ends = [ir.const(np.float32([[end]])) for end in (0, 3, 0, 3)]
    made = ir.layer(kind, [moved, *ends], {"levels": "4"}, outputs=("1,4",), name="fq")
    for name, value in (("ten", factor), ("last", last)):
        made = ir.layer(
            "Multiply", [made, ir.const(np.float32([value]))], outputs=("1,4",), name=name
        )
    ir.result(made, "y")
    return ir.save(folder)


def out(found: deconv_ir.ModelDifference) -> list[str]:
    return [tensor.name for tensor in found.tensors if not tensor.within]


@pytest.mark.parametrize(
    ("shift", "levels", "wrong"),
    [
        (1e-6, 0, ["fq", "ten", "last"]),  # 0.5 and 1.5 are rounded up, without the shift to even
        (1e-6, 1, []),
        (0.0, 0, []),
        (2.0, 1, ["moved", "fq", "ten", "last"]),  # up to two levels apart
        (2.0, 2, ["moved"]),
    ],
)
def test_elements_a_level_apart(
    shift: float, levels: int, wrong: list[str], tmp_path: Path
) -> None:
    a, b = quantised(tmp_path / "a", 0.0), quantised(tmp_path / "b", shift)
    found = deconv_ir.diff(a, b, DATA, levels=levels, ignore=["ids", "order", "weights"])
    assert out(found) == wrong
    if (shift, levels) == (1e-6, 1):
        (tensor,) = (tensor for tensor in found.tensors if tensor.name == "fq")
        assert tensor.note == "1 element one level apart"  # 1.5 is rounded to the even 2 anyway


@pytest.mark.parametrize(
    ("factor", "last", "wrong"), [(10.0, 2.0, ["last"]), (11.0, 1.0, ["ten", "last"])]
)
def test_a_fault_after_such_a_tensor_is_found(
    factor: float, last: float, wrong: list[str], tmp_path: Path
) -> None:
    a, b = quantised(tmp_path / "a", 0.0), quantised(tmp_path / "b", 1e-6, factor, last)
    found = deconv_ir.diff(a, b, DATA, levels=1)
    assert out(found) == wrong
    assert found.culprit is not None
    assert found.culprit.tensor.name == wrong[0]


def test_levels_of_a_command(tmp_path: Path) -> None:
    from support import invoke_script

    a, b = quantised(tmp_path / "a", 0.0), quantised(tmp_path / "b", 1e-6)
    np.save(tmp_path / "x.npy", DATA)
    arguments = ("diff", a, b, "--input", tmp_path / "x.npy", "--ignore", "ids,order,weights")
    assert invoke_script(*arguments).exit_code == 1
    done = invoke_script(*arguments, "--levels", 1)
    assert done.exit_code == 0, done.output
    assert (
        "--levels does not go"
        in invoke_script(
            "diff", a, "--bisect", "--against", "openvino", "--levels", 1, "--random-inputs", 0
        ).output
    )
