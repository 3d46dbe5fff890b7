"""Normalisations and FakeQuantize, against values worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

NORMALISATIONS = [
    (
        "MVN-6",
        ([[1.0, 3.0]], [1]),
        {"normalize_variance": "true", "eps": "3", "eps_mode": "inside_sqrt"},
        [[-0.5, 0.5]],
    ),
    (
        "MVN-6",
        ([[1.0, 3.0]], [1]),
        {"normalize_variance": "true", "eps": "3", "eps_mode": "outside_sqrt"},
        [[-0.25, 0.25]],
    ),
    ("MVN-2", ([[[1.0, 3.0]]],), {"normalize_variance": "false"}, [[[-1, 1]]]),
    ("NormalizeL2", ([[3.0, 4.0]], [1]), {"eps": "0", "eps_mode": "add"}, [[0.6, 0.8]]),
    ("NormalizeL2", ([[3.0, 4.0]], [1]), {"eps": "100", "eps_mode": "max"}, [[0.3, 0.4]]),
    # Bias 1.5 is used unchanged; OpenVINO's CPU plugin uses 1.
    (
        "LRN",
        ([[[2.0], [4.0]]], [1]),
        {"alpha": "3", "beta": "1", "bias": "1.5", "size": "3"},
        [[[2 / 21.5], [4 / 21.5]]],
    ),
    (
        "BatchNormInference-5",
        ([[1.0, 2.0]], [2.0, 3.0], [1.0, 0.0], [0.0, 1.0], [3.0, 8.0]),
        {"epsilon": "1"},
        [[2, 1]],
    ),
    (
        "BatchNormInference",
        ([2.0, 3.0], [1.0, 0.0], [[1.0, 2.0]], [0.0, 1.0], [3.0, 8.0]),
        {"epsilon": "1"},
        [[2, 1]],
    ),
    (
        "GroupNormalization-12",
        ([[1.0, 3.0, 2.0, 6.0]], [1.0, 1.0, 2.0, 1.0], [0.0, 0.0, 1.0, 0.0]),
        {"num_groups": "2", "epsilon": "0"},
        [[-1, 1, -1, 1]],
    ),
    (
        "FakeQuantize",
        ([-1.0, 0.2, 0.5, 0.9, 2.0], 0.0, 1.0, 10.0, 20.0),
        {"levels": "3"},
        [10, 10, 15, 20, 20],
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "expected"), NORMALISATIONS)
def test_normalisation(run, kind: str, inputs, attributes, expected) -> None:
    np.testing.assert_allclose(run(kind, *inputs, **attributes), expected, rtol=1e-6)
