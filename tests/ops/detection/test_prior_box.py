"""PriorBox and PriorBoxClustered against loops over cells, as in Caffe's and OpenVINO's layers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from deconv_ir.errors import DeconvError

GRID, IMAGE = (2, 3), (40, 60)


def loops(sizes_of_cell, step: float, offset: float) -> np.ndarray:
    """Return corners of boxes: `sizes_of_cell` lists shifts right and down, width, height."""
    rows = []
    for row, column in itertools.product(range(GRID[0]), range(GRID[1])):
        if step:
            x, y = (column + offset) * step, (row + offset) * step
        else:
            x, y = (column + 0.5) * IMAGE[1] / GRID[1], (row + 0.5) * IMAGE[0] / GRID[0]
        for right, down, width, height in sizes_of_cell:
            left, top = x + right - width / 2, y + down - height / 2
            rows.append(
                [left / IMAGE[1], top / IMAGE[0], (left + width) / IMAGE[1],
                 (top + height) / IMAGE[0]]
            )  # fmt: skip
    return np.array(rows)


def square(size: float) -> tuple[float, float, float, float]:
    return (0, 0, size, size)


def ratio(size: float, value: float) -> tuple[float, float, float, float]:
    return (0, 0, size * math.sqrt(value), size / math.sqrt(value))


def dense(size: float, density: int, width: float, height: float):
    """Boxes of PriorBox with `density`: their centers divide a square of the size."""
    step = int(size / density)
    places = [step / 2 + i * step - size / 2 for i in range(density)]
    return [(x, y, width, height) for y in places for x in places]


BOTH = {"min_size": "10,20", "max_size": "14,30", "aspect_ratio": "2,1,2", "offset": "0.5"}

CASES = [
    # The order of PriorBox-8, 'min_max_aspect_ratios_order'.
    (
        "PriorBox", BOTH | {"step": "16"},
        [
            *(square(10), square(math.sqrt(140)), ratio(10, 2)),
            *(square(20), square(math.sqrt(600)), ratio(20, 2)),
        ],
    ),
    (
        "PriorBox-8", BOTH | {"min_max_aspect_ratios_order": "false", "offset": "0.25"},
        [
            *(square(10), ratio(10, 2), square(math.sqrt(140))),
            *(square(20), ratio(20, 2), square(math.sqrt(600))),
        ],
    ),
    # 'flip': "each aspect_ratio is duplicated and flipped".
    (
        "PriorBox-8", {"min_size": "9", "aspect_ratio": "4,2", "flip": "1", "offset": "0"},
        [square(9), *(ratio(9, r) for r in (4, 1 / 4, 2, 1 / 2))],
    ),
    # Without scale_all_sizes sizes and steps are shares of the image's height, as in MXNet.
    (
        "PriorBox",
        {"min_size": "0.2,0.3", "max_size": "0.4", "aspect_ratio": "3", "offset": "0.5",
         "scale_all_sizes": "false", "step": "0.25"},
        [square(8), square(12), ratio(8, 3)],
    ),
    (
        "PriorBox",
        {"min_size": "0.2", "offset": "0.5", "scale_all_sizes": "false", "step": "-1"},
        [square(8)],
    ),
    (
        "PriorBox", {"fixed_size": "16,8", "density": "2,1", "offset": "0.5", "step": "8"},
        dense(16, 2, 16, 16) + dense(8, 1, 8, 8),
    ),
    (
        "PriorBox",
        {"fixed_size": "16", "density": "2", "aspect_ratio": "4", "offset": "0.5", "step": "8"},
        dense(16, 2, 16, 16) + dense(16, 2, 32, 8),
    ),
    (
        "PriorBox",
        {"fixed_size": "16", "density": "3", "fixed_ratio": "1,4", "offset": "0.5", "step": "8"},
        dense(16, 3, 16, 16) + dense(16, 3, 32, 8),
    ),
    (
        "PriorBoxClustered",
        {"width": "5,30", "height": "7,90", "offset": "0.5", "step": "16", "clip": "false"},
        [(0, 0, 5, 7), (0, 0, 30, 90)],
    ),
    (
        "PriorBoxClustered", {"width": "5,30", "height": "7,90", "offset": "0.5"},
        [(0, 0, 5, 7), (0, 0, 30, 90)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("variance", ["", "0.3", "0.1,0.1,0.2,0.2"])
@pytest.mark.parametrize("clip", ["true", "false"])
@pytest.mark.parametrize(("kind", "attributes", "cell"), CASES)
def test_against_loops(run, infer, kind: str, attributes, cell, clip: str, variance: str) -> None:
    attributes = attributes | {"variance": variance, "clip": clip}
    found = run(kind, list(GRID), list(IMAGE), **attributes)
    step = float(attributes.get("step", 0))
    if attributes.get("scale_all_sizes") == "false":
        step = IMAGE[0] / GRID[0] if step == -1 else step * IMAGE[0]
    expected = loops(cell, step, float(attributes["offset"]))
    if clip == "true":
        expected = np.clip(expected, 0, 1)
    elif "fixed_size" in attributes:  # the runtime clips these on one side each
        expected[:, :2] = np.maximum(expected[:, :2], 0)
        expected[:, 2:] = np.minimum(expected[:, 2:], 1)
    np.testing.assert_allclose(found[0].reshape(-1, 4), expected, rtol=1e-5, atol=1e-6)
    values = [float(v) for v in (variance or "0.1").split(",")]
    np.testing.assert_allclose(
        found[1].reshape(-1, 4), np.broadcast_to(values, (len(expected), 4)), rtol=1e-6
    )
    assert infer(kind, list(GRID), list(IMAGE), **attributes) == f"[2,{4 * len(expected)}]"


def test_examples_of_the_documents(infer) -> None:
    """The shapes that PriorBox-1 and PriorBoxClustered-1 print."""
    prior = {"aspect_ratio": "2.0", "flip": "true", "max_size": "38.46", "min_size": "16.0"}
    assert infer("PriorBox", [24, 42], [384, 672], offset=0.5, **prior) == "[2,16128]"
    nine = ",".join(["1"] * 9)
    found = infer("PriorBoxClustered", [10, 19], [180, 320], width=nine, height=nine, offset=0.5)
    assert found == "[2,6840]"
    assert infer("PriorBox", "i64[2]", "i64[2]", offset=0.5, **prior) == "[2,?]"


@pytest.mark.parametrize(
    ("kind", "attributes", "message"),
    [
        ("PriorBox", {"min_size": "1", "variance": "1,2"}, "variance must have 0, 1 or 4"),
        ("PriorBox", {"min_size": "1", "max_size": "2,3"}, "max_size must have at most one"),
        ("PriorBox", {"fixed_size": "1,2", "density": "1"}, "density must have one element"),
        ("PriorBox", {"fixed_size": "9", "density": "1e9"}, "density must make at most 65536"),
        ("PriorBox", {"min_size": "1", "aspect_ratio": "0"}, "aspect_ratio must be positive"),
        ("PriorBoxClustered", {"width": "1,2", "height": "1"}, "height must have one element"),
    ],
)
def test_attributes_that_do_not_fit(infer, kind: str, attributes, message: str) -> None:
    with pytest.raises(DeconvError, match=message):
        infer(kind, [1, 1], [9, 9], offset=0.5, **attributes)


def test_sizes_that_no_array_can_have(run) -> None:
    """They are refused before anything is allocated."""
    with pytest.raises(DeconvError, match="bytes"):
        run("PriorBox", [2**31, 2**31], [9, 9], min_size=1, offset=0.5)
    with pytest.raises(DeconvError, match="output_size must not be negative"):
        run("PriorBox", [-1, 2], [9, 9], min_size=1, offset=0.5)
