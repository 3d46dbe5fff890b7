"""Pads of every mode, including negative ones, against numpy.pad and slices."""

from __future__ import annotations

import numpy as np
import pytest
from support import batches

from deconv_ir.operations import Context, find_operation
from deconv_ir.ops.shape.pad import PadValues

_BEYOND = {PadValues.REFLECT: -1, PadValues.SYMMETRIC: 0}
"""The number of elements by which a pad may exceed the axis."""


@pytest.mark.parametrize("mode", PadValues)
@pytest.mark.parametrize("seeds", batches(40, 40), ids=str)
def test_random_pads(mode: PadValues, seeds: range) -> None:
    """Results go into an array that a plan reuses, or into a new one."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        shape = tuple(map(int, rng.integers(1, 6, rng.integers(1, 5))))
        low = [-extent // 2 if seed % 2 else 0 for extent in shape]
        high = [extent + _BEYOND.get(mode, 3) for extent in shape]
        begin, end = rng.integers(low, high, (2, len(shape)), endpoint=True)
        end = np.maximum(end, -begin - np.array(shape))
        data = rng.standard_normal(shape)[..., :: 1 if seed % 3 else -1]
        data.flat[0] = np.nan

        inputs = [data, begin, end]
        value = {"constant_values": 7} if mode is PadValues.CONSTANT else {}
        if value:
            inputs.append(np.array(7.0))
        padded = np.pad(data, np.maximum([*zip(begin, end, strict=True)], 0), mode.value, **value)
        cuts = zip(padded.shape, np.maximum(-begin, 0), np.maximum(-end, 0), strict=True)
        expected = padded[tuple(slice(first, extent - last) for extent, first, last in cuts)]

        layer = find_operation("Pad")(pad_mode=mode)
        (found,) = layer.execute(inputs, Context())
        np.testing.assert_array_equal(found, expected)
        out = np.full(expected.shape, 5.0)
        layer.execute_into(inputs, Context(), out)
        np.testing.assert_array_equal(out, expected)
