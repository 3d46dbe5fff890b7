"""NaN and infinity in weights: an error without --deep, found without NumPy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.linter import finite
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

BF16 = np.dtype(ml_dtypes.bfloat16)
NAN, INF = float("nan"), float("inf")


def is_found(ir: IR, folder: Path, *, deep: bool = False) -> bool:
    found = [f for f in deconv_ir.lint(ir.save(folder), deep=deep) if f.code == "IR507"]
    assert all(f.severity is deconv_ir.Severity.ERROR for f in found)
    return bool(found)


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", BF16], ids=str)
@pytest.mark.parametrize("value", [NAN, INF, -INF, "largest", "payload"])
def test_types(dtype: str, value: float | str, tmp_path: Path) -> None:
    """Each value is written over each element of a filter, one at a time."""
    largest = float(ml_dtypes.finfo(dtype).max)
    for index in range(6):
        array = np.linspace(-2, 2, 6).astype(dtype).reshape(2, 3, 1, 1)
        if value == "payload":  # the NaN with the fewest bits, negative
            bits = array.reshape(-1).view(f"u{array.itemsize}")
            infinity = np.array([-INF], array.dtype).view(bits.dtype)
            bits[index] = infinity[0] + 1
        else:
            array.reshape(-1)[index] = largest if value == "largest" else value
        ir = IR()
        ir.result(ir.layer("MatMul", [ir.parameter("x", "1,2"), ir.const(array)]))
        assert is_found(ir, tmp_path) is (value != "largest")


@pytest.mark.parametrize(
    ("kinds", "value", "default", "deep"),
    [
        (("MatMul",), -INF, True, True),
        (("Transpose", "MatMul"), -INF, True, True),
        (("Add",), -INF, False, False),  # a mask of attention
        (("Add",), INF, True, True),
        (("Add",), NAN, True, True),
        (("Reshape", "Multiply"), NAN, True, True),
        (("Select",), NAN, False, True),
        (("Maximum",), INF, False, True),  # no bound
        (("Result",), NAN, False, True),
    ],
)
def test_a_value_that_is_not_finite_is_judged_by_its_use(
    kinds: tuple[str, ...], value: float, default: bool, deep: bool, tmp_path: Path
) -> None:
    ir = IR()
    array = np.ones((4, 4), np.float32)
    array[2, 1] = value
    at = ir.const(array)
    for kind in kinds:
        if kind in ("Transpose", "Reshape"):
            order = [1, 0] if kind == "Transpose" else [4, 4]
            at = ir.layer(kind, [at, ir.const(np.array(order))], {"special_zero": "false"})
        elif kind != "Result":
            at = ir.layer(kind, [ir.parameter("x", "4,4"), at])
    ir.result(at)
    assert is_found(ir, tmp_path) is default
    assert is_found(ir, tmp_path, deep=True) is deep


def test_large_constants_wait_for_deep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Constants are searched in the order of the file while they fit into the bound."""
    monkeypatch.setattr(finite, "MAX_BYTES", 40)
    for place, default in ((0, True), (1, False), (2, True)):
        ir = IR()
        at = ir.parameter("x", "4")
        for number, count in enumerate((4, 40, 4)):
            array = np.ones(count, np.float32)
            array[-1] = NAN if number == place else 1
            at = ir.layer("Add", [at, ir.const(array)])
        ir.result(at)
        assert is_found(ir, tmp_path) is default
        assert is_found(ir, tmp_path, deep=True)


def test_masks_of_negative_infinity_are_counted_by_numpy(tmp_path: Path) -> None:
    ir = IR()
    array = np.full(2 * finite.MAX_MASKED, -INF, np.float16)
    ir.result(ir.layer("Add", [ir.parameter("x", "1", "f16"), ir.const(array)]))
    assert not is_found(ir, tmp_path)


def test_clean_weights_need_no_numpy(tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("Add", [ir.parameter("x", "4"), ir.const(np.ones(4, np.float32))]))
    code = (
        "import sys; from deconv_ir.linter.engine import check_file; "
        "from deconv_ir.linter.options import choose; "
        f"assert check_file({str(ir.save(tmp_path))!r}, choose()).reads; "
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_weights_of_bodies(tmp_path: Path) -> None:
    for path in sorted((Path(__file__).parents[1] / "fixtures/bodies").glob("*.xml")):
        text = path.read_text()
        starts = re.findall(
            r'element_type="f32" shape="[^"]+" offset="(\d+)"', text[text.index("body>") :]
        )
        data = bytearray(path.with_suffix(".bin").read_bytes())
        for start in map(int, starts):
            data[start : start + 4] = np.float32(NAN).tobytes()
        (tmp_path / "m.bin").write_bytes(data)
        findings = check_bytes(text.encode(), "m.xml", choose(), tmp_path / "m.bin").findings
        found = "IR507" in {f.code for f in findings}
        assert found is bool(starts), path.name
