"""DeformableConvolution against a loop over samples (Dai et al. 2017, equations 2 to 4)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.convolution.deformable import DeformableConvolution8


def sample(plane: np.ndarray, y: float, x: float, beyond: bool) -> float:
    """Interpolate bilinearly; neighbours beyond the edge are 0, or without `beyond` the edge."""
    height, width = plane.shape
    least = -1 + 1e-12 if beyond else 0
    if not (least <= y < height and least <= x < width):
        return 0.0
    total = 0.0
    for i, j in itertools.product(
        (math.floor(y), math.floor(y) + 1), (math.floor(x), math.floor(x) + 1)
    ):
        weight = (1 - abs(y - i)) * (1 - abs(x - j))
        inside = 0 <= i < height and 0 <= j < width
        if inside or not beyond:
            total += weight * float(plane[min(i, height - 1), min(j, width - 1)])
    return total


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize(("group", "offset_group"), [(1, 1), (2, 1), (1, 2)])
def test_against_loops(group: int, offset_group: int, beyond: bool) -> None:
    rng = np.random.default_rng(0)
    operation = DeformableConvolution8(
        strides=(2, 1),
        dilations=(1, 2),
        pads_begin=(1, 0),
        pads_end=(0, 1),
        group=group,
        deformable_group=offset_group,
        bilinear_interpolation_pad=beyond,
    )
    data = rng.standard_normal((1, 4, 6, 7))
    weights = rng.standard_normal((2, 4 // group, 2, 3))
    size = ((6 + 1 - 2) // 2 + 1, 7 + 1 - 5 + 1)
    offsets = rng.uniform(-3, 3, (1, offset_group * 6 * 2, *size))
    mask = rng.uniform(0, 1, (1, offset_group * 6, *size))
    (found,) = operation.execute([data, offsets, weights, mask], Context())
    assert found.shape == (1, 2, *size)
    each = 4 // offset_group
    for o, p, q in itertools.product(range(2), *map(range, size)):
        expected = 0.0
        first = (o * group // 2) * (4 // group)
        for c, i, j in itertools.product(range(4 // group), range(2), range(3)):
            part = (first + c) // each
            tap = part * 6 + i * 3 + j
            y = p * 2 - 1 + i + offsets[0, 2 * tap, p, q]
            x = q + 2 * j + offsets[0, 2 * tap + 1, p, q]
            value = sample(data[0, first + c], y, x, beyond)
            expected += value * mask[0, tap, p, q] * weights[o, c, i, j]
        assert found[0, o, p, q] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("channels", "offsets", "message"),
    [
        (3, (1, 18, 5, 5), "data must have 4 channels"),
        (4, (1, 18, 5, 4), "offsets must have shape"),
    ],
)
def test_shapes_that_do_not_fit(channels: int, offsets: tuple[int, ...], message: str) -> None:
    operation = DeformableConvolution8(
        strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0)
    )
    shapes = ((1, channels, 7, 7), offsets, (6, 4, 3, 3))
    with pytest.raises(ShapeError, match=message):
        operation.infer([TensorInfo(shape, F32) for shape in shapes], Context())
