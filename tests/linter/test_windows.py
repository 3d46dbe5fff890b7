"""Windows that OpenVINO 2026.4 refuses, or that its reader crashes on; measured with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

OPTIONS = choose(select=["IR312", "IR315"])


def pool(data: str, kernel: int, pad: int, *, exclude: bool = True, kind: str = "AvgPool") -> IR:
    """Build a pooling with a square kernel."""
    ir = IR()
    attributes = {
        "kernel": f"{kernel},{kernel}",
        "strides": "1,1",
        "pads_begin": f"{pad},0",
        "pads_end": f"0,{pad}",
    }
    if kind == "AvgPool":
        attributes["exclude-pad"] = str(exclude).lower()
    ir.result(ir.layer(kind, [ir.parameter("x", data)], attributes))
    return ir


def convolution(data: str, kernel: int, pads: str, kind: str = "Convolution", **more: str) -> IR:
    """Build a convolution of three channels with a square kernel."""
    ir = IR()
    shape = (4, 3) if kind == "Convolution" else (3, 2, 1)
    filter_ = ir.const(np.ones((*shape, kernel, kernel), np.float32))
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": pads, "pads_end": "0,0"}
    ir.result(ir.layer(kind, [ir.parameter("x", data), filter_], attributes | more))
    return ir


RANGE = "1,3,1..16,1..16"


@pytest.mark.parametrize(
    ("network", "attribute"),
    [
        (convolution(RANGE, 30, "0,0"), "pads_begin"),
        (convolution(RANGE, 17, "1,0"), "pads_begin"),  # the second axis has no pads
        (convolution(RANGE, 9, "0,0", dilations="2,2"), "pads_begin"),
        (convolution(RANGE, 17, "0,0", auto_pad="valid"), "pads_begin"),
        (convolution("1,3,16,16", 3, "-1,0"), "pads_begin"),
        (convolution("1,3,16,16", 3, "0,-1", "GroupConvolution"), "pads_begin"),
        (pool(RANGE, 90, 0), "kernel"),
        (pool(RANGE, 17, 0, kind="MaxPool"), "kernel"),
        (pool("1,3,16,16", 2, 2), "pads_begin"),
        (pool("1,3,?,?", 2, 3), "pads_begin"),
    ],
)
def test_wrong(network: IR, attribute: str, tmp_path: Path) -> None:
    (found,) = check_file(network.save(tmp_path), OPTIONS).findings
    assert (found.code, found.part.attribute) == ("IR315", attribute)


@pytest.mark.parametrize(
    "network",
    [
        convolution(RANGE, 16, "0,0"),
        convolution(RANGE, 30, "0,0", auto_pad="same_upper"),
        convolution("1,3,?,?", 30, "0,0"),
        convolution("1,3,16,16", 3, "-1,-1", auto_pad="valid"),  # the pads are ignored
        pool(RANGE, 2, 1),
        pool("1,3,16,16", 2, 3, exclude=False),
        pool("1,3,16,16", 2, 3, kind="MaxPool"),
    ],
)
def test_right(network: IR, tmp_path: Path) -> None:
    assert check_file(network.save(tmp_path), OPTIONS).findings == []


@pytest.mark.parametrize(
    ("version", "more", "codes"),
    [
        ("opset14", {}, []),
        ("opset16", {}, ["IR312"]),
        ("opset16", {"dilations": "1,1"}, []),
    ],
)
def test_dilations_of_avg_pool_16(
    version: str, more: dict[str, str], codes: list[str], tmp_path: Path
) -> None:
    ir = IR()
    attributes = {"kernel": "2,2", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    attributes |= {"exclude-pad": "false"} | more
    ir.result(ir.layer("AvgPool", [ir.parameter("x", "1,3,8,8")], attributes, version=version))
    assert [f.code for f in check_file(ir.save(tmp_path), OPTIONS).findings] == codes
