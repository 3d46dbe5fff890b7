"""Products and means of quantised tensors read codes, as squeeze-and-excite blocks need them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import RNG, Network, convolve, fake_quantize, nearly

import deconv_ir
from deconv_ir.kernels.runtime.extension import compiled_module

RANGE, POSITIVE = (-1.28, 1.27), (0.0, 2.55)


def level(values: Any, ends: tuple[float, float]) -> Any:
    """Return a FakeQuantize's results in f32, of values in f32."""
    return fake_quantize(values.astype(np.float32).astype(float), *ends).astype(np.float32)


@pytest.mark.parametrize("gate", ["2,6,1,1", "2,6,5,7", "1,6,5,1"])
@pytest.mark.parametrize("turned", [False, True], ids=["", "gate first"])
@pytest.mark.parametrize("act", ["", "ReLU"])
def test_codes_are_multiplied(tmp_path: Any, gate: str, turned: bool, act: str) -> None:
    """The product is read by a quantiser, directly and through an activation."""
    net = Network("2,6,5,7")
    ir = net.ir
    other = ir.parameter("gate", gate)
    w, values = net.weights(4, 6, 3, 3)
    factors = [net.quantize(net.x, *RANGE), net.quantize(other, -0.3, 1.0)]
    product = ir.layer("Multiply", factors[::-1] if turned else factors, name="product")
    bent = ir.layer(act, [product]) if act else product
    ir.result(net.convolution(net.quantize(bent, -1.0, 1.1, name="levels"), w))
    model = deconv_ir.load(ir.save(tmp_path))
    for _ in range(2):  # the second run uses the calls of the first
        x = RNG.standard_normal((2, 6, 5, 7), dtype=np.float32)
        y = RNG.standard_normal(tuple(map(int, gate.split(","))), dtype=np.float32)
        (found,) = model.run({"x": x, "gate": y}).values()
        product = level(x, RANGE) * level(y, (-0.3, 1.0))
        product = np.maximum(product, 0) if act else product
        nearly(found, convolve(fake_quantize(product.astype(float), -1.0, 1.1), values))
    if compiled_module():
        rows = rows_of(model, {"x": x, "gate": y})
        assert "product" not in rows
        assert str(rows["levels"].inputs[0].element_type) == "u32"


KINDS = {
    "ReduceMean": ({"keep_dims": "true"}, lambda a: a.mean((2, 3), keepdims=True)),
    "ReduceSum": ({"keep_dims": "false"}, lambda a: a.sum((2, 3))),
    "AvgPool": (
        {
            "kernel": "5,7", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0",
            "exclude-pad": "true", "rounding_type": "floor",
        },
        lambda a: a.mean((2, 3), keepdims=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_codes_of_all_positions_are_averaged(tmp_path: Any, kind: str) -> None:
    """The mean is that of the levels, rounded once; a convolution reads the codes, too."""
    net = Network("2,6,5,7")
    ir = net.ir
    w, values = net.weights(4, 6, 3, 3)
    attributes, define = KINDS[kind]
    data = net.quantize(net.x, *POSITIVE)
    axes = [] if kind == "AvgPool" else [ir.const(np.array([3, -2]))]
    ir.result(ir.layer(kind, [data, *axes], attributes, name="mean"))
    ir.result(net.convolution(data, w))
    model = deconv_ir.load(ir.save(tmp_path))
    x = RNG.standard_normal((2, 6, 5, 7), dtype=np.float32)
    found, sums = model.run([x]).values()
    levels = fake_quantize(x.astype(float), *POSITIVE)
    nearly(sums, convolve(levels, values))
    if compiled_module():
        nearly(found, define(levels))
        assert str(rows_of(model, {"x": x})["mean"].inputs[0].element_type) == "u32"
    assert np.abs(found - define(levels)).max() < 1e-4


@pytest.mark.parametrize("axes", [[2], [1, 2, 3], [0, 2, 3]])
def test_other_reductions_read_numbers(tmp_path: Any, axes: list[int]) -> None:
    net = Network("2,6,5,7")
    data = net.quantize(net.x, *POSITIVE)
    net.ir.result(net.convolution(data, net.weights(4, 6, 3, 3)[0]))
    net.ir.result(net.ir.layer("ReduceMean", [data, net.ir.const(np.array(axes))]))
    x = RNG.standard_normal((2, 6, 5, 7), dtype=np.float32)
    _, found = net.run(tmp_path, x)
    expected = fake_quantize(x.astype(float), *POSITIVE).mean(tuple(axes))
    assert np.abs(found - expected).max() < 1e-6
