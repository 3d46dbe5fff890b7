"""What old layers compute, written as loops over the formulas of their documents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray


def windows(x: Array, kernel: Sequence[int], strides: Sequence[int], sizes: Sequence[int]) -> Any:
    """Iterate over the positions of an output and the slices of their windows."""
    for at in itertools.product(*map(range, sizes)):
        yield (
            at,
            tuple(slice(p * s, p * s + k) for p, s, k in zip(at, strides, kernel, strict=True)),
        )


def convolution(
    x: Array,
    w: Array,
    strides: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    dilations: Sequence[int] | None = None,
    group: int = 1,
) -> Array:
    """Catalogue, Convolution: the sum of the window times the filter, in float64."""
    spatial = w.ndim - 2
    dilations = dilations or (1,) * spatial
    extents = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    wide = np.zeros((*w.shape[:2], *extents))
    wide[(..., *(slice(None, None, d) for d in dilations))] = w
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(begin, end, strict=True)])
    sizes = [(n - k) // s + 1 for n, k, s in zip(padded.shape[2:], extents, strides, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    outputs, inputs = w.shape[0] // group, x.shape[1] // group
    for at, window in windows(padded, extents, strides, sizes):
        for g in range(group):
            part = padded[(slice(None), slice(g * inputs, (g + 1) * inputs), *window)]
            own = wide[g * outputs : (g + 1) * outputs]
            out[(slice(None), slice(g * outputs, (g + 1) * outputs), *at)] = np.tensordot(
                part, own, (tuple(range(1, part.ndim)), tuple(range(1, own.ndim)))
            )
    return out


def deconvolution(
    x: Array,
    w: Array,
    strides: Sequence[int],
    begin: Sequence[int],
    sizes: Sequence[int],
    dilations: Sequence[int] | None = None,
    group: int = 1,
) -> Array:
    """Catalogue, Deconvolution: each element spreads its filter; w is [inputs, outputs, ...]."""
    spatial = w.ndim - 2
    dilations = dilations or (1,) * spatial
    outputs, inputs = w.shape[1], x.shape[1] // group
    out = np.zeros((x.shape[0], outputs * group, *sizes))
    for at in itertools.product(*map(range, x.shape[2:])):
        for k in itertools.product(*map(range, w.shape[2:])):
            y = [
                p * s - b + i * d
                for p, s, b, i, d in zip(at, strides, begin, k, dilations, strict=True)
            ]
            if any(not 0 <= q < n for q, n in zip(y, sizes, strict=True)):
                continue
            for g in range(group):
                part = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *at)]
                taps = w[(slice(g * inputs, (g + 1) * inputs), slice(None), *k)]
                out[(slice(None), slice(g * outputs, (g + 1) * outputs), *y)] += part @ taps
    return out


def pooling(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    begin: Sequence[int],
    sizes: Sequence[int],
    function: Callable[[Array], Array],
    *,
    exclude: bool = True,
    end: Sequence[int] = (),
) -> Array:
    """Catalogue, Pooling: a window ends at the padded input at the latest."""
    out = np.zeros((*x.shape[:2], *sizes))
    for at in itertools.product(*map(range, sizes)):
        spans = []
        area = 1
        for p, s, b, k, n, e in zip(
            at, strides, begin, kernel, x.shape[2:], end or (0,) * len(kernel), strict=True
        ):
            first = p * s - b
            area *= min(first + k, n + e) - first
            spans.append(slice(max(0, first), min(n, first + k)))
        part = x[(slice(None), slice(None), *spans)].reshape(*x.shape[:2], -1)
        if function is np.mean:
            out[(slice(None), slice(None), *at)] = part.sum(-1) / (
                part.shape[-1] if exclude else area
            )
        else:
            out[(slice(None), slice(None), *at)] = function(part, axis=-1)  # type: ignore[call-arg]
    return out


def norm(x: Array, alpha: float, beta: float, size: int, *, across: bool) -> Array:
    """Catalogue, Norm: (1 + alpha / n * sum of squares) ^ -beta times x."""
    out = np.zeros(x.shape)
    before, after = (size - 1) // 2, size // 2
    for n, c, h, w in np.ndindex(*x.shape):
        if across:
            part = x[n, max(0, c - before) : c + after + 1, h, w]
            count = size
        else:
            part = x[n, c, max(0, h - before) : h + after + 1, max(0, w - before) : w + after + 1]
            count = size * size
        total = (part.astype(np.float64) ** 2).sum()
        out[n, c, h, w] = x[n, c, h, w] / (1 + alpha / count * total) ** beta
    return out


def bilinear(x: Array, sizes: Sequence[int], *, corners: bool) -> Array:
    """Caffe's Interp: corners are aligned, or positions are multiplied by the ratio of extents."""
    out = np.zeros((*x.shape[:2], *sizes))

    def place(p: int, old: int, new: int) -> tuple[int, int, float]:
        ratio = ((old - 1) / (new - 1) if new > 1 else 0.0) if corners else old / new
        q = p * ratio
        low = min(int(q), old - 1)
        return low, min(low + 1, old - 1), q - low

    for h, w in np.ndindex(*sizes):
        a, b, f = place(h, x.shape[2], sizes[0])
        c, d, g = place(w, x.shape[3], sizes[1])
        top = x[:, :, a, c] * (1 - g) + x[:, :, a, d] * g
        bottom = x[:, :, b, c] * (1 - g) + x[:, :, b, d] * g
        out[:, :, h, w] = top * (1 - f) + bottom * f
    return out


