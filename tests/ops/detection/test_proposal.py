"""Proposal, GenerateProposals and the operations of Detectron against loops over regions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from operation_forms import make

from deconv_ir.errors import DeconvError
from deconv_ir.operations import Context, find_operation
from deconv_ir.ops.base import attributes_of


def iou(a, b, one: float) -> float:
    """Intersection over union; `one` is 1 where corners are the first and the last pixel."""
    if a[0] > b[2] or a[1] > b[3] or b[0] > a[2] or b[1] > a[3]:
        return 0.0
    sides = [min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + one for i in (0, 1)]
    if min(sides) <= 0:
        return 0.0
    areas = [(c[2] - c[0] + one) * (c[3] - c[1] + one) for c in (a, b)]
    common = sides[0] * sides[1]
    return common / (sum(areas) - common)


def suppressed(found, limit: float, most: int, one: float, eta: float = 1.0):
    """Keep (score, box), by falling score, that overlap no kept one too much."""
    kept: list = []
    for score, box in found:
        if len(kept) < most and all(iou(box, other, one) <= limit for _, other in kept):
            kept.append((score, box))
            limit *= eta if limit > 0.5 else 1.0
    return kept


def moved(box, delta, one: float, end: float, most: float = math.inf):
    """Return the box of Faster R-CNN's parametrisation (Ren et al. 2015, section 3.1.2)."""
    result = [0.0] * 4
    for i in (0, 1):
        size = box[i + 2] - box[i] + one
        center = box[i] + size / 2 + delta[i] * size
        half = math.exp(min(delta[i + 2], most)) * size / 2
        result[i], result[i + 2] = center - half, center + half - end
    return result


def clipped(box, width: float, height: float):
    return [min(max(v, 0.0), most) for v, most in zip(box, [width, height] * 2, strict=True)]


def propose(scores, deltas, shape, tensorflow: bool, how) -> list:
    """Return (score, box) of one image."""
    one = 0.0 if tensorflow else 1.0
    height, width = (shape[1], shape[0]) if tensorflow else (shape[0], shape[1])
    anchors = []
    for ratio, scale in itertools.product(how["ratio"], how["scale"]):
        wide = math.sqrt(how["base_size"] ** 2 / ratio)
        wide = wide if tensorflow else math.floor(wide + 0.5)
        high = wide * ratio if tensorflow else math.floor(wide * ratio + 0.5)
        center = 0.0 if tensorflow else (how["base_size"] - 1) / 2
        half = (wide * scale - one) / 2, (high * scale - one) / 2
        anchors.append([center - half[0], center - half[1], center + half[0], center + half[1]])
    count, rows, columns = len(anchors), *scores.shape[1:]
    found = []
    for row, column, k in itertools.product(range(rows), range(columns), range(count)):
        x, y = (row, column) if tensorflow else (column, row)
        box = [v + how["feat_stride"] * s for v, s in zip(anchors[k], [x, y] * 2, strict=True)]
        if tensorflow:
            box = clipped(box, width, height)
        delta = deltas[4 * k : 4 * k + 4, row, column].copy()
        delta[:2] /= how["box_coordinate_scale"]
        delta[2:] /= how["box_size_scale"]
        box = moved(box, delta, one, 0.0)
        if how["clip_before_nms"]:
            box = clipped(box, width - one, height - one)
        large = (
            box[2] - box[0] + one >= how["min_size"] * shape[-1]
            and box[3] - box[1] + one >= how["min_size"] * shape[2]
        )
        found.append((scores[count + k, row, column] * large, box))
    found.sort(key=lambda item: -item[0])
    kept = suppressed(found[: how["pre_nms_topn"]], how["nms_thresh"], how["post_nms_topn"], one)
    result = []
    for score, box in kept:
        box = clipped(box, width, height) if how["clip_after_nms"] else box
        if how["normalize"]:
            box = [v / s for v, s in zip(box, [width, height] * 2, strict=True)]
        result.append((score, box))
    return result


