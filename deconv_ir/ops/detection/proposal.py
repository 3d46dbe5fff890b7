"""OpenVINO Proposal-1 and -4: regions that may hold an object, as Faster R-CNN proposes them."""

from __future__ import annotations

import enum
from typing import Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import (
    Kind,
    attribute,
    boolean,
    choice_of,
    integer,
    number,
    numbers,
    operation,
)
from deconv_ir.ops.checks import check_rank, check_shape, check_type, misfit, product
from deconv_ir.ops.detection.boxes import as_real, best, clip, refine, suppress
from deconv_ir.ops.numeric import narrow, np, widen

_INPUTS = ("class_probs", "bbox_deltas", "image_shape")

_EXAMPLE = (
    "base_size=16 pre_nms_topn=20 post_nms_topn=5 nms_thresh=0.7 feat_stride=16 min_size=1"
    " ratio=0.5,1 scale=2"
)


class Framework(enum.Enum):
    """The framework whose arithmetic of boxes is used."""

    CAFFE = ""
    TENSORFLOW = "tensorflow"


_FRAMEWORK = Kind(
    choice_of({framework.value: framework for framework in Framework}).parse,
    "tensorflow or nothing",
    lambda framework: str(framework.value),
)


class _Proposal(Operation):
    """The best regions of each image that do not overlap: image, corners; and their scores.

    Inputs: `class_probs` [N, 2 * K, H, W] for K anchors (ratio times scale), of which the second
    half are scores of objects, `bbox_deltas` [N, 4 * K, H, W], and `image_shape`: height, width
    and one or two scales, by which min_size is multiplied.  Regions that are smaller have a score
    of 0, and are in the order of the anchors: OpenVINO sorts equal scores in no defined order, so
    other ones of them may be suppressed there.  The row after the last region of an image begins
    with -1, and the rest is 0.
    """

    scratch_ratios = (4, 5)

    formula = "batch of class_probs {shape[class_probs]} * post_nms_topn {self.post_nms_topn}"

    base_size: int = attribute(integer(1))
    pre_nms_topn: int = attribute(integer(1))
    post_nms_topn: int = attribute(integer(1))
    nms_thresh: float = attribute(number())
    feat_stride: int = attribute(integer(1))
    min_size: int = attribute(integer(0))
    ratio: tuple[float, ...] = attribute(numbers())
    scale: tuple[float, ...] = attribute(numbers())
    clip_before_nms: bool = attribute(boolean(), True)
    clip_after_nms: bool = attribute(boolean(), False)
    normalize: bool = attribute(boolean(), False)
    box_size_scale: float = attribute(number(), 1.0)
    box_coordinate_scale: float = attribute(number(), 1.0)
    framework: Framework = attribute(_FRAMEWORK, Framework.CAFFE)

    scored = False
    """Whether the scores are an output."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        for info, name in zip(inputs, _INPUTS, strict=True):
            check_type(info, name, "float")
        if any(ratio <= 0 for ratio in self.ratio):
            raise misfit("attribute-value", "ratio", "be positive", self.ratio, "> 0", "ratio")
        anchors = len(self.ratio) * len(self.scale)
        wanted: tuple[Dim, ...] = (UNKNOWN, 2 * anchors, UNKNOWN, UNKNOWN)
        found = check_shape(inputs[0], _INPUTS[0], wanted) or wanted
        wanted = (found[0], 4 * anchors, *found[2:])
        images = (check_shape(inputs[1], _INPUTS[1], wanted) or wanted)[0]
        check_rank(inputs[2], _INPUTS[2], 1)
        length = inputs[2].shape[0] if inputs[2].shape else UNKNOWN
        if isinstance(length, int) and length not in (3, 4):
            raise misfit("input-shape", _INPUTS[2], "have 3 or 4 elements", length, "3 or 4")
        rows = product(images, self.post_nms_topn)
        element_type = inputs[0].element_type
        outputs = [TensorInfo((rows, 5), element_type), TensorInfo((rows,), element_type)]
        return tuple(outputs[: 1 + self.scored])

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        probabilities = widen(inputs[0])
        real = probabilities.dtype
        deltas, shape = (widen(a).astype(real, copy=False) for a in inputs[1:])
        if len(shape) not in (3, 4):
            raise misfit("input-shape", _INPUTS[2], "have 3 or 4 elements", len(shape), "3 or 4")
        images, _, height, width = probabilities.shape
        anchors = len(self.ratio) * len(self.scale)
        rows = np.zeros((images, self.post_nms_topn, 5), real)
        scores = np.zeros((images, self.post_nms_topn), real)
        with np.errstate(all="ignore"):
            for image in range(images):
                # [K * 4, H, W] -> a row for each anchor of each cell
                moves = deltas[image].reshape(anchors, 4, height, width).transpose(2, 3, 0, 1)
                values = probabilities[image, anchors:].transpose(1, 2, 0).reshape(-1)
                boxes, kept_scores = self._image(moves, values, shape)
                count = len(boxes)
                rows[image, :count, 0], rows[image, :count, 1:] = image, boxes
                scores[image, :count] = kept_scores
                if count < self.post_nms_topn:
                    rows[image, count, 0] = -1
        outputs = (rows.reshape(-1, 5), scores.reshape(-1))
        return tuple(narrow(a, inputs[0].dtype) for a in outputs[: 1 + self.scored])

    def _image(self, moves: Array, scores: Array, shape: Array) -> tuple[Array, Array]:
        """Return the regions of an image, and their scores."""
        tensorflow = self.framework is Framework.TENSORFLOW
        offset = 0.0 if tensorflow else 1.0
        # TensorFlow's coordinates are y, x.
        height, width = shape[1::-1] if tensorflow else shape[:2]
        boxes = self._anchors(moves.shape[0], moves.shape[1], scores.dtype)
        if tensorflow:
            boxes = clip(boxes, width, height)
        scales = [self.box_coordinate_scale] * 2 + [self.box_size_scale] * 2
        moves = moves / np.array(scales, scores.dtype)
        boxes = refine(boxes, moves, offset).reshape(-1, 4)
        if self.clip_before_nms:
            boxes = clip(boxes, width - as_real(offset, boxes), height - as_real(offset, boxes))
        least = as_real(self.min_size, boxes) * np.array([shape[-1], shape[2]])
        sizes = boxes[:, 2:] - boxes[:, :2] + as_real(offset, boxes)
        scores = (sizes >= least).all(axis=1) * scores
        order = best(scores, self.pre_nms_topn)
        boxes, scores = boxes[order], scores[order]
        kept = suppress(boxes, self.nms_thresh, self.post_nms_topn, offset)
        boxes, scores = boxes[kept], scores[kept]
        if self.clip_after_nms:
            boxes = clip(boxes, width, height)
        if self.normalize:
            boxes = boxes / np.array([width, height, width, height])
        return boxes, scores

    def _anchors(self, rows: int, columns: int, dtype: Any) -> Array:
        """Return the corners of the anchors of each cell: [H, W, K, 4]."""
        real = np.float32
        tensorflow = self.framework is Framework.TENSORFLOW
        offset, base = real(0 if tensorflow else 1), real(self.base_size)
        center = real(0.5) * (base - offset)
        corners = []
        for ratio in map(real, self.ratio):
            wide = np.sqrt(base * base / ratio)
            wide = wide if tensorflow else np.floor(wide + real(0.5))
            high = wide * ratio if tensorflow else np.floor(wide * ratio + real(0.5))
            for scale in map(real, self.scale):
                half = [real(0.5) * (size * scale - offset) for size in (wide, high)]
                box = [center - half[0], center - half[1], center + half[0], center + half[1]]
                corners.append([v - base * real(0.5) if tensorflow else v for v in box])
        down, right = (
            np.arange(count, dtype=np.float32) * real(self.feat_stride) for count in (rows, columns)
        )
        if tensorflow:
            moved = np.broadcast_arrays(down[:, None], right)
        else:
            moved = np.broadcast_arrays(right, down[:, None])
        starts = np.stack([*moved, *moved], -1)[:, :, None]
        return np.asarray(starts + np.array(corners, np.float32), dtype)


@operation(
    "Proposal-1(class_probs, bbox_deltas, image_shape)",
    f"f32[1,4,2,3], f32[1,8,2,3], f32[3]{{64,64,1}} -> f32[5,5] | {_EXAMPLE}",
)
class Proposal1(_Proposal):
    """The best regions of each image that do not overlap a better one: image number, corners."""


@operation(
    "Proposal-4(class_probs, bbox_deltas, image_shape)",
    "f32[2,4,2,3], f32[2,8,2,3], f32[4]{64,96,1,1} -> f32[10,5], f32[10]"
    f" | {_EXAMPLE} framework=tensorflow normalize=true",
)
class Proposal4(_Proposal):
    """The best regions of each image that do not overlap a better one, and their scores."""

    scored = True
