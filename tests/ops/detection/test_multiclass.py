"""MatrixNms (Wang et al. 2020, "SOLOv2", section 3.3) and MulticlassNms against loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.detection.multiclass import Decay, MatrixNms, MulticlassNms9, SortResult
from tests.ops.detection.test_nms import overlap

RNG = np.random.default_rng(5)
LOW = RNG.uniform(0, 1, (2, 7, 2))
BOXES = np.concatenate([LOW, LOW + RNG.uniform(0.2, 0.9, (2, 7, 2))], -1).astype(np.float32)
SCORES = RNG.uniform(0, 1, (2, 3, 7)).astype(np.float32)

Row = tuple[int, int, float, int]
"""Image, class, score and index of a box."""


def candidates(scores: np.ndarray, least: float, most: int) -> list[int]:
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    return [i for i in order if scores[i] > least][:most]


def matrix(image: int, number: int, decay: Decay) -> list[Row]:
    order = candidates(SCORES[image, number], 0.1, 5)
    ious = [[overlap(BOXES[image, a], BOXES[image, b]) for b in order] for a in order]
    rows = []
    for i, index in enumerate(order):
        factors = [1.0]
        for j in range(i):
            worst = max((ious[j][k] for k in range(j)), default=0.0)
            if decay is Decay.LINEAR:
                factors.append((1 - ious[i][j]) / (1 - worst))
            else:
                factors.append(math.exp(2 * (worst**2 - ious[i][j] ** 2)))
        # The first factor is that of the box itself, used if no box is better.
        score = float(SCORES[image, number, index]) * min(factors[1:] or factors)
        if score > 0.2:
            rows.append((image, number, score, index))
    return rows


def suppressed(image: int, number: int, eta: float) -> list[Row]:
    kept: list[int] = []
    limit = 0.7
    for index in candidates(SCORES[image, number], 0.1, 5):
        if all(overlap(BOXES[image, index], BOXES[image, k]) <= limit for k in kept):
            kept.append(index)
            limit *= eta if limit > 0.5 else 1
    return [(image, number, float(SCORES[image, number, k]), k) for k in kept]


def compare(found: list[np.ndarray], rows: list[Row]) -> None:
    outputs, indices, counts = found
    assert indices.ravel().tolist() == [image * 7 + index for image, _, _, index in rows]
    assert outputs[:, 0].tolist() == [number for _, number, _, _ in rows]
    np.testing.assert_allclose(outputs[:, 1], [score for _, _, score, _ in rows], rtol=1e-4)
    expected = [BOXES[image, index] for image, _, _, index in rows]
    np.testing.assert_array_equal(outputs[:, 2:], expected)
    assert counts.tolist() == [sum(row[0] == image for row in rows) for image in range(2)]


@pytest.mark.parametrize("decay", Decay)
def test_matrix(decay: Decay) -> None:
    operation = MatrixNms(
        decay_function=decay,
        score_threshold=0.1,
        post_threshold=0.2,
        nms_top_k=5,
        background_class=1,
        sort_result_type=SortResult.SCORE,
        sort_result_across_batch=True,
    )
    rows = [row for n in range(2) for c in (0, 2) for row in matrix(n, c, decay)]
    found = list(operation.execute([BOXES, SCORES], Context()))
    compare(found, sorted(rows, key=lambda row: -row[2]))


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("eta", [1.0, 0.8])
def test_multiclass(eta: float, across: bool) -> None:
    operation = MulticlassNms9(
        iou_threshold=0.7,
        nms_eta=eta,
        score_threshold=0.1,
        nms_top_k=5,
        keep_top_k=6,
        sort_result_type=SortResult.CLASS,
        sort_result_across_batch=across,
    )
    kept = []
    for image in range(2):
        rows = [row for number in range(3) for row in suppressed(image, number, eta)]
        best = sorted(rows, key=lambda row: -row[2])[:6]
        kept += sorted(best, key=lambda row: (row[1], -row[2]))
    if across:
        kept = sorted(kept, key=lambda row: (row[1], row[0], -row[2]))
    compare(list(operation.execute([BOXES, SCORES], Context())), kept)


def test_boxes_of_all_images_in_one_list() -> None:
    """`roisnum` divides the list into images; each class has its own boxes (MulticlassNms-9)."""
    boxes = np.concatenate([BOXES, BOXES[:1] + 1])  # of three classes
    scores = SCORES[0]
    operation = MulticlassNms9(iou_threshold=0.7, sort_result_type=SortResult.CLASS)
    outputs, indices, counts = operation.execute([boxes, scores, np.array([3, 4])], Context())
    seen = []
    for image, part in enumerate((slice(0, 3), slice(3, 7))):
        for number in range(3):
            kept: list[int] = []
            places = range(part.start, part.stop)
            for i in sorted(places, key=lambda i: -scores[number, i]):
                if all(overlap(boxes[number, i], boxes[number, k]) <= 0.7 for k in kept):
                    kept.append(i)
            seen += [(image, number, i) for i in kept]
    assert indices.ravel().tolist() == [i * 3 + number for _, number, i in seen]
    assert outputs[:, 0].tolist() == [number for _, number, _ in seen]
    assert counts.tolist() == [sum(row[0] == image for row in seen) for image in range(2)]
    with pytest.raises(ShapeError, match="roisnum must add up to 7 at most"):
        operation.execute([boxes, scores, np.array([3, 5])], Context())


@pytest.mark.parametrize(("limit", "kept"), [(0.1, 1), (0.2, 2)])
def test_boxes_of_whole_pixels(limit: float, kept: int) -> None:
    """Without `normalized`, both ends belong to a box: 2 x 2 pixels each, one in common, 1/7."""
    boxes = np.array([[[0, 0, 1, 1], [1, 1, 2, 2]]], np.float32)
    operation = MulticlassNms9(iou_threshold=limit, normalized=False)
    scores = np.array([[[0.9, 0.8]]], np.float32)
    assert operation.execute([boxes, scores], Context())[2].tolist() == [kept]


def test_the_number_of_boxes_is_bounded() -> None:
    operation = MatrixNms(nms_top_k=4, keep_top_k=9, background_class=0)
    found = operation.infer([TensorInfo((2, 7, 4), F32), TensorInfo((2, 3, 7), F32)], Context())
    assert [str(info.shape) for info in found] == ["(0..16, 6)", "(0..16, 1)", "(2,)"]
