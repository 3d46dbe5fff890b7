"""CONTRIBUTING.md: the steps for a new elementwise operation are sufficient."""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from deconv_ir.ir.dtypes import from_numpy
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ops import base
from deconv_ir.ops.elementwise import unary
from deconv_ir.ops.examples import parse_example

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
BLOCKS = [textwrap.dedent(b).strip("\n") for b in re.findall(r"```\w+\n(.*?)```", TEXT, re.S)]
(LINE,) = (b for b in BLOCKS if b.startswith("unary("))
(ROW,) = (b for b in BLOCKS if b.startswith('("Sinh"'))


@pytest.mark.parametrize(
    ("line", "file"),
    [
        (LINE, "deconv_ir/ops/elementwise/unary.py"),
        (ROW, "tests/ops/elementwise/test_elementwise.py"),
    ],
)
def test_the_lines_shown_are_those_that_are_there(line: str, file: str) -> None:
    assert len(line.splitlines()) == 1
    assert file in TEXT
    assert line in [own.strip() for own in (ROOT / file).read_text().splitlines()]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_the_line_is_all_that_an_operation_takes(
    dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented line under a new name is enough, from registration to a result in place."""
    monkeypatch.setitem(base.REGISTRY, "Sinh2", {})
    made = eval(LINE.replace("Sinh", "Sinh2"), vars(unary))
    assert base.REGISTRY["Sinh2"] == {"opset1": made}
    _, given, expected = eval(ROW, {"math": math})[0]
    data = np.array(given, dtype)
    info = TensorInfo(data.shape, from_numpy(data.dtype))
    operation = made()
    assert operation.infer([info], Context()) == (info,)
    rounding = 4 * float(ml_dtypes.finfo(data.dtype).eps)
    (result,) = operation.execute([data], Context())
    assert result.dtype == data.dtype
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=rounding)
    assert operation.accepts_out([info], info)
    assert operation.overwritable([info], info) == (0,)
    operation.execute_into([data], Context(), data)
    np.testing.assert_array_equal(data, result)
    assert [parse_example(text).inputs[0].shape for text in made.examples] == [(2, 3)]
