"""Conditions decide whether models are equal, and the exit code of deconv-diff."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke_script

import deconv_ir
from deconv_ir import InputError, SettingError

X = np.arange(1, 5, dtype=np.float32).reshape(1, 4)


def model(folder: Path, factor: float, *, outputs: tuple[str, ...] = ("y", "z")) -> str:
    """Save outputs x and 2 * factor * x, named by tensors."""
    folder.mkdir()
    ir = IR()
    x = ir.parameter("x", "1,4")
    for name, number in zip(outputs, (1.0, 2 * factor), strict=False):
        scale = ir.const(np.array([number], np.float32))
        ir.result(ir.layer("Multiply", [x, scale], name=name, names=name))
    return str(ir.save(folder))


@pytest.mark.parametrize(
    ("conditions", "failed"),
    [
        (["max_rel>0.2"], ["z"]),
        (["max_rel>0.3"], []),
        (["y: rms>0"], []),
        (["z: rms>1e9", "z:max_abs>1.9"], ["z"]),
        # out of tolerance are all four elements of z
        (["mismatches>3"], ["z"]),
        (["mismatches>4"], []),
        (["cosine<0.999"], []),
        (["psnr<30", "ulp>10"], ["z", "z"]),
    ],
)
def test_only_conditions_count(conditions: list[str], failed: list[str], tmp_path: Path) -> None:
    """z is 2 x and 2.5 x: relative errors of 0.25, absolute ones up to 2."""
    a, b = model(tmp_path / "a", 1.0), model(tmp_path / "b", 1.25)
    found = deconv_ir.diff(a, b, X, fail_if=conditions)
    assert [failure.name for failure in found.failures] == failed
    assert found.equal == (not failed)
    assert found.differences  # of the weights, which would make them different without conditions


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(("condition", "code"), [("z: snr<10", 0), ("z: snr<20", 1)])
def test_exit_codes_and_reports(condition: str, code: int, form: str, tmp_path: Path) -> None:
    """The error is a quarter of the signal: an SNR of 20 log10(4) = 12.04 dB."""
    a, b = model(tmp_path / "a", 1.0), model(tmp_path / "b", 1.25)
    np.save(tmp_path / "x.npy", X)
    result = invoke_script(
        "diff", a, b, "--input", tmp_path / "x.npy", "--fail-if", condition,
        "--format", form,
    )  # fmt: skip
    assert result.exit_code == code, result.output
    if form == "json":
        rows = json.loads(result.stdout)["failures"]
        assert [row["name"] for row in rows] == ["z"] * code
        assert all(row["value"] == pytest.approx(12.0412) for row in rows)
    else:
        expected = "output 'z': snr is 12.0412, which meets snr<20"
        assert (expected if code else "No output meets a condition of --fail-if.") in result.stdout


def test_another_shape_fails(tmp_path: Path) -> None:
    other = {"y": X, "z": np.ones((2, 2), np.float32)}
    found = deconv_ir.diff(model(tmp_path / "a", 1.0), None, X, against=other, fail_if=["rms>1e9"])
    assert [failure.name for failure in found.failures] == ["z"]


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, np.nan), (np.nan, 1.0), (1.0, np.inf), (np.inf, 1.0), (np.inf, -np.inf)]
)
@pytest.mark.parametrize(
    "condition", ["max_abs>1e9", "max_rel>1e9", "rms>1e9", "cosine<0.1", "snr<-1e9", "ulp>1e99"]
)
def test_what_is_not_finite_on_one_side_meets_each_condition(
    a: float, b: float, condition: str, tmp_path: Path
) -> None:
    sides = [{"y": np.array([[1, value, 2, 3]], np.float32)} for value in (a, b)]
    path = model(tmp_path / "a", 1.0, outputs=("y",))
    found = deconv_ir.diff(path, None, X, against=(sides[0], sides[1]), fail_if=[condition])
    assert [failure.name for failure in found.failures] == ["y"]
    same = deconv_ir.diff(path, None, X, against=(sides[0], sides[0]), fail_if=[condition])
    assert same.equal


def test_wrong_conditions(tmp_path: Path) -> None:
    a = model(tmp_path / "a", 1.0)
    with pytest.raises(SettingError, match=r"no output 'zz'; there are 'y', 'z'"):
        deconv_ir.diff(a, a, X, fail_if=["zz: rms>1"])
    with pytest.raises(SettingError, match="fail_if compares tensors, and requires inputs"):
        deconv_ir.diff(a, a, fail_if=["rms>1"])
    with pytest.raises(InputError, match="output 'z' was not compared"):
        deconv_ir.diff(a, None, X, against={"y": X}, fail_if=["rms>1"])
    result = invoke_script("diff", a, a, "--fail-if", "rms>1")
    assert result.exit_code == 2
    assert "--fail-if compares tensors" in result.stderr


def test_an_output_that_is_an_input_is_the_same_on_both_sides(tmp_path: Path) -> None:
    paths = []
    for name, factor in (("a", 2.0), ("b", 2.5)):
        ir = IR()
        x = ir.parameter("x", "1,4")
        ir.result(x)
        scale = ir.const(np.array([factor], np.float32))
        ir.result(ir.layer("Multiply", [x, scale], name="y", names="y"))
        (tmp_path / name).mkdir()
        paths.append(str(ir.save(tmp_path / name)))
    found = deconv_ir.diff(*paths, X, fail_if=["rms>0"])
    assert [failure.name for failure in found.failures] == ["y"]
    assert deconv_ir.diff(*paths, X, fail_if=["rms>9", "x: rms>0"]).equal
