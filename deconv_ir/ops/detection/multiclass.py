"""OpenVINO MatrixNms-8, MulticlassNms-8 and -9: the best boxes of all classes of an image."""

from __future__ import annotations

import abc
import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

from deconv_ir.ir.dtypes import I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import intersect_dims
from deconv_ir.ops.base import (
    attribute,
    boolean,
    choice,
    choice_of,
    integer,
    number,
    operation,
    result_type,
)
from deconv_ir.ops.checks import (
    check_integers,
    check_shape,
    merged_type,
    misfit,
    product,
)
from deconv_ir.ops.numeric import narrow, np


class SortResult(enum.Enum):
    """The order of the boxes."""

    CLASS = "classid"
    SCORE = "score"
    NONE = "none"


# The documents spell it `class`; OpenVINO reads and writes `classid`.
_ORDERS = {order.value: order for order in SortResult} | {"class": SortResult.CLASS}


class Decay(enum.Enum):
    """The decay of a box's score with its overlap."""

    GAUSSIAN = "gaussian"
    LINEAR = "linear"


class Found(NamedTuple):
    """A box that is kept: its image, class, score and index."""

    image: int
    number: int
    score: float
    place: int


class _Multiclass(Operation, abc.ABC):
    """The best boxes of each class of each image: class, score and corners; index; their number."""

    scratch_ratios = (10, 10.5)

    sort_result_type: SortResult = attribute(choice_of(_ORDERS), SortResult.NONE)
    sort_result_across_batch: bool = attribute(boolean(), False)
    output_type: ElementType = attribute(result_type(), I64)
    score_threshold: float = attribute(number(), 0.0)
    nms_top_k: int = attribute(integer(-1), -1)
    keep_top_k: int = attribute(integer(-1), -1)
    background_class: int = attribute(integer(-1), -1)
    normalized: bool = attribute(boolean(), True)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs[:2], self.inputs, "float")
        images, classes, count = self.dims(inputs)
        if self.background_class >= 0 and isinstance(classes, int):
            classes -= self.background_class < classes
        each = count if self.nms_top_k < 0 else interval(0, self.nms_top_k)
        high = _least(bounds(count)[1], bounds(each)[1])
        total = _least(
            bounds(product(classes, count if high is None else high))[1],
            None if self.keep_top_k < 0 else self.keep_top_k,
        )
        most = bounds(product(images, UNKNOWN if total is None else total))[1]
        rows = interval(0, None if total is None else most)
        return (
            TensorInfo((rows, 6), element_type),
            TensorInfo((rows, 1), self.output_type),
            TensorInfo((images,), self.output_type),
        )

    def dims(self, inputs: Infos) -> tuple[Dim, Dim, Dim]:
        """Return the numbers of images, of classes, and of boxes of an image."""
        boxes = check_shape(inputs[0], "boxes", (UNKNOWN, UNKNOWN, 4)) or (UNKNOWN, UNKNOWN, 4)
        wanted = (boxes[0], UNKNOWN, boxes[1])
        images, classes, count = check_shape(inputs[1], "scores", wanted) or wanted
        return images, classes, count

    @abc.abstractmethod
    def select(self, boxes: Array, scores: Array) -> Iterator[tuple[int, float]]:
        """Iterate over the index and score of each box that is kept, for one class."""

    def best(self, scores: Array) -> Array:
        """Return the indices of the candidate boxes, the best first."""
        left = np.flatnonzero(scores > np.float32(self.score_threshold))
        left = left[np.argsort(-scores[left], kind="stable")]
        found: Array = left if self.nms_top_k < 0 else left[: self.nms_top_k]
        return found

    def per_image(self, inputs: Arrays) -> Iterator[list[tuple[Array, Array]]]:
        """Iterate over the images: boxes and scores of each class."""
        boxes, scores = (np.asarray(a, np.float32) for a in inputs[:2])
        for image in range(len(scores)):
            yield [(boxes[image], row) for row in scores[image]]

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        kept: list[Found] = []
        rows: dict[tuple[int, int], Any] = {}
        counts = []
        for image, classes in enumerate(self.per_image(inputs)):
            found = [
                Found(image, number, score, index)
                for number, (boxes, scores) in enumerate(classes)
                if number != self.background_class
                for index, score in self.select(boxes, scores)
            ]
            rows |= {(image, number): boxes for number, (boxes, _) in enumerate(classes)}
            if self.keep_top_k >= 0:
                found = sorted(found, key=lambda f: -f.score)[: self.keep_top_k]
            counts.append(len(found))
            kept += self._ordered(found)
        if self.sort_result_across_batch:
            kept = self._ordered(kept)
        outputs = [(f.number, f.score, *rows[f.image, f.number][f.place]) for f in kept]
        indices = [self.row_of(f, inputs) for f in kept]
        dtype = self.output_type.numpy()
        return (
            narrow(np.array(outputs, np.float32).reshape(-1, 6), inputs[0].dtype),
            np.array(indices, dtype).reshape(-1, 1),
            np.array(counts, dtype),
        )

    def row_of(self, found: Found, inputs: Arrays) -> int:
        """Return the row of a box in the list of all boxes."""
        return found.image * int(inputs[0].shape[1]) + found.place

    def _ordered(self, found: list[Found]) -> list[Found]:
        if self.sort_result_type is SortResult.SCORE:
            return sorted(found, key=lambda f: (-f.score, f.image, f.number, f.place))
        if self.sort_result_type is SortResult.CLASS:
            return sorted(found, key=lambda f: (f.number, f.image, -f.score, f.place))
        return found

    def overlaps(self, box: Array, others: Array) -> Array:
        """Return intersection over union of a box with others."""
        more = np.float32(0 if self.normalized else 1)
        low = np.maximum(box[:2], others[:, :2])
        high = np.minimum(box[2:], others[:, 2:])
        common = np.prod(np.maximum(high - low + more, 0), axis=1)
        apart = (high < low).any(axis=1)
        areas = np.prod(others[:, 2:] - others[:, :2] + more, axis=1)
        union = np.prod(box[2:] - box[:2] + more) + areas - common
        found: Array = np.where(apart | (union <= 0), 0, common / np.where(union > 0, union, 1))
        return found


