"""Attributes that have no effect are not reported, and those next to them are.

Source: OpenVINO operation specifications, Convolution-1, ConvolutionBackpropData-1, MaxPool-1:
pads are ignored when `auto_pad` is specified; tests/peers/test_diff.py has files that OpenVINO
saves.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir

KINDS = {
    "Convolution": [(3, 2, 3, 3)],
    "GroupConvolution": [(2, 3, 1, 3, 3)],
    "ConvolutionBackpropData": [(2, 3, 3, 3)],
    "GroupConvolutionBackpropData": [(2, 1, 3, 3, 3)],
    "DeformableConvolution": [None, (3, 2, 3, 3)],
    "MaxPool": [],
    "AvgPool": [],
}
ZEROS = {"pads_begin": "0,0", "pads_end": "0,0"}
ONES = {"strides": "1,1", "dilations": "1,1"}


def window(folder: Path, kind: str, attributes: dict[str, str]) -> Path:
    ir = IR()
    inputs = [ir.parameter("x", "1,2,9,9")]
    for number, shape in enumerate(KINDS[kind]):
        if shape is None:
            inputs.append(ir.parameter("offsets", "1,18,?,?"))
        else:
            inputs.append(ir.const(np.ones(shape, np.float32), f"w{number}"))
    if "Pool" in kind:
        attributes = {"kernel": "3,3", "exclude-pad": "false"} | attributes
        attributes.pop("dilations", None)
    ir.result(ir.layer(kind, inputs, attributes, name="window"), "y")
    folder.mkdir()
    return ir.save(folder)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (ZEROS | ONES, {}, []),
        (ONES, ZEROS, []),
        ({"auto_pad": "explicit"}, ZEROS, []),
        ({"auto_pad": "same_upper"}, {"auto_pad": "same_upper", **dict.fromkeys(ZEROS, "1,1")}, []),
        (
            {"auto_pad": "same_lower", **dict.fromkeys(ZEROS, "1,1")},
            {"auto_pad": "same_lower", **dict.fromkeys(ZEROS, "2,0")},
            [],
        ),
        ({"auto_pad": "valid"} | ZEROS, {"auto_pad": "valid", "pads_begin": "2,1"}, []),
        (
            {"auto_pad": "valid"},
            {"auto_pad": "explicit", "pads_begin": "2,1"},
            ["pads_begin: none in A, 2,1 in B", "auto_pad: valid in A, explicit in B"],
        ),
        ({}, {"pads_end": "0,1"}, ["pads_end: none in A, 0,1 in B"]),
        ({"strides": "1,1"}, {"strides": "2,1"}, ["strides: 1,1 in A, 2,1 in B"]),
    ],
)
def test_windows(
    kind: str, a: dict[str, str], b: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    """Differences are found from either side, whatever the order of the attributes."""
    paths = window(tmp_path / "a", kind, a), window(tmp_path / "b", kind, b)
    found = [str(d).partition(": ")[2] for d in deconv_ir.diff(*paths).differences]
    assert sorted(found) == sorted(expected)
    assert bool(deconv_ir.diff(*reversed(paths)).differences) == bool(expected)


def test_output_padding(tmp_path: Path) -> None:
    kind = "ConvolutionBackpropData"
    paths = [
        window(tmp_path / str(number), kind, attributes)
        for number, attributes in enumerate(
            ({}, {"output_padding": "0,0"}, {"strides": "2,2", "output_padding": "0,1"})
        )
    ]
    assert deconv_ir.diff(paths[0], paths[1]).equal
    assert len(deconv_ir.diff(paths[0], paths[2]).differences) >= 2


def test_a_renamed_layer_with_void_pads_is_the_same_layer(tmp_path: Path) -> None:
    paths = [
        window(tmp_path / name, "Convolution", {"auto_pad": "same_upper", "pads_begin": pads})
        for name, pads in (("a", "1,1"), ("b", "0,0"))
    ]
    paths[1].write_text(paths[1].read_text().replace('name="window"', 'name="other"'))
    (found,) = deconv_ir.diff(*paths).differences
    assert found.aspect is deconv_ir.Aspect.NAME
