"""Proposal where regions are dropped: OpenVINO's result is ours, except for the order of ties.

All scores are distinct and positive, so regions that are smaller than min_size, whose score is 0,
are the only ties.  OpenVINO sorts without an order for them, and each order suppresses other
regions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from operation_forms import make

from deconv_ir.operations import Context

from .runtimes import ov

pytestmark = pytest.mark.peers

ANCHORS = 6
UNSIGNED = ("base_size", "pre_nms_topn", "post_nms_topn", "feat_stride", "min_size")
# IoU and corners are computed in f32 on both sides, in another order.
SLACK = 1e-4


def draw(seed: int, min_size: int) -> tuple[int, dict[str, Any], list[np.ndarray]]:
    """Return the version, the attributes, and class_probs, bbox_deltas and image_shape."""
    rng = np.random.default_rng([seed, min_size])
    tensorflow = bool(seed & 1)
    attributes = {
        "base_size": int(rng.choice([8, 16])),
        "pre_nms_topn": int(rng.choice([30, 100, 1000])),
        "post_nms_topn": int(rng.choice([5, 60, 300])),
        "nms_thresh": float(rng.choice([0.3, 0.5, 0.7])),
        "feat_stride": int(rng.choice([8, 16])),
        "min_size": min_size,
        "ratio": [0.5, 1.0, 2.5],
        "scale": [0.5, 2.0],
        "clip_before_nms": bool(seed & 2),
        "clip_after_nms": False,
        "normalize": False,
        "box_size_scale": float(rng.choice([1.0, 5.0])),
        "box_coordinate_scale": float(rng.choice([1.0, 10.0])),
        "framework": "tensorflow" if tensorflow else "",
    }
    images, height, width = (int(rng.integers(low, high)) for low, high in ((1, 3), (3, 8), (3, 8)))
    shape = (images, 2 * ANCHORS, height, width)
    scores = (rng.permutation(np.prod(shape)) + 1.0).reshape(shape) / (np.prod(shape) + 1)
    deltas = rng.uniform(-1, 1, (images, 4 * ANCHORS, height, width))
    image_shape = [70.0, 50.0, 1.0] if seed & 4 else [70.0, 50.0, 0.5, 1.5]
    arrays = [np.array(a, np.float32) for a in (scores, deltas, image_shape)]
    return (1, 4)[seed // 8 % 2], attributes, arrays


def ours(attributes: dict[str, Any], arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the regions, [N, post_nms_topn, 5], and their scores."""
    written = {
        name: ",".join(map(str, value)) if isinstance(value, list) else value
        for name, value in attributes.items()
    }
    rows, scores = make("Proposal-4", **written).execute(arrays, Context())
    images = len(arrays[0])
    return rows.reshape(images, -1, 5), scores.reshape(images, -1)


def theirs(version: int, attributes: dict[str, Any], arrays: list[np.ndarray]) -> np.ndarray:
    given = {k: np.uint32(v) if k in UNSIGNED else v for k, v in attributes.items()}
    builder = ov.opset1 if version == 1 else ov.opset4
    parameters = [builder.parameter(list(a.shape), np.float32) for a in arrays]
    node = builder.proposal(*parameters, given)
    compiled = ov.Core().compile_model(
        ov.Model(node.outputs(), parameters, "p"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    return np.array(compiled(arrays)[0]).reshape(len(arrays[0]), -1, 5)


def shares(one: np.ndarray, other: np.ndarray, offset: float) -> np.ndarray:
    """Return intersection over union of each box of `one` with each of `other`."""
    low = np.maximum(one[:, None, :2], other[:, :2])
    high = np.minimum(one[:, None, 2:], other[:, 2:])
    common = np.where((high < low).any(-1), 0.0, (high - low + offset).prod(-1))
    areas = [(b[:, 2:] - b[:, :2] + offset).prod(-1) for b in (one, other)]
    with np.errstate(invalid="ignore"):  # 0 / 0 of two empty boxes: no overlap
        return np.nan_to_num(common / (areas[0][:, None] + areas[1] - common))


@pytest.mark.parametrize("min_size", [1, 6, 16])
@pytest.mark.parametrize("seed", range(16))
def test_every_difference_is_a_tie(seed: int, min_size: int) -> None:
    version, attributes, arrays = draw(seed, min_size)
    mine, scores = ours(attributes, arrays)
    found = theirs(version, attributes, arrays)
    total = arrays[1].shape[1] // 4 * arrays[1][0, 0].size
    everything = attributes | {"pre_nms_topn": total, "post_nms_topn": total, "nms_thresh": 1.0}
    boxes, all_scores = ours(everything, arrays)
    offset = 0.0 if attributes["framework"] else 1.0
    most = min(attributes["pre_nms_topn"], total)
    for image, rows in enumerate(found):
        certain = np.count_nonzero(scores[image])
        np.testing.assert_allclose(rows[:certain], mine[image, :certain], SLACK, SLACK)
        positive = np.count_nonzero(all_scores[image])
        tied = boxes[image, positive:, 1:]
        at_end = (rows[:, 0] == -1).nonzero()[0]
        count = int(at_end[0]) if len(at_end) else len(rows)
        assert not rows[count + 1 :].any()
        kept = rows[:count, 1:]
        if most <= positive or count == certain == len(rows):
            np.testing.assert_allclose(rows, mine[image], SLACK, SLACK)
            continue
        # The rest is the outcome of some order of the ties: regions of score 0, each once, that
        # overlap none before them, and none of those that were sorted is missing.
        left = np.ones(len(tied), bool)
        for row in kept[certain:]:
            match = (np.isclose(tied, row, SLACK, SLACK).all(-1) & left).nonzero()[0]
            assert len(match), row
            left[match[0]] = False
        overlaps = shares(kept, kept, offset)
        assert (np.triu(overlaps, 1)[:, certain:] <= attributes["nms_thresh"] + SLACK).all()
        suppressed = (shares(kept, tied, offset) > attributes["nms_thresh"] - SLACK).any(0) & left
        sorted_ties = most - positive
        assert count - certain <= sorted_ties
        if count < len(rows):
            assert count - certain + np.count_nonzero(suppressed) >= sorted_ties
