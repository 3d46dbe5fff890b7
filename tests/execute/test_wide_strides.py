"""Convolutions of codes whose strides exceed the columns in which offsets repeat (256)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import RNG, Network, convolve, fake_quantize, nearly

import deconv_ir

RANGE = (-1.28, 1.27)  # level 0 is not 0, so that borders have offsets of their own
STRIDES = [(1, 257), (300, 1), (2, 1000)]


def strided(
    net: Network, kind: str, data: Any, weights: Any, strides: Any, pads: Any, name: str
) -> Any:
    """Add a layer, with pads before and behind the data on both axes."""
    begin, end = (",".join(map(str, row)) for row in zip(*pads, strict=True))
    attributes = {"strides": "{},{}".format(*strides), "dilations": "1,1"}
    attributes |= {"pads_begin": begin, "pads_end": end}
    return net.ir.layer(kind, [data, weights], attributes, name=name)


def require_integers(model: deconv_ir.Model, x: Any) -> None:
    assert rows_of(model, {"x": x})["wide"].precision == "i8"


@pytest.mark.parametrize("strides", STRIDES)
@pytest.mark.parametrize("codes", [False, True], ids=["numbers", "codes"])
def test_convolutions(tmp_path: Any, strides: tuple[int, int], codes: bool) -> None:
    extents = [2 * stride + 5 for stride in strides]
    net = Network(f"1,6,{extents[0]},{extents[1]}")
    w, values = net.weights(8, 6, 3, 3)
    last, of_last = net.weights(4, 8, 1, 1)
    pads = ((2, 1), (1, 2))
    found = strided(net, "Convolution", net.quantize(net.x, *RANGE), w, strides, pads, "wide")
    if codes:
        found = net.convolution(net.quantize(found, *RANGE), last, pad=0)
    net.ir.result(found)
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = RNG.standard_normal((1, 6, *extents), dtype=np.float32)
    (result,) = model.run([x]).values()
    data = np.pad(fake_quantize(x.astype(float), *RANGE), ((0, 0), (0, 0), *pads))
    sums = convolve(data, values, 1, 0)[:, :, :: strides[0], :: strides[1]]
    if codes:
        levels = fake_quantize(sums.astype(np.float32).astype(float), *RANGE)
        sums = convolve(levels, of_last, pad=0)
    nearly(result, sums)
    require_integers(model, x)


@pytest.mark.parametrize("strides", STRIDES)
@pytest.mark.parametrize("kernel", [(2, 3), (5, 259)], ids=["gaps", "overlaps"])
@pytest.mark.parametrize("codes", [False, True], ids=["numbers", "codes"])
def test_transposed_convolutions(
    tmp_path: Any, strides: tuple[int, int], kernel: tuple[int, int], codes: bool
) -> None:
    """Columns without a tap are the bias, 0; overlaps add two columns."""
    net = Network("1,6,3,4")
    w, values = net.weights(6, 8, *kernel, axis=1)
    last, of_last = net.weights(4, 8, 1, 1)
    pads = ((1, 0), (0, 1))
    data = net.quantize(net.x, *RANGE)
    found = strided(net, "ConvolutionBackpropData", data, w, strides, pads, "wide")
    if codes:
        found = net.convolution(net.quantize(found, *RANGE), last, pad=0)
    net.ir.result(found)
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = RNG.standard_normal((1, 6, 3, 4), dtype=np.float32)
    (result,) = model.run([x]).values()
    sums = np.zeros(
        (1, 8, *((n - 1) * s + k for n, s, k in zip((3, 4), strides, kernel, strict=True)))
    )
    levels = fake_quantize(x.astype(float), *RANGE)
    for y, z in np.ndindex(3, 4):
        at = y * strides[0], z * strides[1]
        window = sums[:, :, at[0] : at[0] + kernel[0], at[1] : at[1] + kernel[1]]
        window += np.einsum("nc,coyx->noyx", levels[:, :, y, z], values)
    sums = sums[:, :, 1:, :-1]
    if codes:
        levels = fake_quantize(sums.astype(np.float32).astype(float), *RANGE)
        sums = convolve(levels, of_last, pad=0)
    # Levels next to 0 cancel in sums of gaps.
    assert np.abs(result - sums).max() < 1e-6
    apart = np.abs(sums) > 1e-5
    nearly(result[apart], sums[apart])
    require_integers(model, x)
