"""OpenVINO NonMaxSuppression-1, -3, -4, -5, -9 and NMSRotated-13: non-maximum suppression."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

from deconv_ir.ir.dtypes import F32, I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval, monotone
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ops.base import attribute, boolean, choice, operation, result_type
from deconv_ir.ops.checks import check_rank, check_shape, check_single, check_type, only, product
from deconv_ir.ops.numeric import np

INPUTS = (
    "boxes",
    "scores",
    "max_output_boxes_per_class",
    "iou_threshold",
    "score_threshold",
    "soft_nms_sigma",
)


class BoxEncoding(enum.Enum):
    """Two opposite corners y, x, y, x; or the center x, y, the width and the height."""

    CORNER = "corner"
    CENTER = "center"


class Thresholds(NamedTuple):
    """The thresholds for keeping a box."""

    iou: Any
    score: Any
    """Boxes are kept if the overlap is at most `iou` and the score at least `score`."""
    sigma: Any
    """Width of the Gaussian that lowers the score of a box by its overlap; 0: unused."""
    strict: bool
    """Whether scores equal to the threshold are dropped."""


class _AnyNonMaxSuppression(Operation):
    """Boxes of each class that do not overlap a box with a better score.

    Boxes are visited by decreasing score, then by index.  The specification keeps boxes that equal
    a threshold, the runtime drops them: `semantics` chooses.
    """

    scratch_ratios = (6, 6)

    sort_result_descending: bool = attribute(boolean(), True)

    output_type: ElementType = I64
    box_encoding: BoxEncoding = BoxEncoding.CORNER
    numbers: ClassVar[int] = 4
    """Number of values of a box."""

    def prepared(self, boxes: Array) -> Array:
        """Return the boxes in the form that `overlaps` requires."""
        return _corners(boxes, self.box_encoding)

    def overlaps(self, box: Array, others: Array) -> Array:
        """Return intersection over union of a box with others."""
        return _overlaps(box, others)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        boxes, scores = inputs[:2]
        for info, name in zip(inputs[:2], INPUTS, strict=False):
            check_type(info, name, "float")
            check_rank(info, name, 3)
        for info, name in zip(inputs[2:], INPUTS[2:], strict=False):
            check_single(info, name, "integer" if name == INPUTS[2] else "float")
        unknown = (UNKNOWN, UNKNOWN, self.numbers)
        found = check_shape(boxes, "boxes", unknown) or unknown
        batches, count = found[:2]
        stated = check_shape(scores, "scores", (batches, UNKNOWN, count))
        batches, classes, count = stated or (batches, UNKNOWN, count)
        most = inputs[2].value[0] if len(inputs) > 2 and inputs[2].value else UNKNOWN
        if len(inputs) < 3:
            most = 0
        each = monotone(lambda a, b: min(a, b), count, interval(*_from_zero(most)))
        total = bounds(product(batches, classes, each))[1]
        return (TensorInfo((interval(0, total), 3), self.output_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (self._select(inputs, context)[0].astype(self.output_type.numpy()),)

    def _select(self, inputs: Arrays, context: Context) -> tuple[Array, Array]:
        """Return batch, class and index of the selected boxes, and their scores."""
        boxes = self.prepared(np.asarray(inputs[0], np.float32))
        scores = np.asarray(inputs[1], np.float32)
        numbers = [only(array, name) for array, name in zip(inputs[2:], INPUTS[2:], strict=False)]
        most = int(numbers[0]) if numbers else 0
        iou, score, sigma = [*map(np.float32, numbers[1:]), *[np.float32(0)] * 3][:3]
        limits = Thresholds(iou, score, sigma, context.semantics is Semantics.OPENVINO)
        places: list[tuple[int, int, int]] = []
        kept: list[Any] = []
        for batch, row in enumerate(scores):
            for number, values in enumerate(row):
                for index, score in self._one_class(boxes[batch], values, most, limits):
                    places.append((batch, number, index))
                    kept.append(score)
        indices = np.array(places, np.int64).reshape(-1, 3)
        found = np.array(kept, np.float32)
        if self.sort_result_descending:
            order = np.argsort(-found, kind="stable")
            indices, found = indices[order], found[order]
        return indices, found

    def _one_class(
        self, boxes: Array, scores: Array, most: int, limits: Thresholds
    ) -> Iterator[tuple[int, Any]]:
        """Iterate over the kept boxes of a class: index and score."""
        enough: Callable[[Any, Any], Any] = operator.gt if limits.strict else operator.ge
        apart: Callable[[Any, Any], Any] = operator.lt if limits.strict else operator.le
        left = np.flatnonzero(enough(scores, limits.score))
        left = left[np.argsort(-scores[left], kind="stable")]
        scores = scores[left]
        for _ in range(most):
            if not len(left):
                return
            best = int(np.argmax(scores)) if limits.sigma > 0 else 0
            yield int(left[best]), scores[best]
            rest = np.delete(left, best)
            scores = np.delete(scores, best)
            overlaps = self.overlaps(boxes[left[best]], boxes[rest])
            keep = apart(overlaps, limits.iou)
            if limits.sigma > 0:
                scores = scores * np.exp(np.float32(-0.5) / limits.sigma * overlaps * overlaps)
                keep &= enough(scores, limits.score)
            left, scores = rest[keep], scores[keep]


@operation(
    "NonMaxSuppression-1(boxes, scores, max_output_boxes_per_class?, iou_threshold?, "
    "score_threshold?)",
    "f32[1,3,4], f32[1,2,3], i64[]{2}, f32[]{0.5}, f32[]{0} -> i64[0..4,3]",
)
class NonMaxSuppression(_AnyNonMaxSuppression):
    """Boxes of each class that do not overlap a box with a better score."""

    box_encoding: BoxEncoding = attribute(choice(BoxEncoding), BoxEncoding.CORNER)


@operation(
    "NonMaxSuppression-3,4(boxes, scores, max_output_boxes_per_class?, iou_threshold?, "
    "score_threshold?)",
    "f32[1,3,4], f32[1,2,3], i64[]{2}, f32[]{0.5}, f32[]{0} -> i32[0..4,3] | output_type=i32",
)
class NonMaxSuppression3(_AnyNonMaxSuppression):
    """Boxes of each class that do not overlap a box with a better score."""

    box_encoding: BoxEncoding = attribute(choice(BoxEncoding), BoxEncoding.CORNER)
    output_type: ElementType = attribute(result_type(), I64)


class _WithScores(_AnyNonMaxSuppression):
    """The boxes, their scores, and their number."""

    output_type: ElementType = attribute(result_type(), I64)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        (indices,) = super().infer(inputs, context)
        return (
            indices,
            TensorInfo(indices.shape, F32),
            TensorInfo((1,), self.output_type),
        )

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        indices, scores = self._select(inputs, context)
        rows = np.concatenate([indices[:, :2].astype(np.float32), scores[:, None]], 1)
        dtype = self.output_type.numpy()
        return (indices.astype(dtype), rows, np.array([len(indices)], dtype))


@operation(
    "NonMaxSuppression-5,9(boxes, scores, max_output_boxes_per_class?, iou_threshold?, "
    "score_threshold?, soft_nms_sigma?)",
    "f32[1,3,4], f32[1,2,3], i64[]{2}, f32[]{0.5}, f32[]{0}, f32[]{0.5}"
    " -> i64[0..4,3], f32[0..4,3], i64[1]",
)
class NonMaxSuppression5(_WithScores):
    """Boxes of each class that do not overlap a better box, their scores, and their number."""

    box_encoding: BoxEncoding = attribute(choice(BoxEncoding), BoxEncoding.CORNER)


@operation(
    "NMSRotated-13(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)",
    "f32[1,3,5], f32[1,2,3], i64[]{2}, f32[]{0.5}, f32[]{0} -> i64[0..4,3], f32[0..4,3], i64[1]",
)
class NMSRotated(_WithScores):
    """Rotated boxes (center, size, angle in radians) that do not overlap a better box."""

    clockwise: bool = attribute(boolean(), True)

    numbers = 5

    def prepared(self, boxes: Array) -> Array:
        """Return the corners of the boxes, in their order around them: [..., 4, 2]."""
        angle = boxes[..., 4] if self.clockwise else -boxes[..., 4]
        cos, sin = np.cos(angle)[..., None], np.sin(angle)[..., None]
        x = boxes[..., 2:3] / 2 * np.array([-1, 1, 1, -1], np.float32)
        y = boxes[..., 3:4] / 2 * np.array([-1, -1, 1, 1], np.float32)
        corners = np.stack([x * cos - y * sin, x * sin + y * cos], -1)
        return np.asarray(corners + boxes[..., None, :2], np.float32)

    def overlaps(self, box: Array, others: Array) -> Array:
        """Return intersection over union of a box with others."""
        found = np.zeros(len(others), np.float32)
        area = abs(_area(box.tolist()))
        for place, other in enumerate(others.tolist()):
            common = abs(_area(_clipped(box.tolist(), other)))
            union = area + abs(_area(other)) - common
            found[place] = common / union if union > 0 else 0
        return found


Point = list[float]


def _area(corners: list[Point]) -> float:
    """Return the signed area of a polygon, by the shoelace formula."""
    pairs = zip(corners, corners[1:] + corners[:1], strict=True)
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs) / 2


def _clipped(corners: list[Point], window: list[Point]) -> list[Point]:
    """Return a polygon clipped to a convex one (Sutherland and Hodgman 1974)."""
    sign = 1 if _area(window) >= 0 else -1
    for start, end in zip(window, window[1:] + window[:1], strict=True):
        sides = [
            sign * ((end[0] - start[0]) * (y - start[1]) - (end[1] - start[1]) * (x - start[0]))
            for x, y in corners
        ]
        kept: list[Point] = []
        for i, (point, side) in enumerate(zip(corners, sides, strict=True)):
            before, other = corners[i - 1], sides[i - 1]
            if (side >= 0) is not (other >= 0):
                part = other / (other - side)
                kept.append([a + (b - a) * part for a, b in zip(before, point, strict=True)])
            if side >= 0:
                kept.append(point)
        corners = kept
    return corners


def _from_zero(dim: Dim) -> tuple[int, int | None]:
    low, high = bounds(dim)
    return max(low, 0), None if high is None else max(high, 0)


def _corners(boxes: Array, encoding: BoxEncoding) -> Array:
    """Return the boxes as two corners, the first with the smaller coordinates."""
    if encoding is BoxEncoding.CENTER:
        half = boxes[..., 2:] / 2
        return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _overlaps(box: Array, others: Array) -> Array:
    """Return intersection over union of a box with others; 0 for boxes without area."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    area, areas = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = area + areas - common
    valid = (areas > 0) & (area > 0)
    return np.where(valid, common / np.where(valid, union, 1), 0)
