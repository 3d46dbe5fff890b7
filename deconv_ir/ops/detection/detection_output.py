"""OpenVINO DetectionOutput-1 and -8: the last layer of SSD detectors."""

from __future__ import annotations

import enum
from typing import Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, intersect_dims
from deconv_ir.ops.base import attribute, boolean, choice_of, integer, integers, number, operation
from deconv_ir.ops.checks import check_count, check_rank, check_type, merged_type, misfit, product
from deconv_ir.ops.detection.boxes import as_real, best, suppress
from deconv_ir.ops.numeric import narrow, np, widen

_INPUTS = ("box_logits", "class_preds", "proposals", "aux_class_preds", "aux_box_preds")


class CodeType(enum.Enum):
    """The meaning of the logits: offsets of two corners, or of the center and the size."""

    CORNER = "caffe.PriorBoxParameter.CORNER"
    CENTER_SIZE = "caffe.PriorBoxParameter.CENTER_SIZE"


class _DetectionOutput(Operation):
    """Boxes of each class that do not overlap a better one: image, class, score, corners.

    Inputs: logits [N, P * L * 4] for P prior boxes and L classes (1 with share_location), scores
    [N, P * classes], priors [1 or N, 2, P * 4] whose second row are variances (one row with
    variance_encoded_in_target; P * 5 elements, an image number first, unless normalized), and
    for cascaded detectors scores [N, P * 2] and logits of the stage before.

    Output: [1, 1, rows, 7].  The row after the last one begins with -1, and the rest is 0.  Priors
    after one whose image number is -1, as Proposal writes it, are not used.
    """

    scratch_ratios = (8, 8)

    formula = (
        "N * keep_top_k, or N * top_k * classes, or N * priors * classes, of box_logits "
        "{shape[box_logits]}, class_preds {shape[class_preds]}, proposals {shape[proposals]}, "
        "keep_top_k {self.keep_top_k}, top_k {self.top_k}"
    )

    background_label_id: int = attribute(integer(), 0)
    top_k: int = attribute(integer(), -1)
    variance_encoded_in_target: bool = attribute(boolean(), False)
    keep_top_k: tuple[int, ...] = attribute(integers())
    code_type: CodeType = attribute(
        choice_of({str(code.value): code for code in CodeType}), CodeType.CORNER
    )
    share_location: bool = attribute(boolean(), True)
    nms_threshold: float = attribute(number())
    confidence_threshold: float = attribute(number(), 0.0)
    clip_after_nms: bool = attribute(boolean(), False)
    clip_before_nms: bool = attribute(boolean(), False)
    decrease_label_id: bool = attribute(boolean(), False)
    normalized: bool = attribute(boolean(), False)
    input_height: int = attribute(integer(1), 1)
    input_width: int = attribute(integer(1), 1)
    objectness_score: float = attribute(number(minimum=0), 0.0)

    @property
    def declared_classes(self) -> int | None:
        """The number of classes; None: given by the shapes."""
        return None

    @property
    def prior_size(self) -> int:
        """Number of values of a prior box."""
        return 4 if self.normalized else 5

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        scored = [info for place, info in enumerate(inputs) if place != 2]
        names = [name for place, name in enumerate(_INPUTS) if place != 2]
        merged_type(scored, names, "float")
        check_type(inputs[2], _INPUTS[2], "float")
        for info, name in zip(inputs, _INPUTS, strict=False):
            check_rank(info, name, 3 if name == "proposals" else 2)
        if len(inputs) == 4:
            raise misfit("input-count", "inputs", "be 3 or 5", 4, "3 or 5")
        if not self.keep_top_k:
            check_count(0, "keep_top_k", 1, "attribute-value")
        images = self._images(inputs)
        priors, classes = self._priors(inputs)
        if self.keep_top_k[0] > 0:
            rows = product(images, self.keep_top_k[0])
        elif self.keep_top_k[0] == -1 and self.top_k > 0:
            rows = product(images, self.top_k, classes)
        else:
            rows = product(images, priors, classes)
        return (TensorInfo((1, 1, rows, 7), inputs[0].element_type),)

    def _images(self, inputs: Infos) -> Dim:
        """Return the size of the batch, on which all inputs agree."""
        images: Dim = UNKNOWN
        for place, info in enumerate(inputs):
            if info.shape is None or place == 2:
                continue
            images = _agreed(images, info.shape[0], f"axis 0 of {_INPUTS[place]}")
        shape = inputs[2].shape
        if shape is not None:
            if intersect_dims(shape[0], images) is None and intersect_dims(shape[0], 1) is None:
                must = f"be 1 or {images}"
                raise misfit("input-shape", "axis 0 of proposals", must, shape[0], must)
            _agreed(1 if self.variance_encoded_in_target else 2, shape[1], "axis 1 of proposals")
        return images

    def _priors(self, inputs: Infos) -> tuple[Dim, Dim]:
        """Return the numbers of prior boxes and of classes."""
        logits, scores, priors, *more = (_axis(info.shape, -1) for info in inputs)
        count = _divided(priors, self.prior_size, "axis 2 of proposals")
        if count == 0:
            raise misfit("input-shape", "axis 2 of proposals", "be positive", 0, "> 0")
        if more:
            count = _agreed(count, _divided(more[0], 2, "axis 1 of aux_class_preds"), "priors")
            logits = _agreed(logits, more[1], "axis 1 of aux_box_preds")
        if self.share_location:
            count = _agreed(count, _divided(logits, 4, "axis 1 of box_logits"), "priors")
        classes: Dim = UNKNOWN if self.declared_classes is None else self.declared_classes
        if self.declared_classes is not None:
            found = _divided(scores, self.declared_classes, "axis 1 of class_preds")
            count = _agreed(count, found, "priors")
        if isinstance(count, int):
            classes = _agreed(classes, _divided(scores, count, "axis 1 of class_preds"), "classes")
            if not self.share_location:
                found = _divided(logits, 4 * count, "axis 1 of box_logits")
                classes = _agreed(classes, found, "classes")
        if isinstance(classes, int) and classes and not self.share_location:
            found = _divided(logits, 4 * classes, "axis 1 of box_logits")
            count = _agreed(count, found, "priors")
        return count, classes

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        (output,) = self.infer([TensorInfo(a.shape) for a in inputs], context)
        assert output.shape is not None
        assert isinstance(output.shape[2], int)
        arrays = [widen(array) for array in inputs]
        real = arrays[0].dtype
        arrays[2] = arrays[2].astype(real, copy=False)
        rows = np.zeros((1, 1, output.shape[2], 7), real)
        with np.errstate(all="ignore"):
            found = [self._image(image, arrays) for image in range(len(arrays[0]))]
        detections = np.concatenate(found) if found else rows[0, 0, :0]
        rows[0, 0, : len(detections)] = detections
        if len(detections) < rows.shape[2]:
            rows[0, 0, len(detections), 0] = -1
        return (narrow(rows, inputs[0].dtype),)

    def _image(self, image: int, arrays: list[Array]) -> Array:
        """Return the rows of one image."""
        priors, variances = self._image_priors(image, arrays[2])
        count = arrays[2].shape[2] // self.prior_size
        scores = arrays[1][image].reshape(count, -1)
        if len(arrays) == 5:
            objects = arrays[3][image].reshape(count, 2)[:, 1]
            background = np.zeros(scores.shape[1], scores.dtype)
            if 0 <= self.background_label_id < len(background):
                background[self.background_label_id] = 1
            low = objects < as_real(self.objectness_score, objects)
            scores = np.where(low[:, None], background, scores)
        scores = np.ascontiguousarray(scores[: len(priors)].T)
        stages = [
            array[image].reshape(count, -1, 4)[: len(priors)] for array in (*arrays[4:], arrays[0])
        ]
        boxes = _ImageBoxes(self, priors, variances, stages)
        suppressed = self._best_class if self.decrease_label_id else self._each_class
        kept = suppressed(scores, boxes)
        return self._rows(image, scores, boxes, self._best_of_all(scores, kept))

    def _image_priors(self, image: int, proposals: Array) -> tuple[Array, Array | None]:
        """Return the corners of the priors of an image, and their variances."""
        rows = proposals[image if len(proposals) > 1 else 0]
        count = rows.shape[1] // self.prior_size
        priors = rows[0].reshape(count, self.prior_size)
        variances = None
        if not self.variance_encoded_in_target:
            variances = rows[1][: 4 * count].reshape(count, 4)
        if not self.normalized:
            ends = np.flatnonzero(priors[:, 0] == -1)
            count = int(ends[0]) if len(ends) else count
            priors = priors[:, 1:]
        return priors[:count], None if variances is None else variances[:count]

    def _each_class(self, scores: Array, boxes: _ImageBoxes) -> dict[int, Array]:
        """Suppress the boxes of each class, as Caffe does."""
        kept = {}
        for label, values in enumerate(scores):
            if label == self.background_label_id:
                continue
            (places,) = np.nonzero(values > as_real(self.confidence_threshold, values))
            if len(places):
                places = places[best(values[places], _limit(self.top_k))]
                kept[label] = self._suppressed(label, places, boxes)
        return kept

    def _best_class(self, scores: Array, boxes: _ImageBoxes) -> dict[int, Array]:
        """Give each box its best class, and suppress the boxes of each, as MXNet does."""
        if len(scores) < 2:
            return {}
        usable = np.where(np.isnan(scores), -np.inf, scores)
        if self.background_label_id > 0:
            usable[self.background_label_id : self.background_label_id + 1] = -np.inf
        labels = np.argmax(usable[1:], axis=0) + 1
        values = np.take_along_axis(usable, labels[None], axis=0)[0]
        enough = values >= as_real(self.confidence_threshold, values)
        (places,) = np.nonzero(enough & (values > -1))
        places = places[best(values[places], _limit(self.top_k))]
        found = labels[places]
        return {
            int(label): self._suppressed(int(label), places[found == label], boxes)
            for label in np.unique(found)
        }

    def _suppressed(self, label: int, places: Array, boxes: _ImageBoxes) -> Array:
        return places[suppress(boxes.at(label, places), self.nms_threshold)]

    def _best_of_all(self, scores: Array, kept: dict[int, Array]) -> dict[int, Array]:
        """Keep the keep_top_k best boxes of all classes."""
        most = _limit(self.keep_top_k[0])
        if most is None or sum(map(len, kept.values())) <= most:
            return kept
        labels = np.concatenate([np.full(len(places), label) for label, places in kept.items()])
        places = np.concatenate(list(kept.values()))
        # Of equal scores the first box is the best.
        chosen = np.lexsort((places, -scores[labels, places]))[:most]
        labels, places = labels[chosen], places[chosen]
        return {int(label): places[labels == label] for label in np.unique(labels)}

    def _rows(self, image: int, scores: Array, boxes: _ImageBoxes, kept: dict[int, Array]) -> Array:
        """Return the rows of the boxes that are kept, by class."""
        rows = np.empty((sum(map(len, kept.values())), 7), scores.dtype)
        start = 0
        for label, places in kept.items():
            part = rows[start : start + len(places)]
            part[:, 0], part[:, 1] = image, label - self.decrease_label_id
            part[:, 2] = scores[label, places]
            part[:, 3:] = boxes.at(label, places)
            start += len(places)
        if self.clip_after_nms:
            np.clip(rows[:, 3:], 0, 1, out=rows[:, 3:])
        return rows


