"""SSD, R-CNN and Detectron: prior boxes, proposals, detections, pooled regions."""

from __future__ import annotations

import itertools

import numpy as np

from .dsl import Case, f32, i64, node, p


def cases():
    yield from detections()
    yield from priors()
    yield from proposals()
    yield from detectron()
    yield from pooled()


CODE = "caffe.PriorBoxParameter."


def detections():
    """Draw combinations of all attributes."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        flag = lambda rng=rng: bool(rng.integers(2))  # noqa: E731
        version = (1, 8)[seed % 2]
        images, count, classes = 2, 12, 4
        shared, encoded, normalized, cascade = flag(), flag(), flag(), flag()
        attributes = {
            "background_label_id": 0,
            "keep_top_k": [int(rng.choice([-1, 5, 20]))],
            "top_k": int(rng.choice([-1, 3, 100])),
            "variance_encoded_in_target": encoded,
            "code_type": CODE + ("CORNER" if flag() else "CENTER_SIZE"),
            "share_location": shared,
            "nms_threshold": float(rng.choice([0.2, 0.45, 0.9])),
            "confidence_threshold": float(rng.choice([0.0, 0.3])),
            "clip_after_nms": flag(),
            "clip_before_nms": flag(),
            "decrease_label_id": flag(),
            "normalized": normalized,
            "objectness_score": 0.4 if cascade else 0.0,
        }
        if not attributes["decrease_label_id"]:
            attributes["background_label_id"] = int(rng.choice([-1, 0, 2]))
        if not normalized and not cascade:
            attributes |= {"input_height": 20, "input_width": 30}
        if version == 1:
            attributes["num_classes"] = classes
        scale = [1, 1] if normalized or cascade else [30, 20]
        batches = int(rng.choice([1, images]))
        low = rng.uniform(-0.1, 0.7, (batches, count, 2))
        corners = np.concatenate([low, low + rng.uniform(0.1, 0.5, (batches, count, 2))], -1)
        boxes = corners * [*scale, *scale]
        if not normalized:
            numbers = np.zeros((batches, count, 1))
            numbers[:, count - 3 + seed % 4 :] = -1  # Proposal's end of the list
            boxes = np.concatenate([numbers, boxes], -1)
        rows = boxes.reshape(batches, 1, -1)
        if not encoded:
            variances = np.zeros_like(rows)
            variances[..., : 4 * count] = np.tile([0.1, 0.1, 0.2, 0.2], count)
            rows = np.concatenate([rows, variances], 1)
        reach = 0.1 if encoded else 0.8
        length = count * 4 * (1 if shared else classes)
        inputs = [
            f32(images, length, low=-reach, high=reach),
            f32(images, count * classes, low=0, high=1),
            f32(*rows.shape, values=rows),
        ]
        if cascade and batches == images:
            inputs += [
                f32(images, count * 2, low=0, high=1),
                f32(images, length, low=-reach, high=reach),
            ]
        yield Case(
            f"detection_output-{version}-{seed}",
            lambda *i, v=version, a=attributes: node("DetectionOutput", v, i, **a),
            tuple(inputs),
            tolerance=1e-5,
        )


def priors():
    plain = {"min_size": [16.0, 20.0], "aspect_ratio": [2.0, 3.0, 1.0], "offset": 0.5}
    forms = [
        {},
        {"flip": True, "step": 8.0},
        {"max_size": [30.0], "flip": True, "clip": True},
        {"max_size": [30.0, 50.0], "variance": [0.1, 0.1, 0.2, 0.2], "step": 8.0, "offset": 0.3},
        {"scale_all_sizes": False, "min_size": [0.1, 0.3], "step": -1.0, "variance": [0.3]},
        {"scale_all_sizes": False, "min_size": [0.1], "step": 0.1, "flip": True, "clip": True},
        {"min_size": [], "aspect_ratio": [], "fixed_size": [32.0, 17.5], "density": [2.0, 3.0]},
        {"min_size": [], "fixed_size": [32.0], "density": [2.0], "flip": True},
        {
            "min_size": [], "aspect_ratio": [], "fixed_size": [32.0, 9.0], "density": [4.0, 1.0],
            "fixed_ratio": [1.5], "step": 16.0,
        },
    ]  # fmt: skip
    for number, more in enumerate(forms):
        for version, order in ((1, None), (8, True), (8, False)):
            attributes = plain | more
            if order is False and any(size % 2 for size in more.get("fixed_size", ())):
                continue  # the CPU plugin leaves these to the reference, which truncates size / 2
            if order is not None:
                attributes["min_max_aspect_ratios_order"] = order
            yield Case(
                f"prior_box-{version}-{order}-{number}",
                lambda g, i, v=version, a=attributes: node("PriorBox", v, (g, i), **a),
                (i64(3, 4), p("i64", 2, values=[48, 70])),
                dynamic=False,
            )
    for number, more in enumerate([
        {}, {"clip": False, "step": 16.0}, {"step_w": 8.0, "step_h": 9.0, "offset": 0.0},
        {"step_w": 8.0, "step": 4.0}, {"variance": [0.1, 0.1, 0.2, 0.2]}, {"variance": [0.5]},
    ]):  # fmt: skip
        attributes = {"width": [8.0, 16.5, 40.0], "height": [9.0, 3.0, 90.0], "offset": 0.5} | more
        yield Case(
            f"prior_box_clustered-{number}",
            lambda g, i, a=attributes: node("PriorBoxClustered", 1, (g, i), **a),
            (i64(3, 4), p("i64", 2, values=[48, 70])),
            dynamic=False,
        )


def proposals():
    """Scores are distinct and regions large, so that the order of equal scores does not matter."""
    for seed in range(24):
        rng = np.random.default_rng(seed)
        flag = lambda rng=rng: bool(rng.integers(2))  # noqa: E731
        version = (1, 4)[seed % 2]
        tensorflow = flag()
        attributes = {
            "base_size": 16,
            "pre_nms_topn": int(rng.choice([30, 1000])),
            "post_nms_topn": int(rng.choice([5, 60])),
            "nms_thresh": float(rng.choice([0.3, 0.7])),
            "feat_stride": 8,
            "min_size": 0 if flag() else 6,
            "ratio": [0.5, 1.0, 2.5],
            "scale": [0.5, 2.0],
            "clip_before_nms": flag(),
            "clip_after_nms": flag(),
            "normalize": flag(),
            "box_size_scale": float(rng.choice([1.0, 5.0])),
            "box_coordinate_scale": float(rng.choice([1.0, 10.0])),
            "framework": "tensorflow" if tensorflow else "",
        }
        if attributes["min_size"] or version == 4:
            # Smaller regions have equal scores, 0, and must not be reached; the CPU plugin does not
            # write the scores after the last region.
            attributes |= {"pre_nms_topn": 30, "post_nms_topn": 5}
        shape = [70.0, 50.0, 1.0] if flag() else [70.0, 50.0, 0.5, 1.5]
        yield Case(
            f"proposal-{version}-{seed}",
            lambda s, d, i, v=version, a=attributes: node("Proposal", v, (s, d, i), **a),
            (
                f32(2, 12, 5, 6, low=0, high=1),
                f32(2, 24, 5, 6, low=-1, high=1),
                f32(len(shape), values=shape, fixed=True),
            ),
            tolerance=1e-5,
            dynamic=seed < 6,
            lenient="a batch that cannot have these anchors",
        )


def detectron():
    for seed, (count, threshold, least) in enumerate(
        [(5, 0.7, 0.0), (60, 0.3, 0.0), (200, 0.7, 0.0), (12, 0.5, 4.0)]
    ):
        rng = np.random.default_rng(seed)
        low = rng.uniform(-10, 60, (120, 2))
        anchors = np.concatenate([low, low + rng.uniform(5, 40, (120, 2))], -1)
        attributes = {
            "min_size": least, "nms_threshold": threshold, "pre_nms_count": 100 - seed,
            "post_nms_count": count,
        }  # fmt: skip
        yield Case(
            f"experimental_detectron_generate_proposals_single_image-{seed}",
            lambda i, a, d, s, k=attributes: node(
                "ExperimentalDetectronGenerateProposalsSingleImage", 6, (i, a, d, s), **k
            ),
            (
                f32(3, values=[60, 80, 1]),
                f32(120, 4, values=anchors),
                f32(24, 4, 5, low=-1, high=1),
                f32(6, 4, 5, low=0, high=1),
            ),
            tolerance=1e-5,
            lenient="anchors of another number",
        )
        for normalized, kind, scales in ((True, "i64", [1.0]), (False, "i32", [0.5, 2.0])):
            yield Case(
                f"generate_proposals-{normalized}-{seed}",
                lambda i, a, d, s, k=attributes, n=normalized, t=kind: node(
                    "GenerateProposals", 9, (i, a, d, s), **k,
                    normalized=n, roi_num_type=t,
                ),
                (
                    f32(2, 2 + len(scales), values=[[60, 80, *scales]] * 2, fixed=True),
                    f32(4, 5, 6, 4, values=anchors.reshape(4, 5, 6, 4)),
                    f32(2, 24, 4, 5, low=-1, high=1),
                    f32(2, 6, 4, 5, low=0, high=1),
                ),
                tolerance=1e-5,
            )  # fmt: skip
        rois = anchors[:30] + 12
        rois[seed, 2:] = rois[seed, :2]
        yield Case(
            f"experimental_detectron_detection_output-{seed}",
            lambda r, d, s, i, n=count, t=threshold: node(
                "ExperimentalDetectronDetectionOutput", 6, (r, d, s, i),
                score_threshold=0.4, nms_threshold=t, num_classes=4, post_nms_count=n,
                max_detections_per_image=(n, 90)[n == 60], max_delta_log_wh=1.0,
                deltas_weights=[10.0, 8.0, 2.0, 1.5],
                class_agnostic_box_regression=bool(n % 2),
            ),
            (
                f32(30, 4, values=rois), f32(30, 16), f32(30, 4, low=0, high=1),
                f32(1, 3, values=[60, 80, 1]),
            ),
            tolerance=1e-5,
        )  # fmt: skip
    for flatten, step, size in itertools.product(
        (True, False), (0.0, 7.5), ((0, 0), (4, 0), (0, 5))
    ):
        yield Case(
            f"experimental_detectron_prior_grid_generator-{flatten}-{step}-{size}",
            lambda b, f, i, k=flatten, s=step, z=size: node(
                "ExperimentalDetectronPriorGridGenerator", 6, (b, f, i),
                flatten=k, h=z[0], w=z[1], stride_x=s, stride_y=s * 2,
            ),
            (f32(3, 4), f32(1, 2, 4, 5), f32(1, 3, 64, 90)),
        )  # fmt: skip
    for aligned, ratio in itertools.product((False, True), (0, 2)):
        rng = np.random.default_rng(ratio)
        low = rng.uniform(-20, 200, (9, 2))
        size = rng.uniform(4, 500, (9, 2)) * np.linspace(0.01, 1, 9)[:, None]
        size[3] = 0  # an empty region
        yield Case(
            f"experimental_detectron_roi_feature_extractor-{aligned}-{ratio}",
            lambda *i, a=aligned, r=ratio: node(
                "ExperimentalDetectronROIFeatureExtractor", 6, i,
                output_size=3, sampling_ratio=r, pyramid_scales=[4, 8, 16, 32], aligned=a,
            ),
            (
                f32(9, 4, values=np.concatenate([low, low + size], -1)),
                *(f32(1, 3, extent, extent + 8) for extent in (64, 32, 16, 8)),
            ),
            tolerance=1e-4,
        )  # fmt: skip
    for most in (3, 8):
        yield Case(
            f"experimental_detectron_topk_rois-{most}",
            lambda r, s, n=most: node("ExperimentalDetectronTopKROIs", 6, (r, s), max_rois=n),
            (f32(8, 4), f32(8)),
        )


def regions(scale, end=False):
    """Regions of two images, some beyond the map; `end`: the last two are after Proposal's end."""
    rng = np.random.default_rng(3)
    low = rng.uniform(-0.1, 0.6, (7, 2))
    corners = np.concatenate([low, low + rng.uniform(0.05, 0.6, (7, 2))], -1) * scale
    corners[2, 2:] = corners[2, :2]
    numbers = np.array([0, 1, 1, 0, 0, -1 if end else 1, 0.0])
    return np.concatenate([numbers[:, None], corners], -1)


