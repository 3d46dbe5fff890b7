"""ReorgYolo and RegionYolo against loops (Darknet's `reorg_cpu` and `forward_yolo_layer`)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from deconv_ir.operations import Context
from deconv_ir.ops.detection.yolo import RegionYolo, ReorgYolo


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_reorg(stride: int) -> None:
    n, c, h, w = 2, 2 * stride**2, 2 * stride, 3 * stride
    data = np.arange(n * c * h * w, dtype=np.float32).reshape(n, c, h, w)
    (found,) = ReorgYolo(stride=stride).execute([data], Context())
    assert found.shape == (n, c * stride**2, h // stride, w // stride)
    few = c // stride**2
    for b in range(n):
        source, target = data[b].ravel(), found[b].ravel()
        for k, j, i in itertools.product(range(c), range(h), range(w)):
            part = k // few
            row, column = j * stride + part // stride, i * stride + part % stride
            place = (k % few * h * stride + row) * w * stride + column
            assert target[(k * h + j) * w + i] == source[place]


@pytest.mark.parametrize("softmax", [True, False])
def test_region(softmax: bool) -> None:
    regions, coords, classes = 2, 4, 3
    size = coords + 1 + classes
    data = np.random.default_rng(0).standard_normal((1, regions * size, 2, 3))
    operation = RegionYolo(
        axis=1,
        end_axis=3,
        coords=coords,
        classes=classes,
        num=regions if softmax else 9,
        mask=(0, 1),
        do_softmax=softmax,
    )
    (found,) = operation.execute([data], Context())
    assert found.shape == ((1, data.size) if softmax else data.shape)
    found = found.reshape(data.shape)
    for region, i, j in itertools.product(range(regions), range(2), range(3)):
        box = data[0, region * size : (region + 1) * size, i, j].tolist()
        expected = [1 / (1 + math.exp(-v)) for v in box]
        expected[2:4] = box[2:4]
        if softmax:
            powers = [math.exp(v) for v in box[5:]]
            expected[5:] = [p / sum(powers) for p in powers]
        np.testing.assert_allclose(found[0, region * size : (region + 1) * size, i, j], expected)
