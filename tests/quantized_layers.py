"""Layers between FakeQuantize, as NNCF writes them, and the definition of FakeQuantize-1."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from support import IR

import deconv_ir

RNG = np.random.default_rng(48)


def fake_quantize(x: Any, low: Any, high: Any, levels: int = 256) -> Any:
    """Return the values of the definition; the output range is the input range."""
    low, high = np.float64(np.float32(low)), np.float64(np.float32(high))
    level = np.rint((x - low) / (high - low) * (levels - 1))
    within = level / (levels - 1) * (high - low) + low
    return np.where(
        x <= np.minimum(low, high), low, np.where(x > np.maximum(low, high), high, within)
    )


def convolve(x: Any, w: Any, stride: int = 1, pad: int = 1) -> Any:
    """Return Convolution-1 by loops over taps."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    y, z = ((n - k) // stride + 1 for n, k in zip(x.shape[2:], w.shape[2:], strict=True))
    out = np.zeros((x.shape[0], w.shape[0], y, z))
    for i, j in itertools.product(*map(range, w.shape[2:])):
        rows = x[:, :, i : i + stride * y : stride, j : j + stride * z : stride]
        out += np.einsum("ncyx,oc->noyx", rows, w[:, :, i, j])
    return out


def deconvolve(x: Any, w: Any, stride: int = 2) -> Any:
    """Return ConvolutionBackpropData-1 without pads, by loops over taps."""
    extents = [(n - 1) * stride + k for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    out = np.zeros((x.shape[0], w.shape[1], *extents))
    for i, j in itertools.product(*map(range, w.shape[2:])):
        y, z = (n * stride for n in x.shape[2:])
        out[:, :, i : i + y : stride, j : j + z : stride] += np.einsum(
            "ncyx,co->noyx", x, w[:, :, i, j]
        )
    return out


def nearly(result: Any, expected: Any) -> None:
    """Require results that are rounded once; ties of two roundings are at most a unit apart."""
    rounded = expected.astype(np.float32)
    assert np.abs(result - rounded).max() <= np.spacing(np.abs(rounded).max())
    # Sums that cancel are as near 0 as f64 is exact.
    assert (result != rounded).sum() <= max(2, result.size // 100)


class Network:
    """An IR, and the constants that its oracle needs."""

    def __init__(self, shape: str) -> None:
        self.ir = IR()
        self.x = self.ir.parameter("x", shape, "f32")

    def quantize(self, source: Any, low: Any, high: Any, levels: int = 256, **names: str) -> Any:
        """Add a FakeQuantize."""
        ends = [
            self.ir.const(np.asarray(end, np.float32).reshape((1, -1, 1, 1)[: 4 * np.ndim(end)]))
            for end in (low, high, low, high)
        ]
        return self.ir.layer("FakeQuantize", [source, *ends], {"levels": str(levels)}, **names)

    def weights(self, *shape: int, axis: int = 0, zero_point: int = 0) -> tuple[Any, Any]:
        """Add i8 weights with a scale for each output channel, as NNCF writes them."""
        codes = RNG.integers(-100, 100, shape).astype(np.int8)
        extents = [1] * len(shape)
        extents[axis] = shape[axis]
        scales = RNG.uniform(0.001, 0.01, extents).astype(np.float32)
        wide = self.ir.layer("Convert", [self.ir.const(codes)], {"destination_type": "f32"})
        if zero_point:
            wide = self.ir.layer("Subtract", [wide, self.ir.const(np.float32(zero_point))])
        weights = self.ir.layer("Multiply", [wide, self.ir.const(scales)])
        return weights, (codes.astype(float) - zero_point) * scales.astype(float)

    def convolution(self, source: Any, weights: Any, stride: int = 1, pad: int = 1) -> Any:
        """Add a Convolution."""
        return self.ir.layer(
            "Convolution",
            [source, weights],
            {
                "strides": f"{stride},{stride}",
                "dilations": "1,1",
                "pads_begin": f"{pad},{pad}",
                "pads_end": f"{pad},{pad}",
            },
        )

    def run(self, tmp_path: Any, x: Any, **options: Any) -> Any:
        """Run the network."""
        model = deconv_ir.load(self.ir.save(tmp_path), **options)
        return list(model.run([x]).values())