def nearest(x: Array, sizes: Sequence[int]) -> Array:
    """Inference Engine 2018 R5, ext_resample.cpp: the center of an element, rounded."""
    rows = [
        [min(n - 1, max(0, math.floor((p + 0.5) * n / s - 0.5 + 0.5))) for p in range(s)]
        for n, s in zip(x.shape[2:], sizes, strict=True)
    ]
    return x[:, :, rows[0]][:, :, :, rows[1]]


def tent(x: float) -> float:
    """The kernel of linear interpolation."""
    return max(0.0, 1 - abs(x))


def cubic(x: float) -> float:
    """The cubic kernel with a = -0.5 (Caffe of FlowNet 2, resample_layer.cu, bicubicCoeff)."""
    x = abs(x)
    if x <= 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


def resample(
    x: Array, sizes: Sequence[int], kernel: Callable[[float], float], *, antialias: bool = False
) -> Array:
    """Inference Engine 2018 R5, ext_resample.cpp: normalized weights around the center."""
    out = x.astype(np.float64)
    for axis, new in enumerate(sizes, 2):
        old = x.shape[axis]
        scale = min(1.0, new / old) if antialias else 1.0
        matrix = np.zeros((new, old))
        for p in range(new):
            center = (p + 0.5) * old / new - 0.5
            for q in range(old):
                matrix[p, q] = kernel((q - center) * scale)
            matrix[p] /= matrix[p].sum()
        out = np.moveaxis(np.tensordot(matrix, out, (1, axis)), 0, axis)
    return out


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def lstm(x: Array, h: Array, c: Array, w: Array, b: Array) -> tuple[Array, Array]:
    """Catalogue, LSTMCell: gates f, i, c, o of w @ [x, h] + b."""
    gates = np.concatenate([x, h], 1) @ w.T + b
    f, i, g, o = np.split(gates, 4, 1)
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def gru(x: Array, h: Array, w: Array, b: Array, *, linear_before_reset: bool) -> Array:
    """ONNX, GRU, which the catalogue names: gates u, r, o."""
    size = x.shape[1]
    weights, recurrent = w[:, :size], w[:, size:]
    wu, wr, wo = np.split(weights, 3)
    ru, rr, ro = np.split(recurrent, 3)
    n = h.shape[1]
    u = sigmoid(x @ wu.T + h @ ru.T + b[:n])
    r = sigmoid(x @ wr.T + h @ rr.T + b[n : 2 * n])
    if linear_before_reset:
        o = np.tanh(x @ wo.T + b[2 * n : 3 * n] + r * (h @ ro.T + b[3 * n :]))
    else:
        o = np.tanh(x @ wo.T + (r * h) @ ro.T + b[2 * n :])
    return u * h + (1 - u) * o


