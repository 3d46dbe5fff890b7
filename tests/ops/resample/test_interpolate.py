"""Interpolate: each rule of coordinates, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

# The 1-D example of each coordinate rule: 2 elements to 4, worked by hand.
INTERPOLATIONS = [
    ("linear_onnx", "half_pixel", [0, 2.5, 7.5, 10]),
    ("linear_onnx", "asymmetric", [0, 5, 10, 10]),
    ("linear_onnx", "align_corners", [0, 10 / 3, 20 / 3, 10]),
    ("linear", "half_pixel", [0, 2.5, 7.5, 10]),
    ("nearest", "asymmetric", [0, 0, 10, 10]),
    ("cubic", "align_corners", [0, 10 * 0.3148148, 10 * 0.6851852, 10]),
]


@pytest.mark.parametrize(("mode", "where", "expected"), INTERPOLATIONS)
def test_interpolation(run, mode: str, where: str, expected) -> None:
    found = run(
        "Interpolate-4", [0.0, 10.0], [4], [2.0], mode=mode, shape_calculation_mode="sizes",
        coordinate_transformation_mode=where, nearest_mode="floor",
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("round_prefer_floor", [1, 2, 4]),
        ("round_prefer_ceil", [1, 3, 4]),
        ("floor", [1, 2, 4]),
        ("ceil", [1, 3, 4]),
        ("simple", [1, 3, 4]),
    ],
)
def test_nearest_mode(run, mode: str, expected) -> None:
    """4 elements to 3 with aligned corners: coordinates 0, 1.5 and 3."""
    found = run(
        "Interpolate-4", [1.0, 2.0, 3.0, 4.0], [3], [1.0], mode="nearest",
        shape_calculation_mode="sizes", coordinate_transformation_mode="align_corners",
        nearest_mode=mode,
    )  # fmt: skip
    assert found.tolist() == expected


def test_interpolation_of_padded_data(run) -> None:
    found = run(
        "Interpolate-11", [1.0, 2.0], [2.0], mode="nearest", shape_calculation_mode="scales",
        pads_begin="1", pads_end="0", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )  # fmt: skip
    assert found.tolist() == [0, 0, 1, 1, 2, 2]