@pytest.mark.parametrize("framework", ["", "tensorflow"])
@pytest.mark.parametrize("seed", range(8))
def test_proposal_against_loops(seed: int, framework: str) -> None:
    rng = np.random.default_rng(seed)
    before, after, normal, small = map(bool, (seed & 1, seed & 2, seed & 4, seed % 3 == 0))
    how = {
        "base_size": 16, "pre_nms_topn": (25, 900)[seed % 2], "post_nms_topn": (3, 40)[seed // 4],
        "nms_thresh": 0.5, "feat_stride": 8, "min_size": 9 if small else 0,
        "ratio": [0.5, 2.5], "scale": [0.5, 2.0], "clip_before_nms": before,
        "clip_after_nms": after, "normalize": normal, "box_size_scale": 2.0,
        "box_coordinate_scale": 4.0,
    }  # fmt: skip
    scores = rng.uniform(0, 1, (2, 8, 3, 4)).astype(np.float32)
    deltas = rng.normal(0, 1, (2, 16, 3, 4)).astype(np.float32)
    shape = np.array([50, 40, 1] if seed % 2 else [50, 40, 0.5, 1.5], np.float32)
    written = {k: ",".join(map(str, v)) if isinstance(v, list) else v for k, v in how.items()}
    both = [
        make(f"Proposal-{version}", framework=framework, **written).execute(
            [scores, deltas, shape], Context()
        )
        for version in (1, 4)
    ]
    assert [len(outputs) for outputs in both] == [1, 2]
    np.testing.assert_array_equal(both[0][0], both[1][0])
    rows, values = both[1]
    for image in range(2):
        expected = propose(scores[image], deltas[image], shape, framework == "tensorflow", how)
        if small:  # regions that are too small have equal scores, in no order
            expected = [item for item in expected if item[0]]
        count = len(expected)
        mine = rows.reshape(2, -1, 5)[image]
        np.testing.assert_allclose(mine[:count, 1:], [box for _, box in expected], 1e-4, 1e-4)
        assert (mine[:count, 0] == image).all()
        np.testing.assert_allclose(
            values.reshape(2, -1)[image, :count], [score for score, _ in expected], rtol=1e-6
        )
        if count < len(mine) and not small:
            assert mine[count:].tolist() == [[-1, 0, 0, 0, 0]] + [[0] * 5] * (len(mine) - count - 1)


def test_files_of_model_optimizer(infer) -> None:
    """The examples of Proposal-1 and -4; booleans as 0 and 1, an empty framework."""
    first = {
        "base_size": 16, "feat_stride": 16, "min_size": 16, "nms_thresh": 0.6,
        "post_nms_topn": 200, "pre_nms_topn": 6000, "ratio": "2.67",
        "scale": "4.0,6.0,9.0,16.0,24.0,32.0", "framework": "", "normalize": "0",
    }  # fmt: skip
    found = infer("Proposal", "f32[1,12,4,5]", "f32[1,24,4,5]", "f32[3]", **first)
    assert found == "[200,5]"
    fourth = first | {"post_nms_topn": 1000, "ratio": "1", "scale": "1,2"}
    found = infer("Proposal-4", "f32[7,4,28,28]", "f32[7,8,28,28]", "f32[3]", **fourth)
    assert found == "[7000,5] [7000]"
    found = infer("Proposal-4", "f32[?,4,?,?]", "f32[2..3,?,?,?]", "f32[?]", **fourth)
    assert found == "[2000..3000,5] [2000..3000]"


def detectron_anchors(anchors, deltas, scores, size, one: float):
    """Return (score, box) of each anchor of each cell."""
    count, rows, columns = scores.shape
    for row, column, k in itertools.product(range(rows), range(columns), range(count)):
        box = moved(
            anchors[row, column, k], deltas[4 * k : 4 * k + 4, row, column], one, one,
            math.log(1000 / 16),
        )  # fmt: skip
        yield scores[k, row, column], clipped(box, size[1] - one, size[0] - one)


def anchors_of(rng: np.random.Generator) -> np.ndarray:
    low = rng.uniform(-5, 40, (3, 4, 2, 2))
    return np.concatenate([low, low + rng.uniform(5, 30, low.shape)], -1).astype(np.float32)


@pytest.mark.parametrize(("least", "pre", "post"), [(0, 20, 50), (0, 100, 4), (12, 15, 3)])
def test_single_image_against_loops(least: float, pre: int, post: int) -> None:
    """ExperimentalDetectronGenerateProposalsSingleImage-6: smaller boxes lose their score."""
    rng = np.random.default_rng(pre)
    anchors, deltas = anchors_of(rng), rng.normal(0, 0.5, (8, 3, 4)).astype(np.float32)
    scores = rng.uniform(0.1, 1, (2, 3, 4)).astype(np.float32)
    size = np.array([45, 50, 1], np.float32)
    operation = make(
        "ExperimentalDetectronGenerateProposalsSingleImage-6", min_size=least, nms_threshold=0.4,
        pre_nms_count=pre, post_nms_count=post,
    )  # fmt: skip
    rois, values = operation.execute([size, anchors.reshape(-1, 4), deltas, scores], Context())
    found = [
        (score * (min(b[2] - b[0], b[3] - b[1]) + 1 >= least), b)
        for score, b in detectron_anchors(anchors, deltas, scores, size, 1.0)
    ]
    found.sort(key=lambda item: -item[0])
    expected = suppressed(found[:pre], 0.4, post, 0.0)
    assert len(expected) == min(post, len(expected))
    count = len(expected)
    np.testing.assert_allclose(values[:count], [score for score, _ in expected], rtol=1e-6)
    np.testing.assert_allclose(rois[:count], [box for _, box in expected], rtol=1e-4, atol=1e-4)
    assert not rois[count:].any()
    assert not values[count:].any()
    assert rois.shape == (post, 4)


@pytest.mark.parametrize("eta", [1.0, 0.8])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize(("least", "scales"), [(0, [1]), (8, [0.5, 2])])
def test_generate_proposals_against_loops(least, scales, normalized: bool, eta: float) -> None:
    """GenerateProposals-9, steps 1 to 7, nms_eta among them, which OpenVINO refuses."""
    rng = np.random.default_rng(5)
    anchors, deltas = anchors_of(rng), rng.normal(0, 0.5, (2, 8, 3, 4)).astype(np.float32)
    scores = rng.uniform(0.1, 1, (2, 2, 3, 4)).astype(np.float32)
    info = np.array([[45, 50, *scales], [30, 60, *scales]], np.float32)
    operation = make(
        "GenerateProposals-9", min_size=least, nms_threshold=0.7, pre_nms_count=20,
        post_nms_count=15, normalized=normalized, nms_eta=eta, roi_num_type="i32",
    )  # fmt: skip
    rois, values, counts = operation.execute([info, anchors, deltas, scores], Context())
    one, expected, lengths = 0.0 if normalized else 1.0, [], []
    for image in range(2):
        found = sorted(
            detectron_anchors(anchors, deltas[image], scores[image], info[image], one),
            key=lambda item: -item[0],
        )[:20]
        large = [
            (score, b)
            for score, b in found
            if b[2] - b[0] + one >= least * scales[-1] and b[3] - b[1] + one >= least * scales[0]
        ]
        kept = suppressed(large, 0.7, 15, one, eta)
        lengths.append(len(kept))
        expected += kept
    assert counts.dtype == np.int32
    assert counts.tolist() == lengths
    np.testing.assert_allclose(values, [score for score, _ in expected], rtol=1e-6)
    np.testing.assert_allclose(rois, [box for _, box in expected], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("each", "most"), [(30, 50), (2, 50), (30, 5)])
def test_detections_against_loops(each: int, most: int) -> None:
    """ExperimentalDetectronDetectionOutput-6: empty regions have no detection."""
    rng = np.random.default_rng(each)
    low = rng.uniform(0, 30, (12, 2))
    rois = np.concatenate([low, low + rng.uniform(5, 30, (12, 2))], -1).astype(np.float32)
    rois[4, 2] = rois[4, 0]
    deltas = rng.normal(0, 2, (12, 12)).astype(np.float32)
    scores = rng.uniform(0, 1, (12, 3)).astype(np.float32)
    weights = [10.0, 8.0, 2.0, 1.5]
    operation = make(
        "ExperimentalDetectronDetectionOutput-6", score_threshold=0.3, nms_threshold=0.4,
        num_classes=3, post_nms_count=each, max_detections_per_image=most, max_delta_log_wh=0.9,
        deltas_weights="10,8,2,1.5",
    )  # fmt: skip
    inputs = [rois, deltas, scores, np.array([[60, 60, 1]], np.float32)]
    boxes, labels, values = operation.execute(inputs, Context())
    expected = []
    for label in (1, 2):
        found = []
        for roi in set(range(12)) - {4}:
            if scores[roi, label] > np.float32(0.3):
                delta = deltas[roi, 4 * label : 4 * label + 4] / weights
                box = moved(rois[roi], delta, 1.0, 1.0, 0.9)
                found.append((scores[roi, label], [max(v, 0.0) for v in box]))
        found.sort(key=lambda item: -item[0])
        expected += [(score, label, b) for score, b in suppressed(found, 0.4, each, 1.0)]
    if len(expected) > most:
        expected = sorted(expected, key=lambda row: -row[0])[:most]
    count = len(expected)
    assert labels.tolist() == [label for _, label, _ in expected] + [0] * (most - count)
    np.testing.assert_allclose(values[:count], [score for score, _, _ in expected], rtol=1e-6)
    np.testing.assert_allclose(boxes[:count], [b for _, _, b in expected], rtol=1e-4, atol=1e-4)


def test_prior_grid() -> None:
    """ExperimentalDetectronPriorGridGenerator-6: strides, and steps of the image over the grid."""
    priors = np.array([[-8, -4, 8, 4], [0, 0, 1, 1]], np.float32)
    maps = [np.zeros((1, 1, 2, 3), np.float32), np.zeros((1, 3, 40, 90), np.float32)]
    centers = [(x, y) for y in (10, 30) for x in (15, 45, 75)]
    expected = [[x + p[0], y + p[1], x + p[2], y + p[3]] for x, y in centers for p in priors]
    kind = "ExperimentalDetectronPriorGridGenerator-6"
    for strides in ({}, {"stride_x": 30, "stride_y": 20}):
        (found,) = make(kind, **strides).execute([priors, *maps], Context())
        np.testing.assert_allclose(found, expected)
    (found,) = make(kind, flatten="false").execute([priors, *maps], Context())
    np.testing.assert_allclose(found, np.reshape(expected, (2, 3, 2, 4)))
    (found,) = make(kind, h=1, stride_y=20).execute([priors, *maps], Context())
    np.testing.assert_allclose(found, expected[:6] + [[0] * 4] * 6)


@pytest.mark.parametrize("aligned", [False, True])
def test_features_of_a_pyramid(aligned: bool) -> None:
    """ExperimentalDetectronROIFeatureExtractor-6: linear maps give their value at each sample."""
    rois = np.array(
        [[8, 16, 72, 80], [0, 0, 448, 448], [10, 10, 10, 50], [40, 8, 200, 300]], np.float32
    )
    scales, extents = [4, 8, 16], [160, 80, 40]
    maps = [
        np.add.outer(1000.0 * np.arange(n), np.arange(n)).astype(np.float32)[None, None]
        for n in extents
    ]
    operation = make(
        "ExperimentalDetectronROIFeatureExtractor-6", output_size=2, sampling_ratio=2,
        pyramid_scales="4,8,16", aligned=aligned,
    )  # fmt: skip
    found, same = operation.execute([rois, *maps], Context())
    np.testing.assert_array_equal(same, rois)
    assert not found[2].any()
    for roi, values in zip(rois[[0, 1, 3]], found[[0, 1, 3], 0], strict=True):
        size = math.sqrt((roi[2] - roi[0]) * (roi[3] - roi[1]))
        level = min(max(math.floor(2 + math.log2(size / 224)), 0), 2)
        shift = 0.5 if aligned else 0.0
        x1, y1, x2, y2 = (float(v) / scales[level] - shift for v in roi)
        for i, j in itertools.product(range(2), range(2)):
            y, x = y1 + (i + 0.5) * (y2 - y1) / 2, x1 + (j + 0.5) * (x2 - x1) / 2
            np.testing.assert_allclose(values[i, j], 1000 * y + x, rtol=1e-5)


def test_top_k_rois_selects_the_best_regions(run) -> None:
    """ExperimentalDetectronTopKROIs-6; zeros where there are fewer regions."""
    rois = np.arange(12, dtype=np.float32).reshape(3, 4)
    probs = np.array([0.2, 0.9, 0.9], np.float32)
    kind = "ExperimentalDetectronTopKROIs-6"
    np.testing.assert_array_equal(run(kind, rois, probs, max_rois=2), rois[[1, 2]])
    np.testing.assert_array_equal(
        run(kind, rois, probs, max_rois=4), [*rois[[1, 2, 0]], np.zeros(4)]
    )


ONE = {
    "base_size": 16, "feat_stride": 16, "min_size": 16, "nms_thresh": 0.6,
    "post_nms_topn": 200, "pre_nms_topn": 6000, "ratio": "1", "scale": "1,2",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "message"),
    [
        ("Proposal", ("f32[1,6,2,2]", "f32[1,8,2,2]", "f32[3]"), ONE, "class_probs must have"),
        ("Proposal", ("f32[1,4,2,2]", "f32[1,8,2,3]", "f32[3]"), ONE, "bbox_deltas must have"),
        ("Proposal", ("f32[1,4,2,2]", "f32[1,8,2,2]", "f32[5]"), ONE, "3 or 4 elements"),
        (
            "Proposal", ("f32[1,4,2,2]", "f32[1,8,2,2]", "f32[3]"), ONE | {"ratio": "0"},
            "ratio must be positive",
        ),
        (
            "Proposal", ("f32[1,4,2,2]", "f32[1,8,2,2]", "f32[3]"), ONE | {"framework": "caffe"},
            "must be tensorflow or nothing",
        ),
        (
            "GenerateProposals-9", ("f32[1,3]", "f32[2,2,3,4]", "f32[1,12,2,2]", "f32[1,4,2,2]"),
            {"min_size": 0, "nms_threshold": 1, "pre_nms_count": 1, "post_nms_count": 1},
            "scores must have shape",
        ),
        (
            "ExperimentalDetectronROIFeatureExtractor-6", ("f32[1,4]",) + ("f32[1,2,4,4]",) * 2,
            {"output_size": 2, "sampling_ratio": 0, "pyramid_scales": "4"}, "pyramid_scales must",
        ),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit(infer, kind: str, inputs, attributes, message: str) -> None:
    with pytest.raises(DeconvError, match=message):
        infer(kind, *inputs, **attributes)


def test_top_k_rois_may_leave_their_number_out() -> None:
    """ExperimentalDetectronTopKROIs-6: max_rois is 0 by default, and not required."""
    operation = find_operation("ExperimentalDetectronTopKROIs", "opset6")
    assert operation is not None
    (max_rois,) = attributes_of(operation)
    assert (max_rois.name, max_rois.default, max_rois.required) == ("max_rois", 0, False)


@pytest.mark.parametrize("version", ["extension", "experimental"])
@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("Proposal", "opset4"),
        ("ExperimentalDetectronTopKROIs", "opset6"),
        ("GRUCell", "opset3"),
        ("RNNCell", "opset1"),
        ("GatherND", None),
    ],
)
def test_operations_before_they_were_in_an_opset(kind: str, taken: str | None, version) -> None:
    """OpenVINO's reader takes eight types from opset6 where files call them extensions."""
    found = find_operation(kind, version)
    assert found is (taken and find_operation(kind, taken))
