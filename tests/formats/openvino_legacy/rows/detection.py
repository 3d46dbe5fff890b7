"""Layers of detectors."""

from __future__ import annotations

import numpy as np

from .. import oracles
from .row import RNG, Array, Const, Row, X, real

MAP, IMAGE = np.zeros((1, 8, 2, 3), np.float32), np.zeros((1, 3, 32, 48), np.float32)
VARIANCE4 = (0.1, 0.1, 0.2, 0.2)
PRIOR = {"min_size": "8.0", "max_size": "18.0", "aspect_ratio": "2.000000", "flip": 1, "clip": 0}
PRIOR |= {"offset": "0.500000", "variance": "0.100000,0.100000,0.200000,0.200000"}
YOLO = real(1, 3 * (5 + 2), 2, 3)
FINE = real(1, 8, 4, 6)
ROIS = np.float32([[0, 1, 1, 8, 9], [1, 0, 2, 5, 11]])
X8 = real(2, 8, 9, 9)
SCORES = np.float32([[[0.9, 0.8, 0.75, 0.3]]])
BOXES = np.float32([[[0, 0, 10, 10], [0, 1, 10, 11], [20, 20, 30, 30], [40, 40, 41, 41]]])
# One class besides the background: box 1 overlaps box 0, box 3 is below the threshold.
PRIORS = np.float32([[0.1, 0.1, 0.5, 0.5, 0.12, 0.1, 0.52, 0.5, 0.6, 0.6, 0.9, 0.9]])
CONFIDENCES = np.float32([[0.1, 0.9, 0.2, 0.8, 0.4, 0.6]])
DETECTED = np.zeros((1, 1, 3, 7), np.float32)
DETECTED[0, 0, 0] = [0, 1, 0.9, 0.1, 0.1, 0.5, 0.5]
DETECTED[0, 0, 1] = [0, 1, 0.6, 0.6, 0.6, 0.9, 0.9]
DETECTED[0, 0, 2, 0] = -1
RPN_SCORES = RNG.permutation(np.arange(2 * 18 * 3 * 4, dtype=np.float32) / 400 - 0.1)
RPN_SCORES = RPN_SCORES.reshape(2, 18, 3, 4)
RPN_DELTAS = 0.2 * real(2, 36, 3, 4)
FEW = np.where(RPN_SCORES < 0.93, -1, RPN_SCORES).astype(np.float32)
SMALL_SCALES = (0.5, 1.0, 2.0)


def nms_row(
    scores: Array, image: list[float], least: int, counts: tuple[int, int], swap: bool = False
) -> Row:
    """Return a SimplerNMS; the Inference Engine knew scores and deltas by their channels."""
    attributes = {"cls_threshold": "0.7", "max_num_proposals": 300, "iou_threshold": "0.500000"}
    attributes |= {"min_bbox_size": least, "feat_stride": 16, "scale": "0.500000,1.0,2.0"}
    attributes |= {"pre_nms_topn": counts[0], "post_nms_topn": counts[1]}
    inputs = [RPN_DELTAS, scores] if swap else [scores, RPN_DELTAS]
    wanted = oracles.simpler_nms(scores, RPN_DELTAS, image, SMALL_SCALES, 16, least, 0.5, counts)
    return "SimplerNMS", [*inputs, np.float32([image])], attributes, {}, [wanted]


def proposal_row(base: int, scales: list[float]) -> Row:
    """Return a Proposal as Model Optimizer wrote MXNet's; a base size of 0 is the stride."""
    attributes = {"base_size": base, "feat_stride": 16, "min_size": 3, "for_deformable": 1}
    attributes |= {"ratio": "0.5,1,2", "scale": scales, "nms_thresh": "0.6"}
    attributes |= {"pre_nms_topn": 60, "post_nms_topn": 12}
    image, ratios = [48, 64, 1.5], (0.5, 1, 2)
    rows = oracles.mxnet_proposal(
        RPN_SCORES[:1], RPN_DELTAS[:1], image, ratios, scales, base or 16, 3, 0.6, (60, 12)
    )
    inputs = [RPN_SCORES[:1], RPN_DELTAS[:1], np.float32([image])]
    return "Proposal", inputs, attributes, {}, [rows]


