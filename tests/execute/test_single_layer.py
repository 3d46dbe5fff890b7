"""A model of one layer chooses what the kernel alone chooses: users get the speed of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.kernels import ConvolutionKernel, pack_convolution, pack_deconvolution
from deconv_ir.kernels.runtime.cpu import MACHINES

# Layers of published networks: data, filter, stride, pad, dilation, output_padding.
LAYERS = {
    "dcgan": ((8, 256, 16, 16), (256, 128, 4, 4), 2, 1, 1, 0),
    "pose": ((1, 256, 32, 24), (256, 256, 4, 4), 2, 1, 1, 0),
    "u-net": ((1, 128, 64, 64), (128, 64, 2, 2), 2, 0, 1, 0),
    "fsrcnn": ((1, 56, 90, 160), (56, 1, 9, 9), 4, 4, 1, 3),
    "fcn": ((1, 21, 40, 40), (21, 21, 64, 64), 32, 16, 1, 0),
    "same": ((1, 64, 112, 112), (64, 64, 3, 3), 1, 1, 1, 0),
    "dilated": ((1, 64, 56, 56), (64, 64, 3, 3), 1, 2, 2, 0),
    "vocoder": ((1, 128, 6400), (128, 64, 16), 8, 4, 1, 0),
    "volume": ((1, 64, 16, 16, 16), (64, 32, 4, 4, 4), 2, 1, 1, 0),
    "one tap": ((1, 128, 64, 64), (128, 64, 1, 1), 2, 0, 1, 1),
}


@pytest.mark.parametrize("kind", [pack_deconvolution, pack_convolution])
@pytest.mark.parametrize("name", LAYERS)
def test_a_model_chooses_as_its_kernel_does(
    name: str,
    kind: Callable[..., ConvolutionKernel],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The algorithm and its tiles are the same, on every machine."""
    data, shape, stride, pad, dilation, more = LAYERS[name]
    axes = len(data) - 2
    attributes = {
        "strides": ",".join([str(stride)] * axes),
        "dilations": ",".join([str(dilation)] * axes),
        "pads_begin": ",".join([str(pad)] * axes),
        "pads_end": ",".join([str(pad)] * axes),
    }
    layer = "Convolution"
    if kind is pack_deconvolution:
        attributes["output_padding"] = ",".join([str(more)] * axes)
        layer = "ConvolutionBackpropData"
    else:
        shape = (shape[1], shape[0], *shape[2:])
    weights = np.ones(shape, np.float32)
    ir = IR()
    x = ir.parameter("x", ",".join(map(str, data)))
    ir.result(ir.layer(layer, [x, ir.const(weights)], attributes), "y")
    path = ir.save(tmp_path)
    for machine in MACHINES:
        monkeypatch.setenv("DECONV_IR_MACHINE", machine)
        model = deconv_ir.load(path)
        (step,) = model.bind(shapes={"x": data}).plan.steps
        (output,) = model.infer_shapes().values()
        assert output is not None
        kernel = kind(weights, strides=(stride,) * axes, dilations=(dilation,) * axes)
        found = kernel.plan(data, (pad,) * axes, output[2:])  # type: ignore[arg-type]
        assert str(step.algorithm) == str(found), machine
