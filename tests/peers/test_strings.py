"""Networks of strings in OpenVINO and here."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import deconv_ir

ov = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)

pytestmark = pytest.mark.peers

o13, o15 = (importlib.import_module(f"openvino.opset{number}") for number in (13, 15))
WORDS = np.array(["Intel", "OpenVINO", "", "ü x"])
STRINGS = (ov.Type.string, WORDS)
NUMBERS = [(ov.Type.i64, np.array(values)) for values in ([0, 1], [1, 3])]
BYTES = (ov.Type.u8, np.frombuffer(b"ABC", np.uint8))

# No slices: OpenVINO 2026.4 frees invalid memory after Slice of strings.
CASES = {
    "constant": (lambda i: o13.gather(o13.constant(ov.Tensor(WORDS)), i, 0), [NUMBERS[1]]),
    "reshape": (lambda x: o13.reshape(x, [2, 2], False), [STRINGS]),
    "gather": (lambda x: o13.gather(x, [3, 0], 0), [STRINGS]),
    "concat": (lambda x: o13.concat([x, x], 0), [STRINGS]),
    "unpack": (o15.string_tensor_unpack, [STRINGS]),
    "pack": (o15.string_tensor_pack, [*NUMBERS, BYTES]),
}


@pytest.mark.parametrize("name", CASES)
def test_strings(name: str, tmp_path: Path) -> None:
    build, given = CASES[name]
    parameters = [o13.parameter(list(array.shape), kind) for kind, array in given]
    for place, parameter in enumerate(parameters):
        parameter.output(0).set_names({f"in{place}"})
    node = build(*parameters)
    path = tmp_path / "model.xml"
    model = ov.Model([o13.result(output) for output in node.outputs()], parameters, "strings")
    ov.save_model(model, path, compress_to_fp16=False)
    arrays = [array for _, array in given]
    compiled = ov.Core().compile_model(path, "CPU")
    theirs = compiled([ov.Tensor(a) if a.dtype.kind == "U" else a for a in arrays])
    ours = deconv_ir.load(path).run(arrays)
    for mine, expected in zip(ours.values(), theirs.values(), strict=True):
        assert mine.tolist() == expected.tolist()
        assert deconv_ir.lint(path) == []