FIXED = {"fixed_size": "16,24", "density": "2,1", "flip": 0, "clip": 0, "offset": 0.5}
STEPS = {"step_w": "16.0", "step_h": "12.0"}
"""Of a PriorBox, which the current one lacks."""
ROOT2 = 2**0.5
DETECTIONS: list[Row] = [
    proposal_row(0, [0.5, 1, 2]),
    proposal_row(16, [0.25, 1, 2]),
    nms_row(RPN_SCORES, [48, 64, 1], 8, (50, 12)),
    nms_row(RPN_SCORES, [48, 64, 1.9], 16, (9, 12), swap=True),
    nms_row(FEW, [48.7, 64.2, 2], 4, (100, 20)),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**PRIOR, "step": "16.000000", "img_h": 64, "img_w": 96},
        {},
        [oracles.prior_box((2, 3), (64, 96), 8, 18, 2, 16, VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**PRIOR, "step": "16.000000", "img_size": "64"},
        {},
        [oracles.prior_box((2, 3), (64, 64), 8, 18, 2, 16, VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**PRIOR, **STEPS},
        {},
        [
            oracles.clustered(
                (2, 3),
                (32, 48),
                [(8, 8), (12, 12), (8 * ROOT2, 8 / ROOT2), (8 / ROOT2, 8 * ROOT2)],
                (16, 12),
                VARIANCE4,
            )
        ],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {
            "min_size": "8,4",
            "aspect_ratio": "1.0,4.0",
            "flip": 0,
            "clip": 0,
            "offset": "0.5",
            "variance": VARIANCE4,
            "scale_all_sizes": 0,
            **STEPS,
        },
        {},
        [oracles.clustered((2, 3), (32, 48), [(8, 8), (4, 4), (16, 4)], (16, 12), VARIANCE4)],
    ),
    # As in converted files of MXNet: pixels, although PriorBox-1 would have shares of the image.
    (
        "PriorBox",
        [MAP, IMAGE],
        {
            "min_size": "8,12",
            "max_size": "",
            "aspect_ratio": "1.0,2.0,0.5",
            "flip": 0,
            "clip": 0,
            "offset": "0.5",
            "variance": VARIANCE4,
            "scale_all_sizes": 0,
            "step": "17.066666666666666",
            "step_h": 0,
            "step_w": 0,
        },
        {},
        [
            oracles.clustered(
                (2, 3),
                (32, 48),
                [(8, 8), (12, 12), (8 * ROOT2, 8 / ROOT2), (8 / ROOT2, 8 * ROOT2)],
                (17.066666666666666,) * 2,
                VARIANCE4,
            )
        ],
    ),
    # Without a step, centers are those of cells, whatever the offset.
    (
        "PriorBox",
        [MAP, IMAGE],
        {"min_size": "8", "scale_all_sizes": 0, "offset": "0", "variance": VARIANCE4},
        {},
        [oracles.clustered((2, 3), (32, 48), [(8, 8)], (16, 16), VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**PRIOR, "step": "16.000000"},
        {},
        [oracles.prior_box((2, 3), (32, 48), 8, 18, 2, 16, VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {
            **PRIOR,
            "step": "0",
            "step_h": "16.0",
            "step_w": "16.0",
            "img_h": 0,
            "img_w": 0,
            "img_size": 0,
            "density": "",
        },
        {},
        [oracles.prior_box((2, 3), (32, 48), 8, 18, 2, 16, VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**FIXED, "fixed_ratio": "0.5", "variance": VARIANCE4, **STEPS},
        {},
        [oracles.dense((2, 3), (32, 48), (16, 24), (2, 1), (0.5,), (16, 12), VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**FIXED, "aspect_ratio": "2.0", "variance": VARIANCE4, **STEPS},
        {},
        [oracles.dense((2, 3), (32, 48), (16, 24), (2, 1), (1, 2), (16, 12), VARIANCE4)],
    ),
    (
        "PriorBoxClustered",
        [MAP, IMAGE],
        {
            "width": "8.0,4.0",
            "height": "6.0,12.0",
            "step": "16.0",
            "offset": 0.5,
            "clip": 0,
            "flip": 0,
            "variance": VARIANCE4,
        },
        {},
        [oracles.clustered((2, 3), (32, 48), [(8, 6), (4, 12)], (16, 16), VARIANCE4)],
    ),
    (
        "PriorBoxClustered",
        [MAP, IMAGE],
        {
            "width": "8.0",
            "height": "6.0",
            "step_w": "16.0",
            "step_h": "16.0",
            "img_h": 64,
            "img_w": 96,
            "offset": 0.5,
            "variance": VARIANCE4,
        },
        {},
        [oracles.clustered((2, 3), (64, 96), [(8, 6)], (16, 16), VARIANCE4)],
    ),
    (
        "DetectionOutput",
        [
            np.zeros((1, 12), np.float32),
            CONFIDENCES,
            np.stack([PRIORS, np.full_like(PRIORS, 0.1)], 1),
        ],
        {
            "num_classes": 2,
            "background_label_id": 0,
            "top_k": 400,
            "keep_top_k": 3,
            "normalized": 1,
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
            "share_location": 1,
            "nms_threshold": "0.449999988",
            "confidence_threshold": "0.0100000",
            "eta": "1.0",
            "variance_encoded_in_target": 0,
            "visualize": "False",
        },
        {},
        [DETECTED],
    ),
    (
        "RegionYolo",
        [YOLO],
        {
            "axis": 1,
            "classes": 2,
            "coords": 4,
            "do_softmax": 0,
            "end_axis": 3,
            "mask": "0,1,2",
            "num": 9,
        },
        {},
        [oracles.region_yolo(YOLO, 2, 3)],
    ),
    (
        "RegionYolo",
        [YOLO],
        {
            "axis": 1,
            "classes": 2,
            "coords": 4,
            "do_softmax": 1,
            "end_axis": 3,
            "num": 3,
            "anchors": "1.0,2.0",
        },
        {},
        [oracles.region_softmax(YOLO, 2, 3).reshape(1, -1)],
    ),
    ("ReorgYolo", [FINE], {"stride": 2}, {}, [oracles.reorg_yolo(FINE, 2)]),
    (
        "ROIPooling",
        [X, ROIS],
        {"pooled_h": 2, "pooled_w": 3, "spatial_scale": "0.500000", "method": "max"},
        {},
        [oracles.roi_max(X, ROIS, (2, 3), 0.5)],
    ),
    (
        "PSROIPooling",
        [X8, ROIS],
        {"group_size": 2, "output_dim": 2, "spatial_scale": 0.5},
        {},
        [oracles.psroi_average(X8, ROIS, 2, 2, 0.5)],
    ),
    (
        "NonMaxSuppression",
        [BOXES, SCORES, Const([3]), Const([0.5], "f4"), Const([0.5], "f4")],
        {"center_point_box": 0},
        {},
        [np.int32([[0, 0, 0], [0, 0, 2], [-1, -1, -1]])],
    ),
    (
        "NonMaxSuppression",
        [BOXES, SCORES],
        {"center_point_box": "false"},
        {},
        [np.int32([[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 3], [-1, -1, -1]])],
    ),
]
