"""GRN-1 against the formula of its specification."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.operations import Context
from deconv_ir.ops.normalization.normalization import GRN


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (1, 3, 2, 2)])
def test_grn(shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(0).standard_normal(shape)
    (found,) = GRN(bias=0.25).execute([data], Context())
    for index in np.ndindex(shape):
        column = data[(index[0], slice(None), *index[2:])]
        expected = data[index] / (sum(v * v for v in column.tolist()) + 0.25) ** 0.5
        assert found[index] == pytest.approx(expected)
