"""NonMaxSuppression against a loop over boxes, as worded in the specification of version 5."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deconv_ir import Semantics
from deconv_ir.ir.dtypes import F32, I32
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.detection.nms import (
    BoxEncoding,
    NMSRotated,
    NonMaxSuppression,
    NonMaxSuppression3,
    NonMaxSuppression5,
)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    sides = [max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in range(2)]
    common = sides[0] * sides[1]
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return common / (sum(areas) - common) if min(areas) > 0 else 0.0


def select(
    boxes: np.ndarray, scores: np.ndarray, most: int, iou: float, least: float, sigma: float
) -> list[tuple[float, int, int, int]]:
    found = []
    for batch, number in itertools.product(*map(range, scores.shape[:2])):
        left = {i: float(s) for i, s in enumerate(scores[batch, number])}
        count = 0
        while left and count < most:
            best = max(left, key=lambda i: (left[i], -i))
            score = left.pop(best)
            if score < least:
                break
            found.append((score, batch, number, best))
            count += 1
            for i in left:
                common = overlap(boxes[batch, best], boxes[batch, i])
                weight = np.exp(-0.5 * common * common / sigma) if sigma else 1.0
                left[i] *= weight if common <= iou else 0.0
            left = {i: s for i, s in left.items() if s > 0}
    return found


@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize("encoding", BoxEncoding)
@pytest.mark.parametrize("most", [0, 2, 99])
def test_against_loops(most: int, encoding: BoxEncoding, sigma: float) -> None:
    rng = np.random.default_rng(3)
    low, size = rng.uniform(0, 1, (2, 8, 2)), rng.uniform(0.2, 0.9, (2, 8, 2))
    corners = np.concatenate([low, low + size], -1).astype(np.float32)
    scores = rng.uniform(0, 1, (2, 3, 8)).astype(np.float32)
    expected = select(corners, scores, most, 0.4, 0.2, sigma)
    given = corners
    if encoding is BoxEncoding.CENTER:
        given = np.concatenate([low + size / 2, size], -1).astype(np.float32)
    else:
        given[:, ::2] = given[:, ::2, [2, 3, 0, 1]]  # corners in any order
    numbers = [np.array(most), *(np.float32(v) for v in (0.4, 0.2, sigma))]
    inputs = [given, scores, *map(np.asarray, numbers)]
    ordered = NonMaxSuppression5(box_encoding=encoding)
    indices, rows, count = ordered.execute(inputs, Context())
    expected_by_score = sorted(expected, key=lambda row: -row[0])
    assert indices.tolist() == [list(row[1:]) for row in expected_by_score]
    np.testing.assert_allclose(rows[:, 2], [row[0] for row in expected_by_score], rtol=1e-5)
    assert rows[:, :2].tolist() == indices[:, :2].tolist()
    assert count.tolist() == [len(expected)]
    by_class = NonMaxSuppression5(box_encoding=encoding, sort_result_descending=False)
    assert by_class.execute(inputs, Context())[0].tolist() == [list(r[1:]) for r in expected]


BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.5], [3, 3, 4, 4], [5, 5, 5, 5]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.5, 0.5]]], np.float32)


@pytest.mark.parametrize(("semantics", "kept"), [("spec", [0, 1, 2, 3]), ("openvino", [0])])
def test_what_equals_a_threshold(semantics: str, kept: list[int]) -> None:
    """For an overlap and a score of 1/2, the runtime drops the box, unlike the specification."""
    inputs = [BOXES, SCORES, np.array(9), np.float32(0.5), np.float32(0.5)]
    context = Context(Semantics.of(semantics))
    (found,) = NonMaxSuppression().execute(list(map(np.asarray, inputs)), context)
    assert found[:, 2].tolist() == kept


def test_absent_inputs() -> None:
    """By default no boxes are selected."""
    (found,) = NonMaxSuppression3(output_type=I32).execute([BOXES, SCORES], Context())
    assert found.shape == (0, 3)
    assert found.dtype == np.int32


def test_the_number_of_boxes_is_bounded() -> None:
    inputs = [TensorInfo((2, 9, 4), F32), TensorInfo((2, 3, 9), F32)]
    most = TensorInfo((), I32, value=(4,))
    shape = NonMaxSuppression5().infer([*inputs, most], Context())[0].shape
    assert str(shape) == "(0..24, 3)"


def inside(box: np.ndarray, points: np.ndarray, clockwise: bool) -> np.ndarray:
    """Return which points lie inside a rotated box."""
    x, y, width, height, angle = box
    turn = angle if clockwise else -angle
    dx, dy = points[:, 0] - x, points[:, 1] - y
    along = dx * np.cos(turn) + dy * np.sin(turn)
    across = dy * np.cos(turn) - dx * np.sin(turn)
    return (abs(along) <= width / 2) & (abs(across) <= height / 2)


@pytest.mark.parametrize("clockwise", [True, False])
def test_turned_boxes(clockwise: bool) -> None:
    """Areas are counted on a grid; no overlap is close to the threshold."""
    rng = np.random.default_rng(1)
    boxes = np.concatenate(
        [rng.uniform(0, 2, (7, 2)), rng.uniform(1, 2, (7, 2)), rng.uniform(-3, 3, (7, 1))], -1
    ).astype(np.float32)
    grid = np.stack(np.meshgrid(*[np.arange(-2, 4, 0.01)] * 2), -1).reshape(-1, 2)
    held = [inside(box, grid, clockwise) for box in boxes]
    scores = rng.uniform(0.1, 1, 7).astype(np.float32)
    kept: list[int] = []
    for i in sorted(range(7), key=lambda i: -scores[i]):
        ious = [(held[i] & held[k]).sum() / (held[i] | held[k]).sum() for k in kept]
        assert all(abs(iou - 0.3) > 0.01 for iou in ious)
        if all(iou < 0.3 for iou in ious):
            kept.append(i)
    inputs = [boxes[None], scores[None, None], np.array(9), np.float32(0.3), np.float32(0)]
    operation = NMSRotated(clockwise=clockwise)
    found, rows, count = operation.execute(list(map(np.asarray, inputs)), Context())
    assert found[:, 2].tolist() == kept
    np.testing.assert_array_equal(rows[:, 2], scores[kept])
    assert count.tolist() == [len(kept)]