def pooled():
    for method, size, end in itertools.product(
        ("max", "bilinear"), ((2, 3), (1, 1), (4, 1)), (False, True)
    ):
        scale = np.array([1.0] * 4) if method == "bilinear" else np.array([64.0, 48.0] * 2)
        yield Case(
            f"roi_pooling-{method}-{size}-{end}",
            lambda x, r, m=method, z=size: node(
                "ROIPooling", 2, (x, r), pooled_h=z[0], pooled_w=z[1], output_roi=list(z),
                spatial_scale=0.125, method=m,
            ),
            (f32(2, 3, 6, 8), f32(7, 5, values=regions(scale, end))),
            tolerance=1e-5,
        )  # fmt: skip
    for mode, group, bins, end in itertools.product(
        ("average", "bilinear"), (1, 3), ((1, 1), (3, 2)), (False, True)
    ):
        normal = mode == "bilinear"
        channels = 2 * (bins[0] * bins[1] if normal else group**2)
        yield Case(
            f"psroi_pooling-{mode}-{group}-{bins}-{end}",
            lambda x, r, m=mode, g=group, b=bins: node(
                "PSROIPooling", 1, (x, r), output_dim=2, group_size=g, mode=m,
                spatial_scale=(0.125, 0.9)[m == "bilinear"], spatial_bins_x=b[0],
                spatial_bins_y=b[1],
            ),
            (
                f32(2, channels, 6, 8),
                f32(7, 5, values=regions([1.0] * 4 if normal else [64.0, 48.0] * 2, end)),
            ),
            tolerance=1e-5,
        )  # fmt: skip
    for group, bins, classes, part, end in [
        (1, (1, 1), 0, 1, False), (3, (2, 4), 0, 1, True), (3, (4, 1), 1, 3, False),
        (2, (2, 2), 2, 2, False), (4, (1, 2), 4, 2, True),
    ]:  # fmt: skip
        offsets = (f32(7, 2 * classes, part, part),) if classes else ()
        yield Case(
            f"deformable_psroi_pooling-{group}-{bins}-{classes}-{part}-{end}",
            lambda x, r, *t, g=group, b=bins, s=part: node(
                "DeformablePSROIPooling", 1, (x, r, *t), output_dim=4, group_size=g,
                spatial_scale=0.125, spatial_bins_x=b[0], spatial_bins_y=b[1], trans_std=0.2,
                part_size=s,
            ),
            (
                f32(2, 4 * group**2, 6, 8),
                f32(7, 5, values=regions([64.0, 48.0] * 2, end)),
                *offsets,
            ),
            tolerance=1e-5,
            lenient="channels of another number",
        )  # fmt: skip
