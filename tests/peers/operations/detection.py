"""SSD, R-CNN and Detectron: prior boxes, proposals, detections, pooled regions."""

from __future__ import annotations

import numpy as np

from .dsl import Case, f32, i64, node, p


def cases():
    yield from detections()
    yield from priors()


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
