"""ROIAlign against a loop over samples (He et al. 2017, "Mask R-CNN", section 3)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.operations import Context
from deconv_ir.ops.detection.roi_align import Alignment, BinPooling, ROIAlign9, ROIAlignRotated


def sample(plane: np.ndarray, y: float, x: float) -> float:
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = (min(max(v, 0.0), n - 1.0) for v, n in ((y, height), (x, width)))
    total = 0.0
    for i, j in itertools.product(range(height), range(width)):
        total += max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j)) * float(plane[i, j])
    return total


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", BinPooling)
@pytest.mark.parametrize("aligned", Alignment)
def test_against_loops(aligned: Alignment, mode: BinPooling, ratio: int) -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2, 2, 5, 6)).astype(np.float32)
    rois = np.array([[0, 1, 9, 7], [-6, -8, 4, 20], [3, 3, 3.5, 3.25]], np.float32)
    images = np.array([1, 0, 1])
    operation = ROIAlign9(
        pooled_h=2,
        pooled_w=3,
        sampling_ratio=ratio,
        spatial_scale=0.5,
        mode=mode,
        aligned_mode=aligned,
    )
    (found,) = operation.execute([data, rois, images], Context())
    before = 0.5 if aligned is Alignment.HALF_PIXEL else 0
    after = 0 if aligned is Alignment.ASYMMETRIC else 0.5
    for number, (roi, image) in enumerate(zip(rois, images, strict=True)):
        x1, y1, x2, y2 = ((float(v) + before) * 0.5 - after for v in roi)
        least = 1.0 if aligned is Alignment.ASYMMETRIC else 0.0
        height, width = max(y2 - y1, least), max(x2 - x1, least)
        down = ratio or math.ceil(height / 2)
        across = ratio or math.ceil(width / 3)
        for c, i, j in itertools.product(range(2), range(2), range(3)):
            samples = [
                sample(
                    data[image, c],
                    y1 + (i + (p + 0.5) / down) * height / 2,
                    x1 + (j + (q + 0.5) / across) * width / 3,
                )
                for p, q in itertools.product(range(down), range(across))
            ]
            expected = max(samples) if mode is BinPooling.MAX else sum(samples) / len(samples)
            assert found[number, c, i, j] == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_regions_of_missing_images() -> None:
    operation = ROIAlign9(
        pooled_h=1, pooled_w=1, sampling_ratio=1, spatial_scale=1.0, mode=BinPooling.AVG
    )
    rois, data = np.zeros((1, 4), np.float32), np.zeros((1, 1, 2, 2), np.float32)
    with pytest.raises(ShapeError, match="batch_indices must be from 0 to 0, found 1"):
        operation.execute([data, rois, np.array([1])], Context())


@pytest.mark.parametrize("clockwise", [True, False])
@pytest.mark.parametrize("angle", [0.0, 0.7, -2.0])
def test_turned_regions(angle: float, clockwise: bool) -> None:
    """The samples of a region that is rotated about its centre."""
    data = np.random.default_rng(0).standard_normal((1, 1, 6, 7)).astype(np.float32)
    operation = ROIAlignRotated(
        pooled_h=2, pooled_w=3, sampling_ratio=2, spatial_scale=0.5, clockwise_mode=clockwise
    )
    roi = np.array([[7, 6, 8, 5, angle]], np.float32)
    (found,) = operation.execute([data, roi, np.array([0])], Context())
    turn = -angle if clockwise else angle
    for i, j in itertools.product(range(2), range(3)):
        samples = []
        for p, q in itertools.product(range(2), range(2)):
            down = ((i + (p + 0.5) / 2) / 2 - 0.5) * 2.5
            across = ((j + (q + 0.5) / 2) / 3 - 0.5) * 4
            y = down * math.cos(turn) - across * math.sin(turn) + 3 - 0.5
            x = down * math.sin(turn) + across * math.cos(turn) + 3.5 - 0.5
            samples.append(sample(data[0, 0], y, x))
        assert found[0, 0, i, j] == pytest.approx(sum(samples) / 4, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ([1, 1, 2, 2, math.inf], "rois must be finite"),
        ([1, math.nan, 2, 2, 0], "rois must be finite"),
        ([1, 1, 1e30, 2, 0], "at most 4096 samples a bin and axis"),
    ],
)
def test_regions_that_have_no_samples_or_too_many(region: list[float], message: str) -> None:
    operation = ROIAlignRotated(pooled_h=2, pooled_w=2, sampling_ratio=0, spatial_scale=1.0)
    rois = np.array([region], np.float32)
    with pytest.raises(ShapeError, match=message):
        operation.execute([np.ones((1, 1, 4, 4), np.float32), rois, np.array([0])], Context())