class _ImageBoxes:
    """The boxes of an image."""

    def __init__(
        self,
        operation: _DetectionOutput,
        priors: Array,
        variances: Array | None,
        stages: list[Array],
    ) -> None:
        self._operation = operation
        self._priors = priors
        self._variances = variances
        # The logits of each stage, the first stage first: [priors, classes or 1, 4].
        self._stages = stages
        self._shared = self._decoded(slice(None), 0) if operation.share_location else None

    def at(self, label: int, places: Array) -> Array:
        """Return some boxes of a class."""
        if self._shared is None:
            return self._decoded(places, label)
        return np.asarray(self._shared[places])

    def _decoded(self, places: Any, label: int) -> Array:
        boxes: Array = self._priors[places]
        variances = None if self._variances is None else self._variances[places]
        for logits in self._stages:
            boxes = self._decode(boxes, variances, logits[places, label])
        return boxes

    def _decode(self, boxes: Array, variances: Array | None, logits: Array) -> Array:
        operation = self._operation
        if not operation.normalized:
            boxes = boxes / np.array([operation.input_width, operation.input_height] * 2, "f4")
            boxes = boxes.astype(logits.dtype, copy=False)
        moved = logits if variances is None else variances * logits
        if operation.code_type is CodeType.CORNER:
            found = boxes + moved
        else:
            low, high = boxes[:, :2], boxes[:, 2:]
            size, half = high - low, logits.dtype.type(2)
            center = moved[:, :2] * size + (low + high) / half
            size = np.exp(moved[:, 2:]) * size
            found = np.concatenate([center - size / half, center + size / half], axis=1)
        return np.asarray(np.clip(found, 0, 1) if operation.clip_before_nms else found)


