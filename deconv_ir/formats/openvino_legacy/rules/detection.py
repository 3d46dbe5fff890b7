"""Layers of detectors.

Sources: catalogue, sections of the same names; Model Optimizer 2020.3, extensions/back,
NonMaximumSuppressionNormalize.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.formats.openvino_legacy.rules.shapes import scalar, take
from deconv_ir.ir.dtypes import F32, I32, I64
from deconv_ir.ir.graph import Source
from deconv_ir.ops.detection.nms import BoxEncoding

_LOWEST: Final = "-3.4028235e+38"
"""The catalogue's default of confidence_threshold: all boxes are used."""


def size_of(step: LayerConversion, index: int) -> Source:
    """Return height and width of an input, as a list of i64."""
    shape = step.add("ShapeOf", step.input(index), version="opset3", output_type=I64)
    return take(step, shape, [0], (2,), (4,))


def boxes(step: LayerConversion, found: Source) -> Source:
    """Return prior boxes with the batch of 1 that old layers had."""
    return step.add("Unsqueeze", found, step.literal((0,), suffix="batch"))


_PRIORS: Final = (
    *("min_size", "max_size", "aspect_ratio", "flip", "clip", "step", "offset", "variance"),
    *("scale_all_sizes", "fixed_ratio", "fixed_size", "density"),
)


def prior_box(step: LayerConversion) -> Source:
    """Convert PriorBox; the inputs give the sizes of the feature map and of the image."""
    given = {name: step.text(name) for name in _PRIORS if step.has(name)}
    high, wide = step.number("step_h", default=0.0), step.number("step_w", default=0.0)
    if high != wide:
        raise step.unsupported("PriorBox with step_h other than step_w is not supported", "step_h")
    if high:
        given["step"] = repr(high)
    for name in ("img_size", "img_h", "img_w"):
        if step.number(name, default=0.0):
            raise step.unsupported(f"PriorBox with {name} is not supported", name)
    given.setdefault("offset", "0.5")
    (made,) = step.written("PriorBox", size_of(step, 0), size_of(step, 1), given=given)
    return boxes(step, made)


def prior_box_clustered(step: LayerConversion) -> Source:
    """Convert PriorBoxClustered; `img_h` and `img_w` stand for the size of the image."""
    known = ("width", "height", "clip", "offset", "variance")
    given = {name: step.text(name) for name in known if step.has(name)}
    given.setdefault("clip", "0")
    given.setdefault("offset", "0.5")
    for name in ("step_w", "step_h"):
        found = step.number(name, default=0.0) or step.number("step", default=0.0)
        given[name] = repr(float(found))
    sizes = step.integer("img_h", default=0), step.integer("img_w", default=0)
    image = step.literal(sizes, suffix="image") if all(sizes) else size_of(step, 1)
    (made,) = step.written("PriorBoxClustered", size_of(step, 0), image, given=given)
    return boxes(step, made)


def detection_output(step: LayerConversion) -> Source:
    """Convert DetectionOutput, whose attributes and inputs are the same today."""
    given = {name: value for name, value in step.layer.attributes.items() if value.strip()}
    given.setdefault("confidence_threshold", _LOWEST)
    return step.written("DetectionOutput", *step.inputs, given=given)[0]


def proposal(step: LayerConversion) -> Sequence[Source]:
    """Convert Proposal; the size of the image may have a batch of 1."""
    if step.flag("for_deformable"):
        raise step.unsupported("Proposal with for_deformable=1 is not supported", "for_deformable")
    image = step.input(2)
    if step.rank(image) != 1:
        image = step.reshape(image, (-1,))
    count = max(1, len(step.layer.outputs))
    sources = (step.input(0), step.input(1), image)
    version = "opset1" if count == 1 else "opset4"
    return step.written("Proposal", *sources, version=version, outputs=count)


def roi_pooling(step: LayerConversion) -> Source:
    """Convert ROIPooling."""
    return step.written("ROIPooling", step.input(0), step.input(1))[0]


def psroi_pooling(step: LayerConversion) -> Source:
    """Convert PSROIPooling."""
    return step.written("PSROIPooling", step.input(0), step.input(1))[0]


def region_yolo(step: LayerConversion) -> Source:
    """Convert RegionYolo; without axes, all of them are flattened with softmax."""
    given = {name: step.text(name) for name in step.layer.attributes if step.has(name)}
    stated = step.declared()
    rank = step.rank(step.input())
    given.setdefault("axis", "1")
    flat = stated is not None and len(stated) == 2
    given.setdefault("end_axis", str(rank - 1) if flat or stated is None else "1")
    given.pop("anchors", None)  # they are for the code behind the network
    return step.written("RegionYolo", step.input(), given=given)[0]


def reorg_yolo(step: LayerConversion) -> Source:
    """Convert ReorgYolo."""
    return step.written("ReorgYolo", step.input())[0]


def non_max_suppression(step: LayerConversion) -> Source:
    """Convert NonMaxSuppression: rows behind the selected boxes are -1.

    The old layer had an output of fixed extent; the current one has as many rows as it selects.
    """
    boxes_, scores = step.input(0), step.input(1)
    defaults = (step.dims(boxes_)[1], 1.0, 0.0)
    kinds = (I64, F32, F32)
    limits = []
    for index, (value, kind) in enumerate(zip(defaults, kinds, strict=True), 2):
        if index < len(step.inputs):
            limits.append(scalar(step, step.convert(step.input(index), kind)))
        else:
            limits.append(step.literal((value,), kind, ()))
    centre = step.flag("center_point_box")
    (found,) = step.many(
        "NonMaxSuppression",
        boxes_,
        scores,
        *limits,
        outputs=1,
        version="opset3",
        box_encoding=BoxEncoding.CENTER if centre else BoxEncoding.CORNER,
        sort_result_descending=step.flag("sort_result_descending", default=True),
        output_type=I32,
    )
    rows = step.stated()[0]
    none = step.add(
        "Broadcast", step.literal((-1,), I32, ()), step.literal((rows, 3), suffix="rows")
    )
    both = step.add("Concat", found, none, axis=0)
    return take(step, both, [0], (0,), (rows,))


RULES: Final[dict[str, Rule]] = {
    "DetectionOutput": detection_output,
    "NonMaxSuppression": non_max_suppression,
    "PSROIPooling": psroi_pooling,
    "PriorBox": prior_box,
    "PriorBoxClustered": prior_box_clustered,
    "Proposal": proposal,
    "ROIPooling": roi_pooling,
    "RegionYolo": region_yolo,
    "ReorgYolo": reorg_yolo,
}
