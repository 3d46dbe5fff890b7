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


def colliding(folder: Path, slope: float) -> Path:
    """Three layers whose names give one file name, two of them with one name."""
    ir = IR()
    data = ir.layer("Exp", [ir.parameter("x", "6")], name="a/b")
    data = ir.layer("Negative", [data], name="a:b")
    data = ir.layer("PReLU", [data, ir.const(np.float32([slope]))], name="a:b")
    ir.result(ir.layer("Abs", [data], name="end"), "y")
    folder.mkdir(exist_ok=True)
    return ir.save(folder)


def test_dumps_of_both_sides(tmp_path: Path) -> None:
    """The tensors that --dump writes are those of the sides, and compare as before."""
    paths = [colliding(tmp_path / name, slope) for name, slope in (("one", 0.5), ("two", 0.25))]
    np.save(tmp_path / "x.npy", A)
    given = ["--input", tmp_path / "x.npy"]
    done = invoke_script("diff", *paths, *given, "--dump", tmp_path / "d")
    assert done.exit_code == 1, done.stderr
    assert "wrote 4 tensors of each side" in done.stderr
    for side, slope in (("A", 0.5), ("B", 0.25)):
        files = {file.name: np.load(file) for file in (tmp_path / "d" / side).glob("*.npy")}
        found = sorted(float(array[1]) for array in files.values())
        e = np.exp(np.float32(1))
        np.testing.assert_allclose(found, [-e, -slope * e, slope * e, e], rtol=1e-6)
    folders = [word for side in "AB" for word in ("--against", tmp_path / "d" / side)]
    done = invoke_script("diff", paths[0], *given, *folders)
    assert done.exit_code == 1, done.stderr
    assert done.stdout.startswith("B is wrong in layer 'a:b' (PReLU, "), done.stdout
    done = invoke_script("diff", *paths, *given, "--dump", tmp_path / "d")
    assert done.exit_code == 2
    assert "exists (use --force)" in done.stderr
