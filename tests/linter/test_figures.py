"""Numbers that findings state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support import IR

import deconv_ir
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose


def findings(ir: IR, folder: Path, code: str) -> list[deconv_ir.Finding]:
    path = ir.save(folder)
    options = choose(severity="info")
    found = check_bytes(path.read_bytes(), str(path), options, path.with_suffix(".bin")).findings
    return [finding for finding in found if finding.code == code]


def test_layers_before_an_unneeded_one_are_counted_for_each(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "2")
    ir.result(ir.layer("ReLU", [x]))
    ir.layer("Abs", [ir.layer("Exp", [ir.layer("Tanh", [x])])])
    ir.layer("Sinh", [x])
    first, second = findings(ir, tmp_path, "IR208")
    assert "nor that of 2 others before it" in first.message
    assert second.message == "no Result needs what this layer computes"
    assert (first.actual, second.actual) == (3, 1)


def test_the_smaller_of_two_pads_is_the_negative_one(tmp_path: Path) -> None:
    """5 positions and 3 taps give 7; two ends of 9 - 7 = 2 zeros, or one end of 1."""
    for requested, least in ((9, -1), (8, -1)):
        ir = IR()
        x, w = ir.parameter("x", "1,2,5"), ir.const(np.ones((2, 3, 3), np.float32))
        attributes = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"}
        inputs = [x, w, ir.const(np.array([requested]))]
        ir.result(
            ir.layer("ConvolutionBackpropData", inputs, attributes | {"auto_pad": "same_upper"})
        )
        (found,) = findings(ir, tmp_path, "IR602")
        assert found.actual == least


def test_reversed_ranges_of_some_channels(tmp_path: Path) -> None:
    ir = IR()
    low, high = (
        ir.const(np.array(ends, np.float32).reshape(1, 3, 1)) for ends in ([0, 2, 0], [1, 1, 1])
    )
    one = ir.const(np.ones((1, 1, 1), np.float32))
    zero = ir.const(np.zeros((1, 1, 1), np.float32))
    x = ir.parameter("x", "1,3,4")
    ir.result(ir.layer("FakeQuantize", [x, low, high, zero, one], {"levels": "16"}))
    (found,) = findings(ir, tmp_path, "IR804")
    assert "in 1 of 3 channels" in found.message