def _limit(most: int) -> int | None:
    return None if most < 0 else most


def _axis(shape: Shape, axis: int) -> Dim:
    return UNKNOWN if shape is None else shape[axis]


def _agreed(one: Dim, other: Dim, name: str) -> Dim:
    """Return the dim that two inputs share."""
    found = intersect_dims(one, other)
    if found is None:
        raise misfit("input-shape", name, f"be {one}", other, one)
    return found


def _divided(dim: Dim, divisor: int, name: str) -> Dim:
    """Return a dim that has `divisor` elements for each of something."""
    if isinstance(dim, int):
        if not divisor or dim % divisor:
            must = f"be a multiple of {divisor}"
            raise misfit("input-shape", name, must, dim, f"a multiple of {divisor}")
        return dim // divisor
    low, high = bounds(dim)
    return interval(-(-low // divisor), None if high is None else high // divisor)


_INPUT_LIST = "box_logits, class_preds, proposals, aux_class_preds?, aux_box_preds?"


@operation(
    f"DetectionOutput-1({_INPUT_LIST})",
    "f32[1,8], f32[1,6], f32[1,2,8] -> f32[1,1,4,7]"
    " | num_classes=3 keep_top_k=4 nms_threshold=0.5 normalized=true"
    " code_type=caffe.PriorBoxParameter.CENTER_SIZE",
    "f32[1,24], f32[1,6], f32[1,1,10], f32[1,4], f32[1,24] -> f32[1,1,6,7]"
    " | num_classes=3 keep_top_k=-1 nms_threshold=0.5 share_location=false top_k=2"
    " variance_encoded_in_target=true",
)
class DetectionOutput1(_DetectionOutput):
    """Boxes of each class that do not overlap a better one: image, class, score, corners."""

    num_classes: int = attribute(integer(1))

    @property
    def declared_classes(self) -> int | None:
        return self.num_classes


@operation(
    f"DetectionOutput-8({_INPUT_LIST})",
    "f32[2,8], f32[2,6], f32[1,2,8] -> f32[1,1,8,7]"
    " | keep_top_k=4 nms_threshold=0.5 normalized=true decrease_label_id=true",
)
class DetectionOutput8(_DetectionOutput):
    """Boxes of each class that do not overlap a better one; shapes give the number of classes."""
