"""Layers of detectors.

Sources: catalogue, sections of the same names; Model Optimizer 2020.3, extensions/back,
NonMaximumSuppressionNormalize; Inference Engine 2018 R5, extension/ext_simplernms.cpp; Caffe SSD,
prior_box_layer.cpp (sizes of the image, and steps).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from deconv_ir.formats.openvino_legacy.attributes import REQUIRED
from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.formats.openvino_legacy.rules.elementwise import BOOLEAN
from deconv_ir.formats.openvino_legacy.rules.shapes import scalar, take
from deconv_ir.ir.dtypes import F32, I32, I64
from deconv_ir.ir.graph import Source
from deconv_ir.ops.detection.nms import BoxEncoding
from deconv_ir.ops.detection.prior_box import PriorBox1

_LOWEST: Final = "-3.4028235e+38"
"""The catalogue's default of confidence_threshold: all boxes are used."""

_MOST_ANCHORS: Final = 1 << 16


def size_of(step: LayerConversion, index: int) -> Source:
    """Return height and width of an input, as a list of i64; a list is one."""
    if step.rank(step.input(index)) == 1:
        return step.integral(step.input(index))
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
    """Convert PriorBox; the inputs give the sizes of the feature map and of the image.

    `img_h` and `img_w`, or `img_size`, stand for the size of the image.  Steps that differ make two
    of it, since the current PriorBox has one step.
    """
    given = {name: step.text(name) for name in _PRIORS if step.has(name)}
    given.setdefault("offset", "0.5")
    square = step.integer("img_size", default=0, minimum=0)
    sizes = tuple(step.integer(n, default=0, minimum=0) or square for n in ("img_h", "img_w"))
    image = step.literal(sizes, suffix="image") if all(sizes) else size_of(step, 1)
    common = step.number("step", default=0.0)
    high, wide = (step.number(n, default=0.0) or common for n in ("step_h", "step_w"))
    if not (high and wide):
        high = wide = 0.0
        given["offset"] = "0.5"  # of a cell, whatever the file says
    if not step.flag("scale_all_sizes", default=True):
        if step.has("min_size"):
            return boxes(step, _sizes_of_mxnet(step, image, given, high, wide))
        del given["scale_all_sizes"]
    if high != wide:
        return boxes(step, _two_steps(step, image, given, high, wide))
    given["step"] = repr(float(high))
    return boxes(step, step.written("PriorBox", size_of(step, 0), image, given=given)[0])


def _sizes_of_mxnet(
    step: LayerConversion, image: Source, given: Mapping[str, str], high: float, wide: float
) -> Source:
    """Add a PriorBoxClustered with squares of all sizes, and ratios of the first.

    Model Optimizer wrote pixels, and `scale_all_sizes="0"`, with which sizes and steps of the
    current PriorBox are shares of the image.  Source: Model Optimizer 2019 R3,
    multi_box_prior_infer_mxnet; Inference Engine 2020.3, priorbox.cpp.
    """
    if step.has("fixed_size"):
        what = "PriorBox with scale_all_sizes=0, min_size and fixed_size has no counterpart"
        raise step.unsupported(what, "fixed_size")
    small = step.numbers("min_size", default=REQUIRED)
    large = step.numbers("max_size", default=())
    ratios = PriorBox1(
        offset=0.5, aspect_ratio=step.numbers("aspect_ratio", default=()), flip=step.flag("flip")
    ).ratios
    for name, values in (("min_size", small), ("max_size", large), ("aspect_ratio", ratios)):
        if min(values, default=1) <= 0:
            raise step.fault(name, "must be positive", step.text(name))
    extents: list[tuple[float, float]] = []
    for index, size in enumerate(small):
        extents.append((size, size))
        if index < len(large):
            extents.append((math.sqrt(size * large[index]),) * 2)
    extents += [(small[0] * math.sqrt(ratio), small[0] / math.sqrt(ratio)) for ratio in ratios]
    kept = {name: given[name] for name in ("clip", "offset", "variance") if name in given}
    kept.setdefault("clip", "0")
    kept |= {
        "width": ",".join(repr(float(w)) for w, _ in extents),
        "height": ",".join(repr(float(h)) for _, h in extents),
        "step_w": repr(float(wide)),
        "step_h": repr(float(high)),
    }
    return step.written("PriorBoxClustered", size_of(step, 0), image, given=kept)[0]


def _two_steps(
    step: LayerConversion, image: Source, given: Mapping[str, str], high: float, wide: float
) -> Source:
    """Join x of the boxes for one step with y of those for the other."""
    parts = []
    for size in (wide, high):
        both = {**given, "step": repr(float(size))}
        made = step.written("PriorBox", size_of(step, 0), image, given=both)[0]
        parts.append(step.reshape(made, (2, -1, 4)))
    is_x = step.literal((1, 0, 1, 0), BOOLEAN, suffix="is_x")
    return step.reshape(step.add("Select", is_x, *parts), (2, -1))


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
    """Convert DetectionOutput, whose attributes and inputs are the same today.

    Files for normalized boxes may have sizes of -1, which nothing reads.
    """
    given = {name: value for name, value in step.layer.attributes.items() if value.strip()}
    for name in ("input_height", "input_width"):
        if step.integer(name, default=1) < 1 and step.flag("normalized"):
            del given[name]
    given.setdefault("confidence_threshold", _LOWEST)
    return step.written("DetectionOutput", *step.inputs, given=given)[0]


