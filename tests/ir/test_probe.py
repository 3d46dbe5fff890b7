"""The probe of the semantics, run through the command from file to file.

One axis, data = [1,2,3], filter = [1,10,100,1000], stride 2; the full output
is 1 10 102 1020 203 2030 300 3000.  Each row was worked out from the
documents (`spec`) and measured with the OpenVINO CPU runtime (`openvino`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke

from deconv_ir.ir.dtypes import parse_element_type

PROBE = [
    # auto_pad, output_shape, output_padding, pads, spec, openvino
    ("explicit", 5, 0, "0,0", "10 102 1020 203 2030", "1 10 102 1020 203"),
    ("explicit", 7, 0, "1,0", "1 10 102 1020 203 2030 300", "10 102 1020 203 2030 300 3000"),
    ("valid", 7, 1, "0,0", "10 102 1020 203 2030 300 3000", "1 10 102 1020 203 2030 300"),
    (
        "explicit",
        10,
        0,
        "1,0",
        "0 1 10 102 1020 203 2030 300 3000 0",
        "10 102 1020 203 2030 300 3000 0 0 0",
    ),
    ("same_upper", 5, 0, "3,2", "102 1020 203 2030 300", "102 1020 203 2030 300"),
    ("same_lower", 5, 0, "3,2", "10 102 1020 203 2030", "10 102 1020 203 2030"),
    (
        "same_upper",
        10,
        0,
        "3,2",
        "0 1 10 102 1020 203 2030 300 3000 0",
        "1 10 102 1020 203 2030 300 3000 0 0",
    ),
    (
        "same_upper",
        10,
        1,
        "3,2",
        "1 10 102 1020 203 2030 300 3000 0 0",
        "1 10 102 1020 203 2030 300 3000 0 0",
    ),
    (
        "same_upper",
        None,
        1,
        "3,2",
        "1 10 102 1020 203 2030 300 3000 0",
        "1 10 102 1020 203 2030 300 3000 0",
    ),
]


@pytest.mark.parametrize("element_type", ["f32", "f16", "bf16", "f64", "i32", "u16"])
@pytest.mark.parametrize("semantics", ["spec", "openvino"])
@pytest.mark.parametrize("row", PROBE, ids=lambda r: f"{r[0]}-{r[1]}-{r[2]}-{r[3]}")
def test_probe(row: tuple, semantics: str, element_type: str, tmp_path: Path) -> None:
    auto_pad, output, output_padding, pads, spec, openvino = row
    ir = IR()
    x = ir.parameter("x", "1,1,3", element_type)
    known = parse_element_type(element_type)
    dtype = known.numpy()
    inputs = [x, ir.const(np.array([1, 10, 100, 1000]).reshape(1, 1, 4).astype(dtype))]
    if output is not None:
        inputs.append(ir.const(np.array([output], np.int64)))
    begin, end = pads.split(",")
    y = ir.layer(
        "ConvolutionBackpropData",
        inputs,
        {
            "strides": "2",
            "dilations": "1",
            "pads_begin": begin,
            "pads_end": end,
            "auto_pad": auto_pad,
            "output_padding": str(output_padding),
        },
        outputs=(f"1,1,{output}" if output else "1,1,9",),
        name="up",
        precision=known.ir_name,
    )
    ir.result(y)
    data = np.array([1, 2, 3]).reshape(1, 1, 3).astype(dtype)
    if element_type == "bf16":
        data = data.view("V2")
    np.save(tmp_path / "x.npy", data)
    out = tmp_path / "y.npy"
    done = invoke(
        ir.save(tmp_path),
        "--input",
        tmp_path / "x.npy",
        "--output",
        out,
        "--semantics",
        semantics,
    )
    assert done.exit_code == 0, done.output
    found = np.load(out)
    found = found.view(dtype) if element_type == "bf16" else found
    expected = np.array((spec if semantics == "spec" else openvino).split(), np.float64)
    assert found.ravel().tolist() == expected.astype(dtype).tolist()
    # One line reports a difference between the two, with the option that chooses.
    lines = done.stderr.splitlines()
    said = [x for x in lines if "the OpenVINO runtime" in x and "rounds to f16" not in x]
    assert len(said) == (spec != openvino)
    assert all("--semantics" in line and "'up'" in line for line in said)
