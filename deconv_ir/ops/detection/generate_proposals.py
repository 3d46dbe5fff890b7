"""OpenVINO GenerateProposals-9 and ExperimentalDetectronGenerateProposalsSingleImage-6."""

from __future__ import annotations

import math
from typing import Any

from deconv_ir.ir.dtypes import I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, intersect_dims
from deconv_ir.ops.base import attribute, boolean, integer, number, operation, result_type
from deconv_ir.ops.checks import check_shape, merged_type, misfit, product
from deconv_ir.ops.detection.boxes import (
    as_real,
    best,
    clip,
    refine,
    suppress,
    suppress_adaptively,
)
from deconv_ir.ops.numeric import narrow, np, widen

_INPUTS = ("im_info", "anchors", "deltas", "scores")
_MOST_GROWTH = math.log(1000 / 16)
"""Largest logarithm of a factor of a size, as in Detectron."""


class _Generated(Operation):
    """Anchors that are moved by deltas: the best ones that do not overlap."""

    min_size: float = attribute(number(minimum=0))
    nms_threshold: float = attribute(number(minimum=0))
    pre_nms_count: int = attribute(integer(0))
    post_nms_count: int = attribute(integer(0))

    def moved(self, anchors: Array, deltas: Array, size: Any, offset: float) -> Array:
        """Return the anchors [H, W, A, 4] moved by deltas [A * 4, H, W], within an image."""
        moves = deltas.reshape(-1, 4, *deltas.shape[1:]).transpose(2, 3, 0, 1)
        boxes = refine(anchors, moves, offset, _MOST_GROWTH).reshape(-1, 4)
        one = as_real(offset, boxes)
        boxes[:, 2:] -= one
        return clip(boxes, size[1] - one, size[0] - one)


def _large(boxes: Array, least: Any, offset: float) -> Array:
    """Return whether boxes have at least some width and height."""
    sizes = boxes[:, 2:] - boxes[:, :2] + as_real(offset, boxes)
    return np.asarray((sizes >= least).all(axis=1))


@operation(
    "ExperimentalDetectronGenerateProposalsSingleImage-6(im_info, anchors, deltas, scores)",
    "f32[3]{64,64,1}, f32[12,4], f32[8,2,3], f32[2,2,3] -> f32[5,4], f32[5]"
    " | min_size=0 nms_threshold=0.7 pre_nms_count=10 post_nms_count=5",
)
class ExperimentalDetectronGenerateProposalsSingleImage(_Generated):
    """The best regions of an image that do not overlap a better one, and their scores; then 0.

    Inputs: `im_info` [3], height and width first; `anchors` [H * W * A, 4]; `deltas`
    [A * 4, H, W]; `scores` [A, H, W].  Regions smaller than min_size have a score of 0.
    """

    formula = "post_nms_count {self.post_nms_count}"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, _INPUTS, "float")
        check_shape(inputs[0], "im_info", (3,))
        anchors = check_shape(inputs[1], "anchors", (UNKNOWN, 4)) or (UNKNOWN,)
        deltas = check_shape(inputs[2], "deltas", (UNKNOWN,) * 3) or (UNKNOWN,) * 3
        scores = check_shape(inputs[3], "scores", (UNKNOWN, *deltas[1:])) or (UNKNOWN,) * 3
        _agree(deltas[0], product(scores[0], 4), "axis 0 of deltas")
        _agree(anchors[0], product(*scores), "axis 0 of anchors")
        count = self.post_nms_count
        return (TensorInfo((count, 4), element_type), TensorInfo((count,), element_type))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        info, anchors, deltas, scores = map(widen, inputs)
        _, height, width = scores.shape
        rows = np.zeros((self.post_nms_count, 4), scores.dtype)
        found = np.zeros(self.post_nms_count, scores.dtype)
        with np.errstate(all="ignore"):
            grid = anchors.reshape(height, width, -1, 4)
            boxes = self.moved(grid, deltas, info, 1.0)
            values = scores.transpose(1, 2, 0).reshape(-1)
            values = _large(boxes, as_real(self.min_size, boxes), 1.0) * values
            order = best(values, self.pre_nms_count)
            # Detectron's sizes count the last pixel, those of the suppression do not.
            kept = order[suppress(boxes[order], self.nms_threshold, self.post_nms_count)]
        rows[: len(kept)], found[: len(kept)] = boxes[kept], values[kept]
        return narrow(rows, inputs[0].dtype), narrow(found, inputs[0].dtype)