def prior_box(
    size: Sequence[int],
    image: Sequence[int],
    smallest: float,
    largest: float,
    ratio: float,
    step: float,
    variance: Sequence[float],
) -> Array:
    """SSD's prior boxes: the smallest size, the geometric mean with the largest, the flipped ratio.

    Source: Caffe's SSD branch, prior_box_layer.cpp, which the catalogue describes.
    """
    rows: list[float] = []
    for h, w in np.ndindex(*size):
        x, y = (w + 0.5) * step, (h + 0.5) * step
        mean = math.sqrt(smallest * largest)
        for wide, high in (
            (smallest, smallest),
            (mean, mean),
            (smallest * math.sqrt(ratio), smallest / math.sqrt(ratio)),
            (smallest / math.sqrt(ratio), smallest * math.sqrt(ratio)),
        ):
            rows += [
                (x - wide / 2) / image[1],
                (y - high / 2) / image[0],
                (x + wide / 2) / image[1],
                (y + high / 2) / image[0],
            ]
    variances = list(variance) * (len(rows) // 4)
    return np.array([[rows, variances]])


def dense(
    size: Sequence[int],
    image: Sequence[int],
    fixed: Sequence[float],
    densities: Sequence[int],
    ratios: Sequence[float],
    step: tuple[float, float],
    variance: Sequence[float],
) -> Array:
    """Inference Engine 2020.3, priorbox.cpp: boxes of fixed sizes, as many as the densities say.

    `step` has width and height, as Caffe's step_w and step_h.
    """
    rows: list[float] = []
    for h, w in np.ndindex(*size):
        x, y = (w + 0.5) * step[0], (h + 0.5) * step[1]
        for extent, density in zip(fixed, densities, strict=True):
            shift = int(extent / density)
            for ratio in ratios:
                wide = extent / 2 * math.sqrt(ratio) / image[1]
                high = extent / 2 / math.sqrt(ratio) / image[0]
                for r, c in np.ndindex(density, density):
                    cx = (x - int(extent) // 2 + shift / 2 + c * shift) / image[1]
                    cy = (y - int(extent) // 2 + shift / 2 + r * shift) / image[0]
                    rows += [max(0, cx - wide), max(0, cy - high)]
                    rows += [min(1, cx + wide), min(1, cy + high)]
    return np.array([[rows, list(variance) * (len(rows) // 4)]])


def clustered(
    size: Sequence[int],
    image: Sequence[int],
    boxes: Sequence[tuple[float, float]],
    step: tuple[float, float],
    variance: Sequence[float],
) -> Array:
    """Catalogue, PriorBoxClustered; `boxes` and `step` have widths and heights."""
    rows: list[float] = []
    for h, w in np.ndindex(*size):
        x, y = (w + 0.5) * step[0], (h + 0.5) * step[1]
        for wide, high in boxes:
            rows += [
                (x - wide / 2) / image[1],
                (y - high / 2) / image[0],
                (x + wide / 2) / image[1],
                (y + high / 2) / image[0],
            ]
    return np.array([[rows, list(variance) * (len(rows) // 4)]])


def suppressed(
    found: list[tuple[float, list[float]]], limit: float, counts: tuple[int, int]
) -> list[list[float]]:
    """Return boxes of positive score that share little with better ones; pixels are counted."""
    found = sorted(found, reverse=True)[: counts[0]]

    def area(left: float, top: float, right: float, bottom: float) -> float:
        return max(0, right - left + 1) * max(0, bottom - top + 1)

    kept: list[list[float]] = []
    for score, box in found:
        shared = [
            area(
                *(max(a, b) for a, b in zip(box[:2], k[:2], strict=True)),
                *(min(a, b) for a, b in zip(box[2:], k[2:], strict=True)),
            )
            for k in kept
        ]
        overlaps = (
            s > limit * (area(*box) + area(*k) - s) for s, k in zip(shared, kept, strict=True)
        )
        if score > 0 and len(kept) < counts[1] and not any(overlaps):
            kept.append(box)
    return kept


def mxnet_proposal(
    scores: Array,
    deltas: Array,
    image: Sequence[float],
    ratios: Sequence[float],
    scales: Sequence[float],
    stride: int,
    least: int,
    limit: float,
    counts: tuple[int, int],
) -> Array:
    """MXNet, proposal.cc: the anchors around a cell of the stride, BBoxTransformInv, and NMS."""
    high, wide, factor = image
    count = len(ratios) * len(scales)
    found = []
    for y, x in np.ndindex(scores.shape[2:]):
        for a, (ratio, scale) in enumerate(itertools.product(ratios, scales)):
            w = math.floor(math.sqrt(math.floor(stride**2 / ratio)) + 0.5)
            h = math.floor(w * ratio + 0.5) * scale
            w *= scale
            dx, dy, dw, dh = (float(v) for v in deltas[0, 4 * a : 4 * a + 4, y, x])
            # The center of pixels 0 to stride - 1, moved by cells.
            cx = (stride - 1) / 2 + x * stride + dx * w
            cy = (stride - 1) / 2 + y * stride + dy * h
            half = (math.exp(dw) * w - 1) / 2, (math.exp(dh) * h - 1) / 2
            box = [
                min(max(v, 0), most - 1)
                for v, most in zip(
                    (cx - half[0], cy - half[1], cx + half[0], cy + half[1]),
                    (wide, high) * 2,
                    strict=True,
                )
            ]
            if all(box[i + 2] - box[i] + 1 >= least * factor for i in (0, 1)):
                found.append((float(scores[0, count + a, y, x]), box))
    kept = suppressed(found, limit, counts)
    out = np.zeros((counts[1], 5))
    out[: len(kept), 1:] = kept
    return out


def simpler_nms(
    scores: Array,
    deltas: Array,
    image: Sequence[float],
    scales: Sequence[float],
    stride: int,
    least: int,
    limit: float,
    counts: tuple[int, int],
) -> Array:
    """Return the boxes of Inference Engine 2018, ext_simplernms.cpp; `counts`: before, after NMS.

    Boxes include the pixels of their corners.  Anchors are around 7.5, the center of 16 pixels.
    """
    high, wide, factor = map(int, image)
    found = []
    for y, x in np.ndindex(scores.shape[2:]):
        for a, (ratio, scale) in enumerate((r, s) for r in (0.5, 1, 2) for s in scales):
            w = math.floor(math.sqrt(256 / ratio) + 0.5)
            h = math.floor(w * ratio + 0.5) * scale
            w *= scale
            dx, dy, dw, dh = (float(v) for v in deltas[0, 4 * a : 4 * a + 4, y, x])
            # The corner of the anchor is at half of its size less one; its center is at half.
            cx = 7.5 - (w - 1) / 2 + w / 2 + dx * w + x * stride
            cy = 7.5 - (h - 1) / 2 + h / 2 + dy * h + y * stride
            half = math.exp(dw) * w / 2, math.exp(dh) * h / 2
            box = [
                min(max(v, 0), most - 1)
                for v, most in zip(
                    (cx - half[0], cy - half[1], cx + half[0], cy + half[1]),
                    (wide, high) * 2,
                    strict=True,
                )
            ]
            if all(int(box[i + 2] - box[i] + 1) >= least * factor for i in (0, 1)):
                found.append((float(scores[0, 9 + a, y, x]), box))
    kept = suppressed(found, limit, counts)
    out = np.zeros((counts[1], 5))
    out[: len(kept), 1:] = kept
    return out


def detections(
    locations: Array,
    confidences: Array,
    priors: Array,
    classes: int,
    *,
    top_k: int,
    keep_top_k: int,
    confidence_threshold: float,
    nms_threshold: float,
) -> Array:
    """Caffe SSD, detection_output_layer.cpp: decoded boxes, NMS of each class, the best of all."""
    loc, boxes, spread = (a.reshape(-1, 4).astype(np.float64) for a in (locations, *priors[0]))
    size = boxes[:, 2:] - boxes[:, :2]
    center = (boxes[:, :2] + boxes[:, 2:]) / 2 + spread[:, :2] * loc[:, :2] * size
    size = np.exp(spread[:, 2:] * loc[:, 2:]) * size
    boxes = np.hstack([center - size / 2, center + size / 2])

    def overlap(a: Array, b: Array) -> float:
        shared = np.maximum(0, np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])).prod()
        return float(shared / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - shared))

    scores = confidences.reshape(-1, classes)
    found: list[tuple[float, int, int]] = []
    for label in range(1, classes):
        order = sorted(
            np.flatnonzero(scores[:, label] > confidence_threshold), key=lambda i: -scores[i, label]
        )
        kept: list[int] = []
        for i in order[:top_k]:
            if all(overlap(boxes[i], boxes[j]) <= nms_threshold for j in kept):
                kept.append(i)
        found += [(float(scores[i, label]), label, i) for i in kept]
    found = sorted(found, reverse=True)[:keep_top_k]
    out = np.zeros((1, 1, keep_top_k, 7))
    for row, (score, label, i) in enumerate(sorted(found, key=lambda f: (f[1], -f[0]))):
        out[0, 0, row] = [0, label, score, *boxes[i]]
    if len(found) < keep_top_k:
        out[0, 0, len(found), 0] = -1
    return out


def region_yolo(x: Array, classes: int, regions: int) -> Array:
    """Darknet's region layer of YOLO v3: x, y, confidence and classes are logistic."""
    out = x.astype(np.float64).copy()
    per = 5 + classes
    for r in range(regions):
        for i in range(per):
            if i not in (2, 3):
                out[:, r * per + i] = sigmoid(out[:, r * per + i])
    return out


def region_softmax(x: Array, classes: int, regions: int) -> Array:
    """Darknet's region layer of YOLO v2: x, y and confidence are logistic, classes softmax."""
    out = x.astype(np.float64).copy()
    per = 5 + classes
    for r in range(regions):
        for i in (0, 1, 4):
            out[:, r * per + i] = sigmoid(out[:, r * per + i])
        part = np.exp(out[:, r * per + 5 : (r + 1) * per])
        out[:, r * per + 5 : (r + 1) * per] = part / part.sum(1, keepdims=True)
    return out


def reorg_yolo(x: Array, stride: int) -> Array:
    """Darknet's reorg_cpu, forward."""
    batch, channels, height, width = x.shape
    flat = x.reshape(batch, -1)
    out = np.zeros_like(flat)
    narrow = channels // stride**2
    for b, k, j, i in np.ndindex(batch, channels, height, width):
        target = i + width * (j + height * k)
        offset = k // narrow
        w2 = i * stride + offset % stride
        h2 = j * stride + offset // stride
        source = w2 + width * stride * (h2 + height * stride * (k % narrow))
        out[b, target] = flat[b, source]
    return out.reshape(batch, channels * stride**2, height // stride, width // stride)


def roi_max(x: Array, rois: Array, pooled: Sequence[int], scale: float) -> Array:
    """Fast R-CNN, roi_pooling_layer.cpp: the largest element of each bin."""
    out = np.zeros((len(rois), x.shape[1], *pooled))
    for r, roi in enumerate(rois):
        x1, y1, x2, y2 = (math.floor(v * scale + 0.5) for v in roi[1:])
        high, wide = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for p, q in np.ndindex(*pooled):
            top = min(max(math.floor(p * high / pooled[0]) + y1, 0), x.shape[2])
            end = min(max(math.ceil((p + 1) * high / pooled[0]) + y1, 0), x.shape[2])
            left = min(max(math.floor(q * wide / pooled[1]) + x1, 0), x.shape[3])
            right = min(max(math.ceil((q + 1) * wide / pooled[1]) + x1, 0), x.shape[3])
            part = x[int(roi[0]), :, top:end, left:right]
            out[r, :, p, q] = part.max((1, 2)) if part.size else 0
    return out


def psroi_average(x: Array, rois: Array, output: int, group: int, scale: float) -> Array:
    """R-FCN, psroi_pooling_layer.cu: the mean of each bin of the channel of its position."""
    out = np.zeros((len(rois), output, group, group))
    for r, roi in enumerate(rois):
        x1, y1 = (math.floor(v + 0.5) * scale for v in roi[1:3])
        x2, y2 = ((math.floor(v + 0.5) + 1) * scale for v in roi[3:])
        high, wide = max(y2 - y1, 0.1) / group, max(x2 - x1, 0.1) / group
        for c, p, q in np.ndindex(output, group, group):
            top, end = (
                min(max(v, 0), x.shape[2])
                for v in (math.floor(p * high + y1), math.ceil((p + 1) * high + y1))
            )
            left, right = (
                min(max(v, 0), x.shape[3])
                for v in (math.floor(q * wide + x1), math.ceil((q + 1) * wide + x1))
            )
            part = x[int(roi[0]), (c * group + p) * group + q, top:end, left:right]
            out[r, c, p, q] = part.mean() if part.size else 0
    return out
