"""NV12 and I420 against a loop over pixels, with the coefficients of NV12toRGB-8."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.color.yuv import I420toBGR, I420toRGB, NV12toBGR, NV12toRGB


def pixel(y: float, u: float, v: float) -> list[float]:
    c, d, e = y - 16, u - 128, v - 128
    rgb = (1.164 * c + 1.596 * e, 1.164 * c - 0.391 * d - 0.813 * e, 1.164 * c + 2.018 * d)
    return [min(max(value, 0), 255) for value in rgb]


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("operation", [NV12toRGB, NV12toBGR, I420toRGB, I420toBGR])
def test_against_loops(operation: type, whole: bool, kind: type) -> None:
    rng = np.random.default_rng(0)
    y, u, v = (
        rng.integers(0, 256, shape).astype(kind) for shape in ((2, 4, 6), (2, 2, 3), (2, 2, 3))
    )
    expected = np.empty((2, 4, 6, 3))
    for n, i, j in itertools.product(range(2), range(4), range(6)):
        rgb = pixel(*(float(p) for p in (y[n, i, j], u[n, i // 2, j // 2], v[n, i // 2, j // 2])))
        expected[n, i, j] = rgb[::-1] if operation in (NV12toBGR, I420toBGR) else rgb
    pairs = operation in (NV12toRGB, NV12toBGR)
    planes = [np.stack([u, v], -1)] if pairs else [u[..., None], v[..., None]]
    inputs = [y[..., None], *planes]
    if whole:
        flat = [part.reshape(2, -1) for part in inputs]
        inputs = [np.concatenate(flat, 1).reshape(2, 6, 6, 1)]
    (found,) = operation().execute(inputs, Context())
    assert found.dtype == kind
    if kind is np.uint8:
        assert np.abs(found - expected).max() <= 0.5 + 1e-4
    else:
        np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(1, 5, 4, 1)], "height must be divisible by 3"),
        ([(1, 6, 5, 1)], "width must be divisible by 2"),
        ([(1, 4, 4, 1), (1, 2, 3, 2)], "uv must have shape"),
    ],
)
def test_sizes_that_do_not_fit(shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        NV12toRGB().infer([TensorInfo(shape, F32) for shape in shapes], Context())


def test_planes_are_all_given_or_none() -> None:
    with pytest.raises(ShapeError, match="takes one input or 3, found 2"):
        I420toRGB().infer([TensorInfo((1, 4, 4, 1), F32)] * 2, Context())


def test_no_frames() -> None:
    (found,) = NV12toRGB().execute([np.zeros((0, 3, 4, 1), np.float32)], Context())
    assert found.shape == (0, 2, 4, 3)
