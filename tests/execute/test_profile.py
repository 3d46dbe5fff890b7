"""Time per layer, counts of arithmetic operations, and the trace."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from quantized_layers import Network
from support import IR

import deconv_ir
from deconv_ir.execute.profile import Profile
from deconv_ir.kernels.runtime.extension import compiled_module

WINDOW = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_operations_are_counted_by_hand(tmp_path: Path) -> None:
    """Multiply-adds are two: a deconvolution has one for each input, output channel and tap,
    a convolution for each output, input channel of the group and tap, a product for each inner
    element."""
    ir = IR()
    x = ir.parameter("x", "2,4,5,6")
    up = ir.layer("ConvolutionBackpropData", [x, ir.const(ones(4, 3, 2, 2))], WINDOW, name="up")
    add = ir.layer("Add", [up, ir.const(ones(1, 3, 1, 1))], name="bias")  # 2x3x6x7
    conv = ir.layer("Convolution", [add, ir.const(ones(5, 3, 3, 3))], WINDOW, name="conv")
    group = ir.layer(  # 2x5x4x5 -> 2x5x3x4
        "GroupConvolution", [conv, ir.const(ones(5, 1, 1, 2, 2))], WINDOW, name="group"
    )
    y = ir.layer("SoftSign", [group], name="softsign", version="opset9")
    ir.result(ir.layer("MatMul", [y, ir.const(ones(4, 7))], name="product"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    profile = Profile()
    model.run([ones(2, 4, 5, 6)], profile=profile)
    counted = {row.layer: (row.type, row.operations) for row in profile.layers}
    assert counted == {
        "up": ("ConvolutionBackpropData+Add",
               2 * (2 * 4 * 5 * 6) * 3 * (2 * 2) + 2 * 3 * 6 * 7),
        "conv": ("Convolution", 2 * (2 * 5 * 4 * 5) * 3 * (3 * 3)),
        "group": ("GroupConvolution", 2 * (2 * 5 * 3 * 4) * 1 * (2 * 2)),
        "softsign": ("SoftSign", 2 * 5 * 3 * 4),
        "product": ("MatMul", 2 * (2 * 5 * 3 * 7) * 4),
    }  # fmt: skip


@pytest.mark.skipif(not compiled_module(), reason="no tensor becomes codes")
def test_operations_on_codes_are_those_on_numbers(tmp_path: Path) -> None:
    """Two for each product, and one for each result of a fused layer: codes of four channels are
    one element, but five channels are two."""
    net = Network("1,4,6,7")
    first, _ = net.weights(5, 4, 3, 3)
    second, _ = net.weights(5, 6, 2, 2, axis=1)
    third, _ = net.weights(3, 6, 1, 1)
    a = net.quantize(net.convolution(net.quantize(net.x, -1, 1), first), -2, 2)
    window = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    up = net.ir.layer("ConvolutionBackpropData", [a, second], window, name="up")
    pool = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
    pooled = net.ir.layer("MaxPool", [net.quantize(up, -3, 3)], pool | {"rounding_type": "floor"})
    net.ir.result(net.convolution(pooled, third, pad=0))
    profile = Profile()
    model = deconv_ir.load(net.ir.save(tmp_path), warn=False)
    model.run([np.zeros((1, 4, 6, 7), np.float32)], profile=profile)
    rows = [row for row in profile.layers if row.precision in ("i8", "u8")]
    assert [row.type.partition("+")[0] for row in rows if "Conv" in row.type] == [
        "Convolution", "ConvolutionBackpropData", "Convolution",
    ]  # fmt: skip
    products = [5 * 4 * 9 * 6 * 7, 5 * 6 * 4 * 6 * 7, 3 * 6 * 6 * 7]
    results = [5 * 6 * 7, 6 * 12 * 14, 3 * 6 * 7]
    convolutions = [row for row in rows if "Conv" in row.type]
    for row, count, size in zip(convolutions, products, results, strict=True):
        assert row.operations == 2 * count + row.type.count("+") * size


def test_times_add_up_over_runs(tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("Tanh", [ir.parameter("x", "1000")], name="t"))
    model = deconv_ir.load(ir.save(tmp_path))
    profile = Profile()
    for _ in range(3):
        model.run([ones(1000)], profile=profile)
    assert [row.layer for row in profile.layers] == ["t"] * 3
    assert profile.seconds == pytest.approx(sum(row.seconds for row in profile.layers))
    starts = [row.start for row in profile.layers]
    assert starts[0] >= 0
    assert starts == sorted(starts)
    assert all(row.rate == pytest.approx(1000 / row.seconds) for row in profile.layers)


def test_trace_is_what_trace_viewers_read(tmp_path: Path) -> None:
    """Trace Event Format, 'Complete Events': ph X, ts and dur in microseconds, pid and tid."""
    ir = IR()
    ir.result(ir.layer("Tanh", [ir.parameter("x", "1000")], name="t"))
    model = deconv_ir.load(ir.save(tmp_path))
    profile = Profile()
    model.run([ones(1000)], profile=profile)
    document = json.loads(json.dumps(profile.trace()))
    (event,) = document["traceEvents"]
    assert (event["name"], event["cat"], event["ph"], event["tid"]) == ("t", "Tanh", "X", 0)
    assert event["dur"] == pytest.approx(profile.layers[0].seconds * 1e6)
    assert isinstance(event["pid"], int)
    assert event["args"]["output"] == "f32[1000]"
