"""Layers of known networks, at real sizes: kernels in tiles, many channels."""

from __future__ import annotations

from pathlib import Path

import pytest

import deconv_ir

from .blocks import Block
from .oracle import openvino_window
from .problems import Problem
from .runtimes import F32, assert_close, run

pytestmark = pytest.mark.peers


def _layer(
    channels: tuple[int, int],
    extents: tuple[int, ...],
    kernel: int,
    stride: int,
    pad: int = 0,
    groups: int = 1,
    output_padding: int = 0,
    batch: int = 1,
) -> Problem:
    n = len(extents)
    return Problem(
        seed=1,
        batch=batch,
        groups=groups,
        filters=channels[0] // groups,
        outputs=channels[1] // groups,
        extents=extents,
        kernel=(kernel,) * n,
        strides=(stride,) * n,
        dilations=(1,) * n,
        pads_begin=(pad,) * n,
        pads_end=(pad,) * n,
        output_padding=(output_padding,) * n,
    )


_LAYERS = {
    "U-Net, up-convolution": _layer((128, 64), (40, 40), 2, 2),
    "DCGAN, generator, batch of 4": _layer((256, 128), (8, 8), 4, 2, 1, batch=4),
    "FCN-8s, bilinear upsampling by 8": _layer((21, 21), (28, 28), 16, 8, 4, groups=21),
    "CenterNet, depthwise up-sampling": _layer((64, 64), (32, 32), 4, 2, 1, groups=64),
    "CycleGAN, generator": _layer((128, 64), (32, 32), 3, 2, 1, output_padding=1),
    "HiFi-GAN, first up-sampling": _layer((256, 128), (64,), 16, 8, 4),
    "V-Net, up-convolution": _layer((64, 32), (8, 12, 12), 2, 2),
    "FSRCNN, last layer": _layer((56, 1), (50, 60), 9, 3, 4, output_padding=2),
    "grouped": _layer((96, 48), (20, 30), 3, 2, 1, groups=3),
    "stride 1": _layer((48, 32), (40, 40), 3, 1, 1),
}


@pytest.mark.parametrize("name", _LAYERS)
def test_openvino_and_torch_give_the_same(name: str, tmp_path: Path) -> None:
    problem = _LAYERS[name]
    block = Block(
        problem,
        grouped=problem.groups > 1,
        bias=False,
        relu=False,
        compress=False,
        dynamic="static",
        shape_from="absent",
    )
    path = block.save(tmp_path)
    actual = deconv_ir.load(path).run(block.inputs())["y"]
    assert_close(actual, run(path, block.inputs())[0], F32, name)
    assert_close(actual, block.by_oracle(openvino_window(problem, "spec")), F32, name)
