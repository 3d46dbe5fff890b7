"""Names of layers, tensors and original layers that contradict types and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import IR

from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

OPTIONS = choose(select=["IR813"], severity="info")

UP = {"dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
POOL = {"kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "strides": "2,2"}
SHAPED = {"shape_calculation_mode": "sizes"}
ROWS: list[tuple[str, str, str, dict[str, str], str]] = [
    # name, type, version, attributes, finding
    ("softmax_dim1", "SoftMax", "opset8", {"axis": "2"}, "axis 1 2"),
    ("softmax_dim1", "SoftMax", "opset8", {"axis": "-3"}, ""),
    ("softmax_dim-1", "SoftMax", "opset8", {"axis": "3"}, ""),
    ("softmax_dim-1", "SoftMax", "opset8", {"axis": "1"}, ""),  # a hyphen
    ("softmax_dim-1", "SoftMax", "opset8", {"axis": "2"}, "axis -1 2"),
    ("softmax_dim7", "SoftMax", "opset8", {"axis": "1"}, ""),  # it is no axis
    ("head/concat_axis_1", "Concat", "opset1", {"axis": "2"}, "axis 1 2"),
    ("head/concat_axis_1", "Concat", "opset1", {"axis": "1"}, ""),
    ("net/up_2x", "ConvolutionBackpropData", "opset1", {"strides": "3,3"} | UP, "strides 2 3,3"),
    ("upsample_x2", "ConvolutionBackpropData", "opset1", {"strides": "2,2"} | UP, ""),
    ("group2x", "ConvolutionBackpropData", "opset1", {"strides": "3,3"} | UP, ""),
    ("up_2x/Up", "ConvolutionBackpropData", "opset1", {"strides": "3,3"} | UP, "strides 2 3,3"),
    ("upscale4x", "DepthToSpace", "opset1", {"block_size": "2", "mode": "depth_first"},
     "block_size 4 2"),
    ("PixelShuffle_1", "DepthToSpace", "opset1", {"block_size": "2", "mode": "blocks_first"},
     "mode depth_first blocks_first"),
    ("/Relu_3", "Sigmoid", "opset1", {}, "type ReLU Sigmoid"),
    ("/Relu_3", "ReLU", "opset1", {}, ""),
    ("aten::relu/ReLU", "Tanh", "opset1", {}, "type ReLU Tanh"),
    ("/Relu", "Clamp", "opset1", {"min": "0", "max": "6"}, ""),  # ReLU6 of two layers
    ("/MaxPool", "AvgPool", "opset1", {"exclude-pad": "true"} | POOL, "type MaxPool AvgPool"),
    ("pool1/3x3_s1", "AvgPool", "opset1", {"exclude-pad": "true"} | POOL, "strides 1 2,2"),
    ("pool1/3x3_s2", "AvgPool", "opset1", {"exclude-pad": "true"} | POOL, ""),
    ("/ReduceMean_4", "ReduceSum", "opset1", {"keep_dims": "true"}, "type ReduceMean ReduceSum"),
    ("/ArgMax", "TopK", "opset3",
     {"axis": "1", "mode": "min", "sort": "value", "index_element_type": "i64"}, "mode max min"),
    ("m/aten::upsample_nearest2d/Interpolate", "Interpolate", "opset4",
     {"mode": "linear_onnx"} | SHAPED, "mode nearest linear_onnx"),
    ("m/aten::upsample_bilinear2d/Interpolate", "Interpolate", "opset4",
     {"mode": "linear_onnx"} | SHAPED, ""),
    ("upsample_3x", "Interpolate", "opset4", {"mode": "nearest"} | SHAPED, "scales 3 2,2"),
    ("upsample_2x", "Interpolate", "opset4", {"mode": "nearest"} | SHAPED, ""),
]  # fmt: skip


def network(name: str, kind: str, version: str, attributes: dict[str, str]) -> IR:
    """Build a network of one layer on an image [1,4,4,4]."""
    ir = IR()
    x = ir.parameter("x", "1,4,4,4")
    more: dict[str, list[Any]] = {
        "Concat": [x, x],
        "ConvolutionBackpropData": [x, ir.const(np.ones((4, 2, 3, 3), np.float32))],
        "ReduceSum": [x, ir.const(np.array([2, 3]))],
        "TopK": [x, ir.const(np.array(1))],
        "Interpolate": [
            *(x, ir.const(np.array([8, 8])), ir.const(np.array([2, 2], np.float32))),
            ir.const(np.array([2, 3])),
        ],
    }
    ir.result(ir.layer(kind, more.get(kind, [x]), attributes, version=version, name=name))
    return ir


def reported(text: str, weights: bytes, folder: Any) -> list[str]:
    (folder / "m.bin").write_bytes(weights)
    found = check_bytes(text.encode(), "m.xml", OPTIONS, folder / "m.bin").findings
    return [f"{f.message.partition(' is ')[0]} {f.expected} {f.actual}" for f in found]


@pytest.mark.parametrize(("name", "kind", "version", "attributes", "expected"), ROWS)
def test_names_of_layers(
    name: str, kind: str, version: str, attributes: dict[str, str], expected: str, tmp_path: Any
) -> None:
    ir = network(name, kind, version, attributes)
    assert reported(ir.xml(), bytes(ir.weights), tmp_path) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("names", "fused", "count"),
    [("a,softmax_dim1", "", 1), ("a", "softmax_dim1", 1), ("a", "softmax_dim1,b", 0)],
)
def test_names_of_tensors_and_original_layers(
    names: str, fused: str, count: int, tmp_path: Any
) -> None:
    """Several original layers became one: the name of each may belong to another part of it."""
    ir = network("a", "SoftMax", "opset8", {"axis": "2"})
    text = ir.xml()
    at = text.index("<output>", text.index('type="SoftMax"'))
    port = text[at:].replace('<port id="1"', f'<port id="1" names="{names}"', 1)
    info = f'<rt_info><attribute name="fused_names" version="0" value="{fused}"/></rt_info>'
    text = text[:at] + port.replace("</output>", f"</output>{info if fused else ''}", 1)
    assert len(reported(text, bytes(ir.weights), tmp_path)) == count


def test_modules_of_two_layers(tmp_path: Any) -> None:
    """Two transposed convolutions of stride 2 enlarge by 4 together."""
    ir = IR()
    x = ir.parameter("x", "1,4,4,4")
    for number in range(2):
        filter_ = ir.const(np.ones((4, 4, 2, 2), np.float32))
        attributes = {"strides": "2,2"} | UP
        name = f"up_4x/{'Conv' if number else 'Up'}"
        x = ir.layer("ConvolutionBackpropData", [x, filter_], attributes, name=name)
    ir.result(x)
    assert reported(ir.xml(), bytes(ir.weights), tmp_path) == []
