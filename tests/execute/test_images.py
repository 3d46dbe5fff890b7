"""A model's result for an image depends only on the model and that image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import IR, Out

import deconv_ir
from deconv_ir.kernels import set_threads
from deconv_ir.kernels.algorithm import Algorithm, preferred_algorithm

pytestmark = pytest.mark.skipif(
    preferred_algorithm() is not Algorithm.COMPILED,
    reason="BLAS, which the NumPy fallback calls, makes no such promise",
)
CONV = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
POOL = {"kernel": "2,2", "strides": "2,2"}


class Network:
    """An IR under construction that takes any batch and any extents."""

    def __init__(self, channels: int, axes: int = 2) -> None:
        self.ir = IR()
        self.axes = axes
        self.x = self.ir.parameter("x", f"?,{channels}" + ",?" * axes)
        self.rng = np.random.default_rng(channels)

    def weights(self, *shape: int) -> Out:
        return self.ir.const(self.rng.standard_normal(shape, dtype=np.float32) / 8)

    def conv(self, y: Out, inputs: int, outputs: int) -> Out:
        y = self.ir.layer("Convolution", [y, self.weights(outputs, inputs, 3, 3)], CONV)
        return self.ir.layer("ReLU", [self.ir.layer("Add", [y, self.weights(1, outputs, 1, 1)])])

    def up(self, y: Out, inputs: int, outputs: int) -> Out:
        shape = (inputs, outputs, *(4,) * self.axes)
        how = {key: ",".join("1" * self.axes) for key in CONV}
        how["strides"] = ",".join("2" * self.axes)
        y = self.ir.layer("ConvolutionBackpropData", [y, self.weights(*shape)], how)
        return self.ir.layer("ReLU", [y])


def decoder() -> Network:
    """Magnify a latent image."""
    net = Network(64)
    y = net.up(net.up(net.x, 64, 32), 32, 16)
    net.ir.result(net.conv(y, 16, 3), "y")
    return net


def u_net() -> Network:
    """Build a U-Net: down and up again, with skip connections."""
    net = Network(8)
    fine = net.conv(net.x, 8, 24)
    y = net.conv(net.ir.layer("MaxPool", [fine], POOL), 24, 48)
    y = net.ir.layer("Concat", [fine, net.up(y, 48, 24)], {"axis": "1"})
    net.ir.result(net.conv(y, 48, 8), "y")
    return net


def heavy() -> Network:
    """Build a network whose weights are larger than all tensors of one image."""
    net = Network(64)
    y = net.x
    for _ in range(3):
        y = net.conv(y, 64, 64)
    net.ir.result(y, "y")
    return net


def vocoder() -> Network:
    """Build a network that makes several layers of audio samples."""
    net = Network(48, axes=1)
    net.ir.result(net.up(net.up(net.x, 48, 48), 48, 16), "y")
    return net


# Builders, and extents of an image.
NETWORKS = [(decoder, (12, 12)), (u_net, (40, 24)), (heavy, (40, 40)), (vocoder, (600,))]


def compute(model: deconv_ir.Model, x: np.ndarray) -> np.ndarray:
    (result,) = model.run(x).values()
    return result


@pytest.mark.parametrize(("build", "extents"), NETWORKS)
def test_bits_depend_on_the_model_and_the_image_alone(
    build: Callable[[], Network], extents: tuple[int, ...], tmp_path: Path
) -> None:
    """Results do not depend on threads, the batch, earlier shapes, or the other images."""
    path = build().ir.save(tmp_path)
    channels = deconv_ir.load(path).inputs["x"].shape[1]
    rng = np.random.default_rng(1)

    def draw(batch: int, *extents: int) -> np.ndarray:
        return rng.standard_normal((batch, channels, *extents), dtype=np.float32)

    images = draw(5, *extents)
    larger, smaller = draw(2, *(3 * e for e in extents)), draw(2, *(e // 4 for e in extents))
    try:
        set_threads(1)
        model = deconv_ir.load(path)
        expected = [compute(model, image[None])[0] for image in images]
        for threads in (1, 3):
            set_threads(threads)
            fresh, warm = deconv_ir.load(path), deconv_ir.load(path)
            for other in (larger, smaller, larger[:, ..., : 2 * extents[-1]], smaller[:1]):
                warm.run(other)
            for batch in (2, 5):
                for model in (fresh, warm):
                    found = compute(model, images[:batch])
                    for image, result in zip(expected, found, strict=False):
                        np.testing.assert_array_equal(result, image)
            odd = images.copy()
            odd[1] = np.nan
            odd[3].flat[::7] = 1e9
            for model in (fresh, warm):
                found = compute(model, odd)
                for i in (0, 2, 4):
                    np.testing.assert_array_equal(found[i], expected[i])
    finally:
        set_threads(None)


def test_the_choice_is_that_of_one_image(tmp_path: Path) -> None:
    """The tensors of a large batch do not allow more weights than those of one image."""
    path = heavy().ir.save(tmp_path)
    kept = {}
    for batch in (1, 64):
        plan = deconv_ir.load(path).bind(shapes={"x": [batch, 64, 12, 12]}).plan
        kept[batch] = plan.weight_bytes
    assert kept[64] == kept[1]


def test_a_limit_keeps_to_the_choice_where_that_fits(tmp_path: Path) -> None:
    path = u_net().ir.save(tmp_path)
    shape = {"x": [4, 8, 160, 160]}
    free = deconv_ir.load(path).bind(shapes=shape).plan
    # The machine's cost model decides about Winograd, and never chooses it for tiny images.
    none = deconv_ir.load(path).bind(shapes={"x": [4, 8, 4, 4]}).plan
    transformed = free.weight_bytes - none.weight_bytes
    held = deconv_ir.load(path, memory_limit=free.peak_bytes).bind(shapes=shape).plan
    assert held.weight_bytes == free.weight_bytes
    limit = free.bound_bytes + (64 << 10)
    tight = deconv_ir.load(path, memory_limit=limit).bind(shapes=shape).plan
    assert tight.weight_bytes <= free.weight_bytes - transformed // 2
