"""Quantised layers beside OpenVINO, which runs them in integers: at most one level apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import RNG, Network, deconvolve, fake_quantize

import deconv_ir
from deconv_ir.kernels.runtime.extension import compiled_module

from .faults import meet

ov = pytest.importorskip("openvino")
pytestmark = pytest.mark.peers

PLACES = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
KINDS = ("Convolution", "GroupConvolution", "ConvolutionBackpropData")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ends", [(0.0, 2.55), (-1.28, 1.27)], ids=["unsigned", "signed"])
def test_levels_are_those_of_openvino_but_for_one(tmp_path: Path, kind: str, ends: Any) -> None:
    net = Network("1,16,14,14")
    ir = net.ir
    if kind == "GroupConvolution":
        weights, w = net.weights(16, 1, 3, 3)
        shape = ir.const(np.array([16, 1, 1, 3, 3]))
        weights = ir.layer("Reshape", [weights, shape], {"special_zero": "false"})
    else:
        weights, w = net.weights(16, 16, 3, 3, axis=int(kind != "Convolution"))
    made = ir.layer(kind, [net.quantize(net.x, *ends), weights], PLACES)
    bias = RNG.standard_normal((1, 16, 1, 1)).astype(np.float32)
    active = ir.layer("ReLU", [ir.layer("Add", [made, ir.const(bias)])])
    ir.result(net.quantize(active, 0.0, 5.1))
    x = RNG.standard_normal((1, 16, 14, 14), dtype=np.float32)
    (ours,) = net.run(tmp_path, x)
    if kind == "ConvolutionBackpropData" and ends[0] < 0:
        exact = padded_deconvolution(x, w) + bias
        require_levels(ours, fake_quantize(np.maximum(exact, 0), 0.0, 5.1), 5.1 / 255)
    else:
        require_at_most_a_level(tmp_path, x, ours, 5.1 / 255)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("low", [-0.31, -1.28, 0.5])
def test_asymmetric_weights_give_the_levels_of_openvino_but_for_one(
    tmp_path: Path, kind: str, low: float
) -> None:
    net = Network("1,16,14,14")
    ir = net.ir
    groups = 4 if kind == "GroupConvolution" else 1
    raw = RNG.uniform(low, 1.27, (16, 16 // groups, 3, 3)).astype(np.float32)
    ends = [ir.const(np.float32(end)) for end in (low, 1.27, low, 1.27)]
    weights = ir.layer("FakeQuantize", [ir.const(raw), *ends], {"levels": "256"})
    if groups > 1:
        shape = ir.const(np.array([4, 4, 4, 3, 3]))
        weights = ir.layer("Reshape", [weights, shape], {"special_zero": "false"})
    made = ir.layer(kind, [net.quantize(net.x, -1.28, 1.27), weights], PLACES)
    ir.result(net.quantize(made, -25.6, 25.4))
    x = RNG.standard_normal((1, 16, 14, 14), dtype=np.float32)
    (ours,) = net.run(tmp_path, x)
    if kind == "ConvolutionBackpropData" and low == -1.28:
        exact = padded_deconvolution(x, fake_quantize(raw, low, 1.27))
        require_levels(ours, fake_quantize(exact, -25.6, 25.4), 0.2)
    else:
        require_at_most_a_level(tmp_path, x, ours, 0.2)
    rows = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x}).values()
    assert "i8" in {row.precision for row in rows}


@pytest.mark.parametrize("ends", [(0.0, 2.55), (-1.28, 1.27)], ids=["unsigned", "signed"])
@pytest.mark.parametrize("rows", [1, 70])
def test_products_are_those_of_openvino_but_for_a_level(
    tmp_path: Path, rows: int, ends: Any
) -> None:
    net = Network(f"1,{rows},64")
    ir = net.ir
    weights, _ = net.weights(96, 64)
    turns = {"transpose_a": "false", "transpose_b": "true"}
    made = ir.layer("MatMul", [net.quantize(net.x, *ends), weights], turns)
    bias = ir.const(RNG.standard_normal((1, 1, 96)).astype(np.float32))
    active = ir.layer("ReLU", [ir.layer("Add", [made, bias])])
    ir.result(net.quantize(active, 0.0, 5.1))
    x = RNG.standard_normal((1, rows, 64), dtype=np.float32)
    (ours,) = net.run(tmp_path, x)
    require_at_most_a_level(tmp_path, x, ours, 5.1 / 255)


def test_moved_and_gated_levels_are_those_of_openvino_but_for_one(tmp_path: Path) -> None:
    """Parts change places; a mean of all positions makes a gate, which multiplies them."""
    net = Network("1,16,14,14")
    ir = net.ir
    weights, _ = net.weights(16, 16, 3, 3)
    made = ir.layer("Convolution", [net.quantize(net.x, -1.28, 1.27), weights], PLACES)
    levels = net.quantize(ir.layer("ReLU", [made]), 0.0, 2.55)
    lists = [ir.const(np.array(given)) for given in (1, [4, 12])]
    index, first = ir.layer("VariadicSplit", [levels, *lists], outputs=["1,4,7,7", "1,12,7,7"])
    parts = [(index, first + 1), (index, first)]
    joined = ir.layer("Concat", parts, {"axis": "1"}, outputs=["1,16,7,7"])
    axes = ir.const(np.array([2, 3]))
    mean = ir.layer("ReduceMean", [joined, axes], {"keep_dims": "true"}, name="mean")
    gate = net.quantize(ir.layer("Sigmoid", [mean]), 0.0, 1.0)
    ir.result(net.quantize(ir.layer("Multiply", [joined, gate]), 0.0, 2.55))
    x = np.random.default_rng(5).standard_normal((1, 16, 14, 14), dtype=np.float32)
    (ours,) = net.run(tmp_path, x)
    require_at_most_a_level(tmp_path, x, ours, 0.01)
    if compiled_module():
        rows = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x})
        assert str(rows["mean"].inputs[0].element_type) == "u32"


def padded_deconvolution(x: Any, w: Any) -> Any:
    """Return a deconvolution of signed codes at PLACES, with which OpenVINO is not compared."""
    meet("integer-pads", "avoided")
    return deconvolve(fake_quantize(x, -1.28, 1.27), w)[:, :, 1:-1, 1:-1]


def require_at_most_a_level(tmp_path: Path, x: Any, ours: Any, step: float) -> None:
    """Compare results on levels with OpenVINO's."""
    compiled = ov.Core().compile_model(
        str(tmp_path / "model.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    require_levels(ours, compiled([x])[0], step)


def require_levels(ours: Any, expected: Any, step: float) -> None:
    apart = np.abs(ours - expected) / step
    assert apart.max() < 1.01
    assert (apart > 0.5).mean() < 0.02