@operation(
    "GenerateProposals-9(im_info, anchors, deltas, scores)",
    "f32[2,3]{64,64,1,64,64,1}, f32[2,3,2,4], f32[2,8,2,3], f32[2,2,2,3]"
    " -> f32[0..10,4], f32[0..10], i64[2]"
    " | min_size=0 nms_threshold=0.7 pre_nms_count=10 post_nms_count=5 nms_eta=0.9",
)
class GenerateProposals(_Generated):
    """The best regions of all images that do not overlap a better one, their scores and numbers.

    Inputs: `im_info` [N, 3 or 4], height, width and one or two scales, by which min_size is
    multiplied; `anchors` [H, W, A, 4]; `deltas` [N, A * 4, H, W]; `scores` [N, A, H, W].
    With nms_eta below 1, which the runtime refuses, each kept region lowers a threshold above 1/2.
    """

    formula = "0 to batch of scores {shape[scores]} * post_nms_count {self.post_nms_count}"

    normalized: bool = attribute(boolean(), True)
    nms_eta: float = attribute(number(minimum=0), 1.0)
    roi_num_type: ElementType = attribute(result_type(), I64)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, _INPUTS, "float")
        if self.nms_eta > 1:
            must = "be from 0 to 1"
            raise misfit("attribute-value", "nms_eta", must, self.nms_eta, must, "nms_eta")
        info = check_shape(inputs[0], "im_info", (UNKNOWN, UNKNOWN)) or (UNKNOWN, UNKNOWN)
        if isinstance(info[1], int) and info[1] not in (3, 4):
            raise misfit("input-shape", "axis 1 of im_info", "be 3 or 4", info[1], "3 or 4")
        grid: Shape = (*(UNKNOWN,) * 3, 4)
        anchors = check_shape(inputs[1], "anchors", grid) or (UNKNOWN,) * 3
        wanted = (info[0], anchors[2], *anchors[:2])
        scores = check_shape(inputs[3], "scores", wanted) or wanted
        wanted = (scores[0], product(scores[1], 4), *scores[2:])
        images = (check_shape(inputs[2], "deltas", wanted) or wanted)[0]
        count: Dim = interval(0, bounds(product(images, self.post_nms_count))[1])
        return (
            TensorInfo((count, 4), element_type),
            TensorInfo((count,), element_type),
            TensorInfo((images,), self.roi_num_type),
        )

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        info, anchors, deltas, scores = map(widen, inputs)
        found = [(anchors[0, :0].reshape(-1, 4), scores[:0].reshape(-1))]
        with np.errstate(all="ignore"):
            found += [
                self._image(info[image], anchors, deltas[image], scores[image])
                for image in range(len(scores))
            ]
        rows, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        numbers = np.array([len(boxes) for boxes, _ in found[1:]], self.roi_num_type.numpy())
        dtype = inputs[0].dtype
        return narrow(rows, dtype), narrow(values, dtype), numbers

    def _image(
        self, info: Array, anchors: Array, deltas: Array, scores: Array
    ) -> tuple[Array, Array]:
        """Return the regions of an image, and their scores."""
        offset = 0.0 if self.normalized else 1.0
        boxes = self.moved(anchors, deltas, info, offset)
        values = scores.transpose(1, 2, 0).reshape(-1)
        order = best(values, self.pre_nms_count)
        scales = info[[-1, 2]]  # of width and height
        order = order[_large(boxes[order], as_real(self.min_size, boxes) * scales, offset)]
        if self.nms_eta < 1:
            kept = suppress_adaptively(
                boxes[order], self.nms_threshold, self.nms_eta, self.post_nms_count, offset
            )
        else:
            kept = suppress(boxes[order], self.nms_threshold, self.post_nms_count, offset)
        return boxes[order[kept]], values[order[kept]]


def _agree(found: Dim, wanted: Dim, name: str) -> None:
    if intersect_dims(found, wanted) is None:
        raise misfit("input-shape", name, f"be {wanted}", found, wanted)
