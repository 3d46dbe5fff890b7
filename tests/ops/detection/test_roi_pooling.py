"""ROIPooling, PSROIPooling and DeformablePSROIPooling against loops over bins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from operation_forms import make

from deconv_ir.errors import DeconvError
from deconv_ir.operations import Context

HEIGHT, WIDTH = 6, 8
RNG = np.random.default_rng(0)


def rounded(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def bilinear(plane, y: float, x: float) -> float:
    top, left = math.floor(y), math.floor(x)
    return sum(
        (1 - abs(y - i)) * (1 - abs(x - j)) * plane[i, j]
        for i in {top, math.ceil(y)}
        for j in {left, math.ceil(x)}
    )


def regions(scale) -> np.ndarray:
    """Regions of two images, some beyond the map, one empty, the last after Proposal's end."""
    low = RNG.uniform(-0.1, 0.6, (6, 2))
    corners = np.concatenate([low, low + RNG.uniform(0.05, 0.7, (6, 2))], -1) * scale
    corners[2, 2:] = corners[2, :2]
    numbers = np.array([0, 1, 1, 0, -1, 1.0])
    return np.concatenate([numbers[:, None], corners], -1).astype(np.float32)


def roi_max(data, roi, rows: int, columns: int, scale: float):
    """Fast R-CNN (Girshick 2015), section 2.1, with Caffe's rounding."""
    x1, y1, x2, y2 = (rounded(float(v) * scale) for v in roi)
    sizes = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
    for i, j in itertools.product(range(rows), range(columns)):
        top, left = math.floor(i * sizes[0] / rows) + y1, math.floor(j * sizes[1] / columns) + x1
        bottom = math.ceil((i + 1) * sizes[0] / rows) + y1
        right = math.ceil((j + 1) * sizes[1] / columns) + x1
        window = data[
            :, max(top, 0) : max(min(bottom, HEIGHT), 0), max(left, 0) : max(min(right, WIDTH), 0)
        ]
        yield i, j, window.max(axis=(1, 2)) if window.size else 0.0


def roi_bilinear(data, roi, rows: int, columns: int):
    """ROIPooling-1, 'bilinear': corners are shares of extents less 1."""

    def places(low: float, high: float, extent: int, count: int) -> list[float]:
        if count == 1:
            return [(low + high) / 2 * (extent - 1)]
        return [(low + k * (high - low) / (count - 1)) * (extent - 1) for k in range(count)]

    ys = places(roi[1], roi[3], HEIGHT, rows)
    xs = places(roi[0], roi[2], WIDTH, columns)
    for (i, y), (j, x) in itertools.product(enumerate(ys), enumerate(xs)):
        inside = 0 <= y <= HEIGHT - 1 and 0 <= x <= WIDTH - 1
        yield i, j, [bilinear(plane, y, x) for plane in data] if inside else 0.0


@pytest.mark.parametrize("method", ["max", "bilinear"])
@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (1, 1), (7, 5)])
def test_roi_pooling(rows: int, columns: int, method: str) -> None:
    data = RNG.normal(0, 1, (2, 3, HEIGHT, WIDTH)).astype(np.float32)
    rois = regions([1.0] * 4 if method == "bilinear" else [64.0, 48.0] * 2)
    sizes = {"pooled_h": rows, "pooled_w": columns}
    listed = {"output_size": f"{rows}, {columns}"}  # one of OpenVINO's names
    found, same = (
        make("ROIPooling", spatial_scale=0.125, method=method, **names).execute(
            [data, rois], Context()
        )[0]
        for names in (sizes, listed)
    )
    np.testing.assert_array_equal(found, same)
    expected = np.zeros((6, 3, rows, columns))
    for n, roi in enumerate(rois[:4]):
        image = data[int(roi[0])].astype(np.float64)
        bins = (
            roi_max(image, roi[1:], rows, columns, 0.125)
            if method == "max"
            else roi_bilinear(image, roi[1:].astype(np.float64), rows, columns)
        )
        for i, j, value in bins:
            expected[n, :, i, j] = value
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def average_bins(image, roi, group: int, output: int, scale: float):
    """R-FCN (Dai et al. 2016), equation 1; regions are at least 0.1 wide and high."""
    x1, y1 = rounded(roi[0]) * scale, rounded(roi[1]) * scale
    x2, y2 = rounded(roi[2] + 1) * scale, rounded(roi[3] + 1) * scale
    height, width = max(y2 - y1, 0.1) / group, max(x2 - x1, 0.1) / group
    for c, i, j in itertools.product(range(output), range(group), range(group)):
        rows = range(max(math.floor(y1 + i * height), 0), min(math.ceil(y1 + (i + 1) * height), 6))
        columns = range(max(math.floor(x1 + j * width), 0), min(math.ceil(x1 + (j + 1) * width), 8))
        plane = image[(c * group + i) * group + j]
        values = [plane[y, x] for y in rows for x in columns]
        yield c, i, j, np.mean(values) if values else 0.0


