"""Models without inputs, and models with other constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke_script

import deconv_ir

A, B = np.arange(6, dtype=np.float32), np.float32([1, 2, 3, 4, 5, 6])


def table(folder: Path, *, given: bool = False, kind: str = "Add") -> Path:
    """The sum of two constants, or of an input and one."""
    ir = IR()
    first = ir.parameter("x", "6") if given else ir.const(A, "a")
    ir.result(ir.layer(kind, [first, ir.const(B, "b")], name="sum"), "y")
    folder.mkdir(exist_ok=True)
    return ir.save(folder)


@pytest.mark.parametrize("second", ["model", "dump"])
@pytest.mark.parametrize("wrong", [False, True])
def test_a_model_without_inputs(second: str, wrong: bool, tmp_path: Path) -> None:
    path = table(tmp_path / "a")
    if second == "model":
        other = [table(tmp_path / "b", kind="Subtract" if wrong else "Add"), "--verdict", "always"]
    else:
        (tmp_path / "d").mkdir()
        np.save(tmp_path / "d" / "sum.npy", A - B if wrong else A + B)
        other = ["--against", tmp_path / "d"]
    done = invoke_script("diff", path, *other)
    assert done.exit_code == wrong, done.stderr
    assert ("1 of 1 tensors are out of tolerance" in done.stdout) is wrong


def test_the_verdict_on_a_model_without_inputs(tmp_path: Path) -> None:
    wrong = (A + B) * np.float32(1.01)
    verdict = deconv_ir.diff(table(tmp_path), against={"sum": wrong}, verdict=True).verdict
    assert verdict is not None
    assert verdict.sentence.startswith("arrays is wrong in layer 'sum' (Add, ")


@pytest.mark.parametrize("second", [True, False])
def test_other_constants(second: bool, tmp_path: Path) -> None:
    """--set changes both models: the sum of a tool that has the other constant agrees."""
    np.save(tmp_path / "b.npy", B * 2)
    np.save(tmp_path / "x.npy", A)
    other: list[object] = [table(tmp_path / "b", given=True)]
    if not second:
        (tmp_path / "d").mkdir()
        np.save(tmp_path / "d" / "sum.npy", A + 2 * B)
        other = ["--against", tmp_path / "d"]
    options = [*other, "--input", tmp_path / "x.npy", "--set", f"b={tmp_path / 'b.npy'}"]
    done = invoke_script("diff", table(tmp_path / "a", given=True), *options)
    assert done.exit_code == 0, done.stdout + done.stderr


def test_other_constants_need_arrays(tmp_path: Path) -> None:
    path = table(tmp_path, given=True)
    done = invoke_script("diff", path, path, "--set", "b=b.npy")
    assert done.exit_code == 2
    assert "--set compares tensors" in done.stderr


@pytest.mark.parametrize("differs", [False, True])
def test_a_verdict_where_tensors_differ(differs: bool, tmp_path: Path) -> None:
    given = {"sum": A + B + differs}
    found = deconv_ir.diff(table(tmp_path), against=given, verdict="auto")
    assert (found.verdict is not None) is differs
    assert len(found.tensors) == 1
