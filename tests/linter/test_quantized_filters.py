"""IR803: scales along the input channels of a filter, in IRs and in oneDNN Graph files.

Filters: ConvolutionBackpropData [in, out, ...], Convolution [out, in, ...], GroupConvolution
[groups, out, in, ...], GroupConvolutionBackpropData [groups, in, out, ...] (OpenVINO operation
specifications); oneDNN: the letters of `weights_format` (oneDNN Graph, ConvTranspose).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onednn_forms import ZEROS, as_bytes, op, tensor, windows
from support import IR

import deconv_ir
from deconv_ir.findings import Finding
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

FILTERS = {
    "ConvolutionBackpropData": (4, 6, 3, 3),
    "Convolution": (6, 4, 3, 3),
    "GroupConvolution": (2, 3, 2, 3, 3),
    "GroupConvolutionBackpropData": (2, 2, 3, 3, 3),
}
WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


def is_found(
    kind: str,
    scales: tuple[int, ...],
    folder: Path,
    form: str = "Multiply",
    element_type: type = np.int8,
) -> bool:
    """Whether a convolution whose filter is scaled before or after it is moved has the finding."""
    return "IR803" in {f.code for f in findings(kind, scales, folder, form, element_type)}


def findings(
    kind: str,
    scales: tuple[int, ...],
    folder: Path,
    form: str = "Multiply",
    element_type: type = np.int8,
) -> list[Finding]:
    ir = IR()
    shape = FILTERS[kind]
    x = ir.parameter("x", "1,4,8,8")
    moved = form.partition(" ")[2]
    stored = shape
    if moved == "Transpose":
        stored = (*reversed(shape),)
    elif moved == "Reshape":
        stored = (shape[0] * shape[1], *shape[2:])
    at = ir.const(np.ones(stored, element_type))
    at = ir.layer("Convert", [at], {"destination_type": "f32"})
    factor = ir.const(np.ones(scales, np.float32))
    operation = form.split(" ", maxsplit=1)[0]
    if operation == "first":
        at = ir.layer("Multiply", [factor, at])
    elif operation == "FakeQuantize":
        at = ir.layer("FakeQuantize", [at, *[factor] * 4], {"levels": "255"})
    else:
        at = ir.layer(operation, [at, factor])
    if moved == "Transpose":
        order = ir.const(np.arange(len(shape))[::-1].copy())
        at = ir.layer("Transpose", [at, order])
    elif moved == "Reshape":
        at = ir.layer("Reshape", [at, ir.const(np.array(shape))], {"special_zero": "false"})
    ir.result(ir.layer(kind, [x, at], WINDOW))
    return list(deconv_ir.lint(ir.save(folder)))


@pytest.mark.parametrize(
    ("kind", "scales", "expected"),
    [
        ("ConvolutionBackpropData", (4, 1, 1, 1), "[1,6,1,1]"),
        ("Convolution", (1, 4, 1, 1), "[6,1,1,1]"),
    ],
)
def test_the_finding_names_the_shape_along_output_channels(
    kind: str, scales: tuple[int, ...], expected: str, tmp_path: Path
) -> None:
    (found,) = (f for f in findings(kind, scales, tmp_path) if f.code == "IR803")
    assert found.expected == expected


@pytest.mark.parametrize(
    ("kind", "scales", "wrong"),
    [
        ("ConvolutionBackpropData", (4, 1, 1, 1), True),
        ("ConvolutionBackpropData", (1, 6, 1, 1), False),
        ("ConvolutionBackpropData", (6, 1, 1), False),
        ("ConvolutionBackpropData", (4, 6, 1, 1), True),  # along both
        ("ConvolutionBackpropData", (1, 1, 1, 1), False),
        ("ConvolutionBackpropData", (), False),
        ("Convolution", (6, 1, 1, 1), False),
        ("Convolution", (1, 4, 1, 1), True),
        ("Convolution", (6, 4, 1, 1), True),
        ("GroupConvolution", (2, 3, 1, 1, 1), False),
        ("GroupConvolution", (2, 1, 2, 1, 1), True),
        ("GroupConvolutionBackpropData", (2, 1, 3, 1, 1), False),
        ("GroupConvolutionBackpropData", (1, 2, 1, 1, 1), True),
    ],
)
@pytest.mark.parametrize("form", ["Multiply", "first", "Divide", "Subtract", "FakeQuantize"])
def test_axes(kind: str, scales: tuple[int, ...], wrong: bool, form: str, tmp_path: Path) -> None:
    assert is_found(kind, scales, tmp_path, form) is wrong


@pytest.mark.parametrize(
    ("kind", "scales", "form", "wrong"),
    [
        ("ConvolutionBackpropData", (1, 1, 1, 4), "Multiply Transpose", True),
        ("ConvolutionBackpropData", (1, 1, 6, 1), "Multiply Transpose", False),
        ("ConvolutionBackpropData", (1, 1, 1, 4), "first Transpose", True),
        ("Convolution", (1, 1, 4, 1), "Divide Transpose", True),
        ("Convolution", (1, 1, 1, 6), "Divide Transpose", False),
        ("ConvolutionBackpropData", (24, 1, 1), "Multiply Reshape", True),
        ("GroupConvolution", (6, 1, 1, 1), "Multiply Reshape", False),
        ("GroupConvolution", (1, 2, 1, 1), "Multiply Reshape", True),
        ("GroupConvolution", (1, 2, 1, 1), "first Reshape", True),
    ],
)
def test_moved_filters(
    kind: str, scales: tuple[int, ...], form: str, wrong: bool, tmp_path: Path
) -> None:
    assert is_found(kind, scales, tmp_path, form) is wrong


@pytest.mark.parametrize(
    ("scales", "count"), [((4, 1, 4, 1), 0), ((4, 1, 1, 1), 0), ((4, 2, 1, 1), 1)], ids=str
)
def test_axes_of_extent_1_before_a_reshape(
    scales: tuple[int, ...], count: int, tmp_path: Path
) -> None:
    """[4,2,4,4] is stored for groups [4,2,1,4,4]: the 1 belongs to no axis that is stored.

    NNCF 3.4 gives rows of kernels scales of their own.
    """
    ir = IR()
    x = ir.parameter("x", "1,8,8,8")
    stored = (4, 2, 4, 4) if count else (4, 1, 4, 4)
    at = ir.layer("Convert", [ir.const(np.ones(stored, np.int8))], {"destination_type": "f32"})
    at = ir.layer("Multiply", [at, ir.const(np.ones(scales, np.float32))])
    shape = (4, 2, 1, 4, 4) if count else (4, 1, 1, 4, 4)
    at = ir.layer("Reshape", [at, ir.const(np.array(shape))], {"special_zero": "false"})
    if not count:
        x = ir.parameter("y", "1,4,8,8")
    ir.result(ir.layer("GroupConvolutionBackpropData", [x, at], WINDOW))
    (tmp_path / "m.bin").write_bytes(bytes(ir.weights))
    found = check_bytes(ir.xml().encode(), "m.xml", choose(), tmp_path / "m.bin").findings
    assert [f.code for f in found].count("IR803") == count


def test_factors_of_real_weights_are_no_scales(tmp_path: Path) -> None:
    """A Multiply of f32 weights, as of weight normalization, quantizes nothing."""
    for form, wrong in (("Multiply", False), ("FakeQuantize", True)):
        assert is_found("Convolution", (1, 4, 1, 1), tmp_path, form, np.float32) is wrong


def graph(kind: str, weights_format: str, axis: int, groups: int, times: int = 1) -> bytes:
    """Return a file with Dequantize of the weights along an axis: 4 inputs, 6 outputs a group.

    There are `times` as many scales as the axis is long.
    """
    letters = {"I": 4, "O": 6}
    if kind == "ConvTranspose":
        letters["I"] *= groups
    else:
        letters["O"] *= groups
    shape = [n for c in weights_format for n in ([letters[c]] if c != "X" else [3, 3])]
    extent = 10 if kind == "ConvTranspose" else 6
    padding = {"output_padding": ZEROS} if kind == "ConvTranspose" else {}
    count = shape[axis] * times
    dequantize = op(
        0,
        "Dequantize",
        [tensor(0, shape, "s8")],
        [tensor(1, shape)],
        scales=[0.5] * count,
        zps=[0] * count,
        qtype="per_channel",
        axis=axis,
    )
    window = windows([1, 1], [0, 0], [0, 0], weights_format=weights_format, groups=groups)
    convolution = op(
        1,
        kind,
        [tensor(2, [1, 4 * groups, 8, 8]), tensor(1, shape)],
        [tensor(3, [1, 6 * groups, extent, extent])],
        **window | padding,
    )
    return as_bytes(dequantize, convolution)


@pytest.mark.parametrize(
    ("kind", "weights_format"),
    [
        ("Convolution", "OIX"),
        ("Convolution", "XIO"),
        ("ConvTranspose", "IOX"),
        ("ConvTranspose", "XOI"),
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_onednn(kind: str, weights_format: str, groups: int) -> None:
    at = {c: weights_format.replace("X", "XX").index(c) for c in "IO"}
    for letter, axis in at.items():
        for number in (axis, axis - 4):
            data = graph(kind, weights_format, number, groups)
            found = check_bytes(data, "g.json", choose()).findings
            wanted = {"IR803"} if letter == "I" else set()
            assert {f.code for f in found} == wanted, (letter, number)


@pytest.mark.parametrize(("weights_format", "axis"), [("IOX", 1), ("XOI", 2), ("IOX", -3)])
@pytest.mark.parametrize("groups", [2, 3])
def test_scales_of_the_output_channels_of_all_groups(
    weights_format: str, axis: int, groups: int
) -> None:
    """oneDNN runs int8_convtranspose_post_ops_add_fusion, which has 16 scales for 16 groups."""
    data = graph("ConvTranspose", weights_format, axis, groups, times=groups)
    assert check_bytes(data, "g.json", choose()).findings == []


@pytest.mark.parametrize(("name", "value"), [("qtype", "per_row"), ("scales", "a")])
def test_wrong_attributes_are_reported_alone(name: str, value: object) -> None:
    data = json.loads(graph("ConvTranspose", "IOX", 0, 1))
    data["graph"][0]["attrs"][name]["value"] = value
    found = check_bytes(json.dumps(data).encode(), "g.json", choose()).findings
    assert found
    assert all(repr(name) in f.message for f in found)
