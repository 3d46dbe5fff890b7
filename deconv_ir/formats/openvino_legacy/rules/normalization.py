"""Normalizations and softmax.

Sources: catalogue, sections BatchNormalization, GRN, MVN, Norm, Normalize and SoftMax; Model
Optimizer 2020.3, extensions/back, LRNToNorm and NormalizeToNormalizeL2.
"""

from __future__ import annotations

from typing import Final

from deconv_ir.formats.openvino_legacy.attributes import REQUIRED
from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.formats.openvino_legacy.rules.elementwise import per_channel
from deconv_ir.ir.graph import Source
from deconv_ir.ops.normalization.normalization import EpsRule


def batch_normalization(step: LayerConversion) -> Source:
    """Convert BatchNormalization: (x - biases) / sqrt(weights + epsilon).

    The weights are the variance and the biases the mean; a scale is a layer of its own.
    """
    data = step.input()
    epsilon = step.number("epsilon", "eps", default=REQUIRED)
    if epsilon < 0:
        raise step.fault("epsilon", "must be a number from 0", epsilon)
    variance = step.add("Add", per_channel(step, "weights"), step.scalar(epsilon))
    if step.has_blob("biases"):
        data = step.add("Subtract", data, per_channel(step, "biases"))
    return step.add("Divide", data, step.add("Sqrt", variance))


def norm(step: LayerConversion) -> Source:
    """Convert Norm, local response normalization over channels or over an area."""
    data = step.input()
    region = step.text("region", default="across").lower()
    if region not in ("across", "same"):
        raise step.fault("region", "must be across or same", region)
    rank = step.rank(data)
    axes = (1,) if region == "across" else tuple(range(2, rank))
    return step.add(
        "LRN",
        data,
        step.literal(axes, suffix="axes"),
        alpha=float(step.number("alpha", default=REQUIRED)),
        beta=float(step.number("beta", default=REQUIRED)),
        bias=float(step.number("k", "bias", default=1.0)),
        size=step.integer("local-size", "local_size", default=REQUIRED, minimum=1),
    )


def normalize(step: LayerConversion) -> Source:
    """Convert Normalize: x / sqrt(sum of squares + eps), times the weights."""
    data = step.input()
    rank = step.rank(data)
    across = step.flag("across_spatial")
    axes = tuple(range(1, rank)) if across else (1,)
    made = step.add(
        "NormalizeL2",
        data,
        step.literal(axes, suffix="axes"),
        eps=float(step.number("eps", default=1e-10)),
        eps_mode=EpsRule.ADD,
    )
    if not step.has_blob("weights"):
        return made
    if step.flag("channel_shared") and step.blob_elements("weights") != 1:
        raise step.fault("channel_shared", "needs one weight", step.blob_elements("weights"))
    return step.add("Multiply", made, per_channel(step, "weights"))


def grn(step: LayerConversion) -> Source:
    """Convert GRN."""
    return step.add("GRN", step.input(), bias=float(step.number("bias", default=REQUIRED)))


def mvn(step: LayerConversion) -> Source:
    """Convert MVN."""
    return step.add(
        "MVN",
        step.input(),
        across_channels=step.flag("across_channels"),
        normalize_variance=step.flag("normalize_variance", default=True),
        eps=float(step.number("eps", default=1e-9)),
    )


def softmax(step: LayerConversion) -> Source:
    """Convert SoftMax."""
    data = step.input()
    axis = step.axis(step.integer("axis", default=1), step.rank(data))
    return step.add("SoftMax", data, axis=axis)


def log_softmax(step: LayerConversion) -> Source:
    """Convert LogSoftmax."""
    data = step.input()
    axis = step.axis(step.integer("axis", default=1), step.rank(data))
    return step.add("LogSoftmax", data, axis=axis)


RULES: Final[dict[str, Rule]] = {
    "BatchNormalization": batch_normalization,
    "GRN": grn,
    "LogSoftmax": log_softmax,
    "MVN": mvn,
    "Norm": norm,
    "Normalize": normalize,
    "SoftMax": softmax,
}
