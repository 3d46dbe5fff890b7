"""Make block.xml and block.bin with OpenVINO: a deconvolution, a bias, a ReLU.

Needs the `peers` extra.  The weights are seeded, and saved compressed to FP16.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

rng = np.random.default_rng(2026)
x = ops.parameter([1, 8, 16, 16], np.float32, name="x")
x.output(0).set_names({"x"})
weights = ops.constant((rng.standard_normal((8, 4, 4, 4)) / 8).astype(np.float32), name="weights")
bias = ops.constant(rng.standard_normal((1, 4, 1, 1)).astype(np.float32), name="bias")
up = ops.convolution_backprop_data(x, weights, [2, 2], pads_begin=[1, 1], pads_end=[1, 1])
up.set_friendly_name("up")
added = ops.add(up, bias, name="up/bias")
y = ops.relu(added, name="up/relu")
y.output(0).set_names({"y"})
result = ops.result(y)
result.set_friendly_name("result")
model = ov.Model([result], [x], "block")
ov.save_model(model, Path(__file__).with_name("block.xml"), compress_to_fp16=True)