def bilinear_bins(image, roi, group: int, output: int, parts):
    """PSROIPooling-1, 'bilinear': each part of a region has channels of its own."""
    down, across = parts
    for c, i, j in itertools.product(range(output), range(group), range(group)):
        total = 0.0
        for p, q in itertools.product(range(down), range(across)):
            plane = image[(p * across + q) * output + c]
            place = []
            for low, high, part, count, extent, k in (
                (roi[1], roi[3], p, down, HEIGHT, i), (roi[0], roi[2], q, across, WIDTH, j),
            ):  # fmt: skip
                size = (high - low) / count
                share = k / (group - 1) if group > 1 else 0.5
                place.append((low + (part + share) * size) * (extent - 1))
            if 0 <= place[0] <= HEIGHT - 1 and 0 <= place[1] <= WIDTH - 1:
                total += bilinear(plane, *place)
        yield c, i, j, total / (down * across)


@pytest.mark.parametrize("mode", ["average", "bilinear"])
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("parts", [(1, 1), (2, 3)])
def test_psroi_pooling(parts, group: int, mode: str) -> None:
    output, scale = 2, 0.125 if mode == "average" else 0.9
    channels = output * (group**2 if mode == "average" else parts[0] * parts[1])
    data = RNG.normal(0, 1, (2, channels, HEIGHT, WIDTH)).astype(np.float32)
    rois = regions([1.0] * 4 if mode == "bilinear" else [64.0, 48.0] * 2)
    operation = make(
        "PSROIPooling", output_dim=output, group_size=group, spatial_scale=scale, mode=mode,
        spatial_bins_y=parts[0], spatial_bins_x=parts[1],
    )  # fmt: skip
    (found,) = operation.execute([data, rois], Context())
    expected = np.zeros((6, output, group, group))
    for n, roi in enumerate(rois[:4].astype(np.float64)):
        image = data[int(roi[0])].astype(np.float64)
        bins = (
            average_bins(image, roi[1:], group, output, scale)
            if mode == "average"
            else bilinear_bins(image, roi[1:] * scale, group, output, parts)
        )
        for c, i, j, value in bins:
            expected[n, c, i, j] = value
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("group", "bins", "classes", "part"),
    [(1, (1, 1), 0, 1), (3, (4, 2), 0, 1), (3, (1, 4), 1, 3), (2, (2, 2), 2, 2), (4, (2, 1), 4, 2)],
)
def test_deformable_psroi_pooling(group: int, bins, classes: int, part: int) -> None:
    """Deformable Convolutional Networks (Dai et al. 2017), section 2.2, with bins of samples."""
    output, scale, factor = 4, 0.125, 0.2
    data = RNG.normal(0, 1, (2, output * group**2, HEIGHT, WIDTH)).astype(np.float32)
    rois = regions([64.0, 48.0] * 2)
    inputs = [data, rois]
    if classes:
        inputs.append(RNG.normal(0, 1, (6, 2 * classes, part, part)).astype(np.float32))
    operation = make(
        "DeformablePSROIPooling", output_dim=output, group_size=group, spatial_scale=scale,
        spatial_bins_y=bins[0], spatial_bins_x=bins[1], trans_std=factor, part_size=part,
    )  # fmt: skip
    (found,) = operation.execute(inputs, Context())
    expected = np.zeros((6, output, group, group))
    for n, c, i, j in itertools.product(range(4), range(output), range(group), range(group)):
        roi = rois[n].astype(np.float64)
        x1, y1 = rounded(roi[1]) * scale - 0.5, rounded(roi[2]) * scale - 0.5
        x2, y2 = (rounded(roi[3]) + 1) * scale - 0.5, (rounded(roi[4]) + 1) * scale - 0.5
        height, width = max(y2 - y1, 0.1), max(x2 - x1, 0.1)
        top, left = y1 + i * height / group, x1 + j * width / group
        if classes:
            moves = inputs[2][n, 2 * (c // (output // classes)) :, i * part // group,
                              j * part // group]  # fmt: skip
            left, top = left + moves[0] * factor * width, top + moves[1] * factor * height
        plane, values = data[int(roi[0]), (c * group + i) * group + j], []
        for p, q in itertools.product(range(bins[0]), range(bins[1])):
            y, x = top + p * height / group / bins[0], left + q * width / group / bins[1]
            if -0.5 <= y <= HEIGHT - 0.5 and -0.5 <= x <= WIDTH - 0.5:
                y, x = min(max(y, 0.0), HEIGHT - 1.0), min(max(x, 0.0), WIDTH - 1.0)
                values.append(bilinear(plane, y, x))
        expected[n, c, i, j] = np.mean(values) if values else 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_shapes_of_the_documents(infer) -> None:
    """The examples of PSROIPooling-1 and DeformablePSROIPooling-1, and dynamic inputs."""
    bins = {"spatial_bins_x": 3, "spatial_bins_y": 3}
    found = infer(
        "PSROIPooling", "f32[1,3240,38,38]", "f32[100,5]", group_size=6, mode="bilinear",
        output_dim=360, spatial_scale=1, **bins,
    )  # fmt: skip
    assert found == "[100,360,6,6]"
    found = infer(
        "DeformablePSROIPooling", "f32[1,392,38,63]", "f32[300,5]", "f32[300,2,7,7]",
        group_size=7, output_dim=8, part_size=7, spatial_scale=0.0625,
    )  # fmt: skip
    assert found == "[300,8,7,7]"
    pooled = {"pooled_h": 6, "pooled_w": 6, "spatial_scale": 0.0625}
    assert infer("ROIPooling", "f32[1,2..3,?,?]", "f32[...]", **pooled) == "[?,2..3,6,6]"


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "message"),
    [
        ("ROIPooling", ("f32[1,2,3,3]", "f32[4,4]"), {"pooled_h": 1, "pooled_w": 1}, "rois must"),
        ("ROIPooling", ("f32[1,2,3,3]", "f32[4,5]"), {"pooled_h": 1}, "pooled_w must be given"),
        ("PSROIPooling", ("f32[1,5,3,3]", "f32[4,5]"), {"output_dim": 2}, "axis 1 of data must"),
        (
            "DeformablePSROIPooling", ("f32[1,3,3,3]", "f32[4,5]", "f32[4,4,1,1]"),
            {"output_dim": 3}, "axis 1 of offsets must be twice a divisor",
        ),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit(infer, kind: str, inputs, attributes, message: str) -> None:
    with pytest.raises(DeconvError, match=message):
        infer(kind, *inputs, spatial_scale=1, **attributes)


def test_images_that_do_not_exist(run) -> None:
    data = np.ones((1, 1, 2, 2), np.float32)
    for number, message in ((1, "image numbers from 0 to 0"), (np.nan, "be finite")):
        with pytest.raises(DeconvError, match=message):
            run(
                "ROIPooling", data, np.array([[number, 0, 0, 1, 1]], np.float32),
                pooled_h=1, pooled_w=1, spatial_scale=1,
            )  # fmt: skip
