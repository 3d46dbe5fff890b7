"""Inputs and codes of DetectionOutput and PriorBox that contradict names, values or variances."""

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
_BOXES: Final = re.compile(r"(?i)(?<![a-z])(?:loc|box|bbox)")
_SCORES: Final = re.compile(r"(?i)(?<![a-z])(?:conf|score|cls|class|prob|softmax)")


def check_detection(index: int, layer: Layer, context: LintContext) -> Iterator[Finding]:
    """Check a DetectionOutput, or a PriorBox."""
    if layer.type in PRIORS:
        yield from _exchanged_sizes(index, context)
        return
    names = [_named(context, index, port) for port in (0, 1)]
    if all(names) and _SCORES.search(names[0]) and _BOXES.search(names[1]):
        clear = not (_BOXES.search(names[0]) or _SCORES.search(names[1]))
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