def _least(a: int | None, b: int | None) -> int | None:
    known = [n for n in (a, b) if n is not None]
    return min(known) if known else None


@operation(
    "MatrixNms-8(boxes, scores)",
    "f32[2,6,4], f32[2,3,6] -> f32[0..20,6], i64[0..20,1], i64[2] | keep_top_k=10",
)
class MatrixNms(_Multiclass):
    """Best boxes of each class, with scores reduced by their overlap with better boxes."""

    decay_function: Decay = attribute(choice(Decay), Decay.LINEAR)
    gaussian_sigma: float = attribute(number(), 2.0)
    post_threshold: float = attribute(number(), 0.0)

    def select(self, boxes: Array, scores: Array) -> Iterator[tuple[int, float]]:
        places = self.best(scores)
        chosen = boxes[places]
        overlaps = np.zeros((len(places), len(places)), np.float32)
        for i in range(1, len(places)):
            overlaps[i, :i] = self.overlaps(chosen[i], chosen[:i])
        most = overlaps.max(axis=1, initial=0)  # maximum overlap with a better box
        for i, place in enumerate(places):
            score = scores[place]
            if i:
                score = score * self._decay(overlaps[i, :i], most[:i]).min()
            if score > np.float32(self.post_threshold):
                yield int(place), float(score)

    def _decay(self, overlaps: Array, most: Array) -> Any:
        if self.decay_function is Decay.GAUSSIAN:
            return np.exp((most * most - overlaps * overlaps) * np.float32(self.gaussian_sigma))
        return (1 - overlaps) / (1 - most)


@operation(
    "MulticlassNms-8(boxes, scores)",
    "f32[2,6,4], f32[2,3,6] -> f32[0..36,6], i64[0..36,1], i64[2] | iou_threshold=0.5",
)
class MulticlassNms8(_Multiclass):
    """Best boxes of each class that overlap no better box."""

    iou_threshold: float = attribute(number(), 0.0)
    nms_eta: float = attribute(number(minimum=0), 1.0)

    def select(self, boxes: Array, scores: Array) -> Iterator[tuple[int, float]]:
        threshold = np.float32(self.iou_threshold)
        kept: list[int] = []
        for place in self.best(scores):
            if kept and (self.overlaps(boxes[place], boxes[kept]) > threshold).any():
                continue
            kept.append(int(place))
            yield int(place), float(scores[place])
            if self.nms_eta < 1 and threshold > 0.5:
                threshold = threshold * np.float32(self.nms_eta)


@operation(
    "MulticlassNms-9(boxes, scores, roisnum?)",
    "f32[2,6,4], f32[2,3,6] -> f32[0..36,6], i64[0..36,1], i64[2] | iou_threshold=0.5",
    "f32[3,6,4], f32[3,6], i64[2]{2,4} -> f32[0..36,6], i64[0..36,1], i64[2] | iou_threshold=0.5",
)
class MulticlassNms9(MulticlassNms8):
    """Best boxes of each class that overlap no better box; `roisnum`: boxes per image."""

    def dims(self, inputs: Infos) -> tuple[Dim, Dim, Dim]:
        if len(inputs) < 3:
            return super().dims(inputs)
        boxes = check_shape(inputs[0], "boxes", (UNKNOWN, UNKNOWN, 4)) or (UNKNOWN, UNKNOWN, 4)
        classes, count = check_shape(inputs[1], "scores", boxes[:2]) or boxes[:2]
        check_integers(inputs[2], "roisnum", 1)
        (images,) = inputs[2].shape or (UNKNOWN,)
        agreed = intersect_dims(classes, boxes[0]), intersect_dims(count, boxes[1])
        return images, agreed[0] or classes, agreed[1] or count

    def per_image(self, inputs: Arrays) -> Iterator[list[tuple[Array, Array]]]:
        if len(inputs) < 3:
            yield from super().per_image(inputs)
            return
        boxes, scores = (np.asarray(a, np.float32) for a in inputs[:2])
        counts = [int(n) for n in inputs[2]]
        if min(counts, default=0) < 0 or sum(counts) > boxes.shape[1]:
            must = f"add up to {boxes.shape[1]} at most"
            raise misfit("index", "roisnum", must, tuple(counts), f"<= {boxes.shape[1]}")
        start = 0
        for count in counts:
            part = slice(start, start + count)
            yield [(b[part], s[part]) for b, s in zip(boxes, scores, strict=True)]
            start += count

    def row_of(self, found: Found, inputs: Arrays) -> int:
        if len(inputs) < 3:
            return super().row_of(found, inputs)
        before = int(np.sum(inputs[2][: found.image]))
        return (before + found.place) * len(inputs[0]) + found.number