def proposal(step: LayerConversion) -> Sequence[Source]:
    """Convert Proposal; the size of the image may have a batch of 1."""
    given = {name: value for name, value in step.layer.attributes.items() if value.strip()}
    deltas = step.input(1)
    if step.flag("for_deformable"):
        deltas = _with_corners_inside(step, deltas, given)
    image = step.input(2)
    if step.rank(image) != 1:
        image = step.reshape(image, (-1,))
    count = max(1, len(step.layer.outputs))
    sources = (step.input(0), deltas, image)
    version = "opset1" if count == 1 else "opset4"
    return step.written("Proposal", *sources, version=version, outputs=count, given=given)


def _with_corners_inside(step: LayerConversion, deltas: Source, given: dict[str, str]) -> Source:
    """Return deltas with which Proposal has the boxes of a Proposal with `for_deformable`.

    The pixels of both corners belong to its boxes: the end of a box is less by 1, which is a
    center less by half a pixel, and a smaller extent.  Source: MXNet, proposal.cc,
    BBoxTransformInv; as clDNN of the Inference Engine, proposal.cpp, `gen_bbox` (its CPU plugin
    ignored the attribute).  A `base_size` of 0, as Model Optimizer wrote it, is the stride (MXNet's
    base anchor).
    """
    if step.text("framework"):
        raise step.unsupported("for_deformable needs the anchors of Caffe", "framework")
    base = step.integer("base_size", default=0, minimum=0)
    base = base or step.integer("feat_stride", default=REQUIRED, minimum=1)
    given["base_size"] = str(base)
    ratios, scales = (step.numbers(name, default=REQUIRED) for name in ("ratio", "scale"))
    if min((*ratios, *scales)) <= 0:
        name = "ratio" if min(ratios) <= 0 else "scale"
        raise step.fault(name, "must be positive", step.text(name))
    if len(ratios) * len(scales) > _MOST_ANCHORS:
        raise step.fault("ratio", f"makes more than {_MOST_ANCHORS} anchors", len(ratios))
    center = step.number("box_coordinate_scale", default=1.0)
    extent = step.number("box_size_scale", default=1.0)
    shares: list[float] = []
    for ratio in ratios:
        wide = math.floor(math.sqrt(base * base / ratio) + 0.5)
        high = math.floor(wide * ratio + 0.5)
        shares += [1 / max(1, size * scale) for scale in scales for size in (wide, high) * 2]
    shape = (1, len(shares), 1, 1)
    moved = step.literal([0.5 * center * share for share in shares], F32, shape, suffix="moves")
    less = step.literal(shares, F32, shape, suffix="shares")
    by = step.literal((extent,), F32, ())
    # Boxes of less than a pixel have no extent; no finite logarithm is below -80.
    rest = step.add("Subtract", step.add("Exp", step.add("Divide", deltas, by)), less)
    rest = step.add("Log", step.add("Maximum", rest, step.literal((1e-35,), F32, ())))
    is_center = step.literal((1, 1, 0, 0) * (len(shares) // 4), BOOLEAN, shape, suffix="is_center")
    moves = step.add("Subtract", deltas, moved)
    return step.add("Select", is_center, moves, step.add("Multiply", rest, by))


def simpler_nms(step: LayerConversion) -> Source:
    """Convert SimplerNMS: a Proposal with anchors of 16 pixels and three ratios and scales.

    Only the first image of a batch is used, and boxes whose score is not positive are none.  The
    Inference Engine left the rows behind the last box as they were; they are 0 here.  It read
    neither cls_threshold nor max_num_proposals, and took whole numbers from the third input.
    """
    scores, deltas = step.input(0), step.input(1)
    channels = [step.dims(source)[1] for source in (scores, deltas) if step.rank(source) == 4]
    if len(channels) != 2:
        raise step.unsupported("SimplerNMS needs scores and deltas of 4 dims")
    if channels[0] > channels[1]:
        scores, deltas = deltas, scores
    scales = step.numbers("scale", default=REQUIRED)
    if len(scales) != 3:
        raise step.fault("scale", "must have 3 numbers", step.text("scale"))
    if step.dims(scores)[0] > 1:
        scores, deltas = (take(step, source, [0], (0,), (1,)) for source in (scores, deltas))
    image = take(step, step.reshape(step.input(2), (-1,)), [0], (0,), (3,))
    given = {
        "base_size": "16",
        "ratio": "0.5,1,2",
        "scale": ",".join(map(repr, scales)),
        "nms_thresh": repr(step.number("iou_threshold", default=REQUIRED)),
        "min_size": str(step.integer("min_bbox_size", default=REQUIRED, minimum=0)),
    }
    for name in ("feat_stride", "pre_nms_topn", "post_nms_topn"):
        given[name] = str(step.integer(name, default=REQUIRED, minimum=1))
    sources = scores, deltas, step.convert(step.convert(image, I32), F32)
    rows, found = step.written("Proposal", *sources, version="opset4", outputs=2, given=given)
    # Behind the last box, rows are -1 or 0, and OpenVINO 2026.4 leaves scores as they were.
    zero = step.scalar(0.0)
    kept = step.add("Unsqueeze", step.add("Greater", found, zero), step.literal((1,)))
    return step.add("Select", kept, step.add("ReLU", rows), zero)


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
    defaults = (step.dims(boxes_, 2)[1], 1.0, 0.0)
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
    rows = step.stated(least=1)[0]
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
    "SimplerNMS": simpler_nms,
}
