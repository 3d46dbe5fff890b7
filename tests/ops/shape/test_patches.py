"""ExtractImagePatches and Col2Im against loops over windows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32, I64
from deconv_ir.ir.geometry import PadMode
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.shape.patches import Col2Im, ExtractImagePatches


@pytest.mark.parametrize("pad", [PadMode.VALID, PadMode.SAME_UPPER, PadMode.SAME_LOWER])
def test_patches(pad: PadMode) -> None:
    sizes, strides, rates = (3, 2), (2, 1), (1, 2)
    data = np.random.default_rng(0).standard_normal((2, 3, 6, 5))
    (found,) = ExtractImagePatches(sizes=sizes, strides=strides, rates=rates, auto_pad=pad).execute(
        [data], Context()
    )
    reach = [(k - 1) * r + 1 for k, r in zip(sizes, rates, strict=True)]
    if pad is PadMode.VALID:
        outputs = [(x - r) // s + 1 for x, r, s in zip((6, 5), reach, strides, strict=True)]
        before = [0, 0]
    else:
        outputs = [-(-x // s) for x, s in zip((6, 5), strides, strict=True)]
        total = [
            max(0, (n - 1) * s + r - x)
            for n, s, r, x in zip(outputs, strides, reach, (6, 5), strict=True)
        ]
        before = [t - t // 2 if pad is PadMode.SAME_LOWER else t // 2 for t in total]
    assert found.shape == (2, 3 * 2 * 3, *outputs)
    for n, c, i, j, p, q in itertools.product(
        range(2), range(3), range(3), range(2), *map(range, outputs)
    ):
        y = p * strides[0] + i * rates[0] - before[0]
        x = q * strides[1] + j * rates[1] - before[1]
        inside = 0 <= y < 6 and 0 <= x < 5
        assert found[n, (i * 2 + j) * 3 + c, p, q] == (data[n, c, y, x] if inside else 0)


def test_images_smaller_than_the_window_have_no_patch() -> None:
    operation = ExtractImagePatches(
        sizes=(3, 3), strides=(1, 1), rates=(1, 1), auto_pad=PadMode.VALID
    )
    (found,) = operation.execute([np.zeros((1, 2, 2, 4))], Context())
    assert found.shape == (1, 18, 0, 2)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_col2im(batch: tuple[int, ...]) -> None:
    strides, dilations, begin, end, kernel = (2, 1), (1, 2), (1, 0), (0, 1), (3, 2)
    size = (7, 6)
    counts = [
        (x + b + e - d * (k - 1) - 1) // s + 1
        for x, b, e, d, k, s in zip(size, begin, end, dilations, kernel, strides, strict=True)
    ]
    columns = 2 * 3 * 2
    data = np.random.default_rng(0).standard_normal((*batch, columns, counts[0] * counts[1]))
    operation = Col2Im(strides=strides, dilations=dilations, pads_begin=begin, pads_end=end)
    inputs = [data, np.array(size), np.array(kernel)]
    (found,) = operation.execute(inputs, Context())
    expected = np.zeros((*batch, 2, *size))
    for c, i, j, p, q in itertools.product(range(2), range(3), range(2), *map(range, counts)):
        y = p * strides[0] + i * dilations[0] - begin[0]
        x = q * strides[1] + j * dilations[1] - begin[1]
        if 0 <= y < size[0] and 0 <= x < size[1]:
            expected[..., c, y, x] += data[..., (c * 3 + i) * 2 + j, p * counts[1] + q]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((12, 24), "must have 5 x 5 windows, found 24"), ((10, 25), "a multiple of the 4 elements")],
)
def test_columns_that_do_not_fit(shape: tuple[int, ...], message: str) -> None:
    size, kernel = (TensorInfo((2,), I64, value) for value in ((6, 6), (2, 2)))
    with pytest.raises(ShapeError, match=message):
        Col2Im().infer([TensorInfo(shape, F32), size, kernel], Context())
