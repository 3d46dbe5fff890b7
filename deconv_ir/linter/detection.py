"""Layers that make or select boxes, and contradict names, values, variances or each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.linter.patterns import producer

if TYPE_CHECKING:
    from deconv_ir.ir.graph import Layer
    from deconv_ir.linter.context import LintContext

PRIORS: Final = ("PriorBox", "PriorBoxClustered")
MAX_STEPS: Final = 8
"""Layers between a PriorBox and its DetectionOutput: Unsqueeze, Concat, Reshape and their like."""
MOVES: Final = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Convert")
# Few networks need these patterns, so they are compiled on first use.
_BOXES: Final = r"(?i)(?<![a-z])(?:loc|box|bbox)"
_SCORES: Final = r"(?i)(?<![a-z])(?:conf|score|cls|class|prob|softmax)"


def check_detection(index: int, layer: Layer, context: LintContext) -> Iterator[Finding]:
    """Check a layer that makes or selects boxes."""
    if layer.type in PRIORS:
        yield from _exchanged_sizes(index, context)
        yield from _sizes(index, layer)
        return
    yield from _selects_nothing(index, layer, context)
    if layer.type == "NonMaxSuppression":
        yield from _encoding(index, layer, context)
    if layer.type != "DetectionOutput":
        return
    names = [_named(context, index, port) for port in (0, 1)]
    if all(names) and re.search(_SCORES, names[0]) and re.search(_BOXES, names[1]):
        clear = not (re.search(_BOXES, names[0]) or re.search(_SCORES, names[1]))
        if clear:
            yield Finding(
                f"the box logits come from {names[0]!r} and the scores from {names[1]!r}: are the "
                "inputs exchanged?",
                GraphLocation(layer=index, side="input", port=0),
                actual=names[0],
            )
    prior = _prior(context, index)
    code = getattr(layer.operation, "code_type", None)
    if prior is not None and code is not None and code.name == "CORNER":
        variance = list(getattr(context.graph.layers[prior].operation, "variance", ()))
        if len(set(variance[:2])) == len(set(variance[2:])) == 1 < len(set(variance)):
            shown = ", ".join(f"{v:g}" for v in variance)
            yield Finding(
                f"code_type is CORNER, but the variances {shown} of "
                f"{context.graph.layers[prior].name!r} differ between centers and sizes",
                GraphLocation(layer=index, attribute="code_type"),
                expected="caffe.PriorBoxParameter.CENTER_SIZE",
                actual="caffe.PriorBoxParameter.CORNER",
            )


def _selects_nothing(index: int, layer: Layer, context: LintContext) -> Iterator[Finding]:
    """Report thresholds and counts with which no box is left, or none is suppressed."""
    operation, inputs = layer.operation, context.inputs(index)
    for name in ("iou_threshold", "nms_threshold", "score_threshold", "confidence_threshold"):
        value = getattr(operation, name, None)
        location = GraphLocation(layer=index, attribute=name)
        if value is None and name in operation.inputs:
            port = operation.inputs.index(name)
            reals = inputs[port].reals if port < len(inputs) else None
            value = reals[0] if reals and len(reals) == 1 else None
            location = GraphLocation(layer=index, side="input", port=port)
        if value is None:
            continue
        overlap = name in ("iou_threshold", "nms_threshold")
        if overlap and not 0 <= value <= 1:
            effect = "no box is suppressed" if value > 1 else "every overlapping box is suppressed"
            yield Finding(
                f"{name} is {value:g}, though overlaps are between 0 and 1: {effect}",
                location,
                expected="0 to 1",
                actual=f"{value:g}",
            )
        elif not overlap and value > 1 and _are_probabilities(context, index, layer):
            yield Finding(
                f"{name} is {value:g}, though the scores are probabilities: no box is selected",
                location,
                expected="<= 1",
                actual=f"{value:g}",
            )
    for name in ("max_output_boxes_per_class", "nms_top_k", "keep_top_k", "top_k"):
        count = getattr(operation, name, None)
        location = GraphLocation(layer=index, attribute=name)
        if count is None and name in operation.inputs:
            port = operation.inputs.index(name)
            count = inputs[port].value if port < len(inputs) else None
            location = GraphLocation(layer=index, side="input", port=port)
        if count in (0, (0,)):
            yield Finding(
                f"{name} is 0: no box is selected", location, expected="> 0, or -1", actual="0"
            )
    classes = _classes(layer, context, index)
    for name in ("background_class", "background_label_id"):
        label = getattr(operation, name, None)
        if label is not None and classes is not None and label >= classes:
            yield Finding(
                f"{name} is {label}, but there are {classes} classes",
                GraphLocation(layer=index, attribute=name),
                expected=f"< {classes}, or -1",
                actual=label,
            )


def _classes(layer: Layer, context: LintContext, index: int) -> int | None:
    """Return the number of classes, if it is known."""
    inputs = context.inputs(index)
    shape = inputs[1].shape if len(inputs) > 1 else None
    if layer.type != "DetectionOutput":
        found = shape[1] if shape is not None and len(shape) == 3 else None
        return found if isinstance(found, int) else None
    stated = getattr(layer.operation, "num_classes", None)
    if stated is not None:
        return int(stated)
    priors = inputs[2].shape if len(inputs) > 2 else None
    if shape is None or priors is None or len(shape) != 2 or len(priors) != 3:
        return None
    size = 4 if getattr(layer.operation, "normalized", False) else 5
    scores, boxes = shape[1], priors[2]
    if not isinstance(scores, int) or not isinstance(boxes, int) or boxes < size:
        return None
    return scores // (boxes // size)


def _are_probabilities(context: LintContext, index: int, layer: Layer) -> bool:
    """Whether the scores come from a SoftMax or a Sigmoid, through layers that only move them."""
    at = producer(context, index, 1)
    for _ in range(MAX_STEPS):
        if at is None:
            return False
        kind = context.graph.layers[at].type
        if kind in ("SoftMax", "Sigmoid"):
            return True
        if kind not in MOVES:
            return False
        at = producer(context, at)
    return False


def _encoding(index: int, layer: Layer, context: LintContext) -> Iterator[Finding]:
    """Report boxes that are made as center - size and center + size, but read as centers."""
    if dict(layer.attributes).get("box_encoding", "corner") != "center":
        return
    at = producer(context, index)
    while at is not None and context.graph.layers[at].type in MOVES:
        at = producer(context, at)
    if at is None or context.graph.layers[at].type != "Concat":
        return
    sources = context.topology.sources
    ends = [source[0] for source in sources[at] if source is not None]
    kinds = [context.graph.layers[end].type for end in ends]
    if kinds == ["Subtract", "Add"] and set(sources[ends[0]]) == set(sources[ends[1]]):
        yield Finding(
            "box_encoding is center, but the boxes are a difference and a sum of the same tensors, "
            "as corners are",
            GraphLocation(layer=index, attribute="box_encoding"),
            expected="corner",
            actual="center",
        )


def _sizes(index: int, layer: Layer) -> Iterator[Finding]:
    """Report sizes of prior boxes that contradict each other."""
    operation = layer.operation
    least, most = (tuple(getattr(operation, f"{end}_size", ()) or ()) for end in ("min", "max"))
    wrong = [(a, b) for a, b in zip(least, most, strict=False) if b < a]
    if wrong:
        yield Finding(
            f"max_size {wrong[0][1]:g} is smaller than min_size {wrong[0][0]:g}",
            GraphLocation(layer=index, attribute="max_size"),
            expected=f">= {wrong[0][0]:g}",
            actual=f"{wrong[0][1]:g}",
        )
    for name in ("step", "width", "height"):
        value = getattr(operation, name, None)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(n is not None and n < 0 for n in numbers):
            shown = ",".join(f"{n:g}" for n in numbers)
            yield Finding(
                f"{name} of {layer.type} is negative: {shown}",
                GraphLocation(layer=index, attribute=name),
                expected=">= 0",
                actual=shown,
            )


def _exchanged_sizes(index: int, context: LintContext) -> Iterator[Finding]:
    """Report a feature map that is larger than its image."""
    inputs = context.inputs(index)
    sizes = [info.value for info in inputs[:2]]
    if len(sizes) < 2 or sizes[0] is None or sizes[1] is None:
        return
    pairs = list(zip(sizes[0], sizes[1], strict=False))
    if pairs and all(isinstance(a, int) and isinstance(b, int) and a > b for a, b in pairs):
        layer = context.graph.layers[index]
        yield Finding(
            f"the feature map of {layer.type} has {list(sizes[0])} cells, more than the image's "
            f"{list(sizes[1])}: are the inputs exchanged?",
            GraphLocation(layer=index, side="input", port=0),
            actual=str(list(sizes[0])),
        )


def _named(context: LintContext, index: int, port: int) -> str:
    """Return the name of the layer that an input comes from, through layers that only move it."""
    at = producer(context, index, port)
    return "" if at is None else context.graph.layers[at].name


def _prior(context: LintContext, index: int) -> int | None:
    """Return the PriorBox that the proposals come from."""
    at = producer(context, index, 2)
    for _ in range(MAX_STEPS):
        if at is None or context.graph.layers[at].type in PRIORS:
            return at
        at = producer(context, at)
    return None
