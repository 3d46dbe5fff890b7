"""Interpolate: each rule of coordinates, worked by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onednn_forms import as_bytes, op, tensor
from operation_forms import make

import deconv_ir
from deconv_ir import Semantics
from deconv_ir.ir.dtypes import F32, I64
from deconv_ir.ir.operation import Context, TensorInfo

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


def element(coordinates: str, rounding: str, i: int, data: int, output: int, number: Any) -> int:
    """Return the nearest element by the document's formulas, in a type of numbers.

    Source: Interpolate-4, "Detailed description"; align_corners in f32 multiplies with the
    quotient of the extents, as the runtime does.
    """
    half, x = number(1) / number(2), number(i)
    scale = number(output) / number(data)
    if coordinates == "align_corners":
        at = x * (number(data - 1) / number(output - 1)) if output > 1 else number(0)
    elif coordinates == "asymmetric":
        at = x / scale
    elif coordinates == "pytorch_half_pixel" and output == 1:
        at = number(0)
    else:
        at = (x + half) / scale - (number(0) if coordinates == "tf_half_pixel_for_nn" else half)
    found = {
        "round_prefer_floor": lambda: math.ceil(at - half),
        "round_prefer_ceil": lambda: math.floor(at + half),
        "floor": lambda: math.floor(at),
        "ceil": lambda: math.ceil(at),
        "simple": lambda: math.ceil(at) if output < data else math.floor(max(at, number(0))),
    }[rounding]()
    return min(max(found, 0), data - 1)


COORDINATES = [
    "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners",
]  # fmt: skip
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]
PAIRS = [
    (14, 2), (28, 4), (20, 6), (3, 29), (4, 38), (5, 3), (40, 1), (1, 40), (7, 38), (25, 18),
]  # fmt: skip


@pytest.mark.parametrize("version", ["4", "11"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest_elements_are_exact_or_in_f32(version: str, coordinates: str) -> None:
    """Exact fractions under the semantics of the documents, f32 under those of the runtime."""
    for rounding, (data, output) in itertools.product(ROUNDINGS, PAIRS):
        layer = make(
            f"Interpolate-{version}", mode="nearest", shape_calculation_mode="sizes",
            coordinate_transformation_mode=coordinates, nearest_mode=rounding,
        )  # fmt: skip
        x, sizes = np.arange(data, dtype=np.float32), np.array([output])
        inputs = [x, sizes, np.ones(1, np.float32)] if version == "4" else [x, sizes]
        infos = [TensorInfo((data,), F32), TensorInfo((1,), I64, (output,))]
        infos += [TensorInfo((1,), F32, None, (1.0,))] * (version == "4")
        wanted = {}
        for semantics, number in (("spec", Fraction), ("openvino", np.float32)):
            (found,) = layer.execute(inputs, Context(Semantics(semantics)))
            wanted[semantics] = [
                element(coordinates, rounding, i, data, output, number) for i in range(output)
            ]
            assert found.tolist() == wanted[semantics], (semantics, rounding, data, output)
        difference = layer.compare_semantics(infos, Context())
        assert (difference is not None) == (wanted["spec"] != wanted["openvino"])


@pytest.mark.parametrize(
    ("coordinates", "rounding", "data", "output", "spec"),
    [  # the examples, worked by hand: 7 * i; 3 1/3 * (i + 1/2) - 1/2
        ("asymmetric", "floor", 14, 2, [0, 7]),
        ("asymmetric", "floor", 28, 4, [0, 7, 14, 21]),
        ("half_pixel", "round_prefer_ceil", 20, 6, [1, 5, 8, 11, 15, 18]),
    ],
)
def test_nearest_elements_by_hand(run, coordinates, rounding, data, output, spec) -> None:
    found = run(
        "Interpolate-11", np.arange(data), [output], mode="nearest",
        shape_calculation_mode="sizes", coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
    )  # fmt: skip
    assert found.tolist() == spec


def test_a_scale_is_the_number_that_the_model_stores(run) -> None:
    """0.3 in f32 is slightly larger: element 3 is at 9.9999996, the runtime's f32 rounds to 10."""
    layer = make(
        "Interpolate-11", mode="nearest", shape_calculation_mode="scales", nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip
    inputs = [np.arange(20.0, dtype=np.float32), np.array([0.3], np.float32)]
    for semantics, wanted in (("spec", 9), ("openvino", 10)):
        (found,) = layer.execute(inputs, Context(Semantics(semantics)))
        assert found[3] == wanted


def test_ties_of_onednn_are_rounded_up() -> None:
    """23 elements to 5: 4.6 * (i + 1/2) - 1/2 = 1.8, 6.4, 11, 15.6, 20.2; 19 to 2 ends in 4.5."""
    for data, output in ((10, 1), (30, 3), (20, 2), (50, 5)):
        x = np.arange(data, dtype=np.float32).reshape(1, 1, data)
        graph = as_bytes(
            op(
                0, "Interpolate", [tensor(0, x.shape)], [tensor(1, [1, 1, output])],
                mode="nearest", sizes=[output], data_format="NCX",
                coordinate_transformation_mode="half_pixel",
            )
        )  # fmt: skip
        for semantics in Semantics:
            (found,) = deconv_ir.load(graph, semantics=semantics).run([x]).values()
            # 10 * (i + 1/2) - 1/2 = 4.5, 14.5, ...
            assert found.ravel().tolist() == [10 * i + 5 for i in range(output)]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_axes_of_version_1_are_a_set(run, infer, mode: str) -> None:
    """OpenVINO keeps the attribute as a set: sizes are those of axes 2 and 3."""
    attributes = {"mode": mode, "align_corners": "false"}
    assert infer("Interpolate-1", "f32[1,1,4,6]", [12, 8], axes="3,2", **attributes) == "[1,1,12,8]"
    data = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)
    found = run("Interpolate-1", data, [12, 8], axes="3,2", **attributes)
    np.testing.assert_array_equal(
        found, run("Interpolate-1", data, [12, 8], axes="2,3", **attributes)
    )
