"""What mutated IRs found in the operations, each as small as it gets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR, deconvolution_ir

import deconv_ir

ONES = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


def test_output_shape_in_four_bits(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,2,2")
    w = ir.const(np.ones((1, 1, 1, 1), np.float32))
    wanted = ir.raw_const(b"\x22", "i4", (2,))
    ir.result(ir.layer("ConvolutionBackpropData", [x, w, wanted], ONES, names="y"))
    data = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    found = deconv_ir.load(ir.save(tmp_path)).run([data])["y"]
    np.testing.assert_array_equal(found, data)


def test_fewer_sizes_than_axes(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "1,2,3,4")
    sizes = ir.const(np.array([5], np.int64))
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    ir.result(ir.layer("Interpolate", [x, sizes], attributes, version="opset11"))
    with pytest.raises(deconv_ir.ShapeError, match="there are 4 axes, but 1 sizes"):
        deconv_ir.load(ir.save(tmp_path))


def test_a_range_of_no_type(tmp_path: Path) -> None:
    ir = IR()
    ends = [ir.const(np.array(n, np.int64)) for n in (0, 3, 1)]
    ir.result(ir.layer("Range", ends, {"output_type": "dynamic"}, version="opset4"))
    with pytest.raises(deconv_ir.ShapeError, match="output_type must name an element type"):
        deconv_ir.load(ir.save(tmp_path))


@pytest.mark.parametrize("kind", ["Parameter", "Result"])
def test_a_boundary_of_an_unknown_version(kind: str, tmp_path: Path) -> None:
    path = deconvolution_ir(attributes=ONES).save(tmp_path)
    text = path.read_text()
    path.write_text(text.replace(f'type="{kind}" version="opset1"', f'type="{kind}" version="9"'))
    with pytest.raises(deconv_ir.UnsupportedError, match=f"operation {kind} .version 9."):
        deconv_ir.load(path)
