"""Copies that are large enough for the compiled kernel, against index sums worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.operations import Context, find_operation
from deconv_ir.ops.shape.space import BlockMode


@pytest.mark.parametrize("mode", list(BlockMode))
@pytest.mark.parametrize("size", [2, 3, 9])
def test_depth_to_space(mode: BlockMode, size: int) -> None:
    depth, height, width = 3, 20, 40
    shape = (2, depth * size**2, height, width)
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    layer = find_operation("DepthToSpace")(block_size=size, mode=mode)
    (found,) = layer.execute([data], Context())
    n, c, y, x = np.indices((2, depth, height * size, width * size))
    block = y % size * size + x % size
    channel = block * depth + c if mode is BlockMode.BLOCKS_FIRST else c * size**2 + block
    np.testing.assert_array_equal(found, data[n, channel, y // size, x // size])
    backwards = find_operation("SpaceToDepth")(block_size=size, mode=mode)
    out = np.empty(shape, np.float32)
    backwards.execute_into([found], Context(), out)
    np.testing.assert_array_equal(out, data)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_transposed_arrays_are_joined(axis: int) -> None:
    first = np.random.default_rng(1).standard_normal((60, 70, 50)).astype(np.float32)
    parts = [first, first.transpose(0, 2, 1).copy().transpose(0, 2, 1), first[::-1], first[:, :, :]]
    out = np.empty([n * 4 if a == axis else n for a, n in enumerate(first.shape)], np.float32)
    find_operation("Concat")(axis=axis).execute_into(parts, Context(), out)
    for part, found in zip(parts, np.split(out, 4, axis), strict=True):
        np.testing.assert_array_equal(found, part)
