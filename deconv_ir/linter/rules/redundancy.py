"""Rules about layers that could be left out without a change of the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.patterns import (
    behind_bias,
    constant_before,
    is_per_channel,
    producer,
    repeated,
)
from deconv_ir.linter.rule import INFO, rule
from deconv_ir.ops.convolution.dims import OUTPUT_CHANNEL_AXES

_NAMES: Final = (
    "Clamp Elu Gelu HSigmoid HSwish LogSoftmax Mish PReLU ReLU Selu Sigmoid SoftMax SoftPlus "
    "SoftSign Swish Tanh"
)
ACTIVATIONS: Final = tuple(_NAMES.split())
IDEMPOTENT: Final = ("Clamp", "ReLU")
"""Idempotent activations."""


@rule("IR901", "normalization-not-folded", INFO, types=("BatchNormInference", "Multiply"))
def unfolded_normalization(context: LintContext) -> Iterator[Finding]:
    """A convolution with a constant filter is followed by constant factors.

    A BatchNormInference, or a Multiply with one factor for each channel, could be folded into
    the filter and the bias, which saves a pass over the output.

        <layer id="4" type="Multiply"/>
    """
    layers, counts = context.graph.layers, context.use_counts
    for index, layer in context.valid_layers("BatchNormInference", "Multiply"):
        inputs = type(layer.operation).inputs
        sides = (inputs.index("data"),) if "data" in inputs else (0, 1)
        for port in sides:
            others = [k for k in range(len(layer.inputs)) if k != port]
            if not all(constant_before(context, index, k) for k in others):
                continue
            at = behind_bias(context, producer(context, index, port))
            if (
                at is None
                or layers[at].type not in OUTPUT_CHANNEL_AXES
                or counts[at] != 1
                or not constant_before(context, at, 1)
                or not all(
                    is_per_channel(context.inputs(index)[k].shape, context.outputs(at)[0].shape)
                    for k in (others if layer.type == "Multiply" else ())
                )
            ):
                continue
            yield Finding(
                f"its factors could be folded into the filter of {layers[at].name!r} "
                f"in line {layers[at].line}",
                GraphLocation(layer=index),
            )


@rule("IR902", "repeated-activation", INFO, types=ACTIVATIONS)
def repeated_activations(context: LintContext) -> Iterator[Finding]:
    """An activation is applied twice.

    A second ReLU or Clamp only costs time; a second Sigmoid or SoftMax changes the result, and
    is a mistake in most exports.

        <layer id="7" name="again" type="ReLU" version="opset1"/>
        <edge from-layer="5" from-port="1" to-layer="7" to-port="0"/>
        <edge from-layer="7" from-port="1" to-layer="6" to-port="0"/>
    """
    for index, layer, _, before in repeated(context, *ACTIVATIONS):
        if before.operation == layer.operation:
            effect = " and changes nothing" if layer.type in IDEMPOTENT else ""
            yield Finding(
                f"{layer.type} follows {before.type} {before.name!r} in line {before.line}{effect}",
                GraphLocation(layer=index),
            )


@rule("IR903", "transposes-cancel", INFO, weights="ones 888, i64 0 1 3 2", types=("Transpose",))
def cancelling_transposes(context: LintContext) -> Iterator[Finding]:
    """A Transpose undoes the one before it.

    Both copy all data for nothing.  Exporters add a pair around each operation of another
    layout.

        <layer id="7" name="order" type="Const" version="opset1">
            <data element_type="i64" shape="4" offset="888" size="32"/>
        </layer>
        <layer id="8" name="there" type="Transpose" version="opset1"/>
        <layer id="9" name="back" type="Transpose" version="opset1"/>
        <edge from-layer="5" from-port="1" to-layer="8" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="1"/>
        <edge from-layer="8" from-port="2" to-layer="9" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="9" to-port="1"/>
        <edge from-layer="9" from-port="2" to-layer="6" to-port="0"/>
    """
    for index, _, at, before in repeated(context, "Transpose"):
        if at in context.unfit:
            continue
        first, second = _order(context, at), _order(context, index)
        if (
            first is not None
            and second is not None
            and len(first) == len(second) > 0
            and all(first[axis] == place for place, axis in enumerate(second))
        ):
            yield Finding(
                f"undoes the Transpose {before.name!r} in line {before.line}",
                GraphLocation(layer=index),
            )


def _order(context: LintContext, index: int) -> tuple[int, ...] | None:
    """Return the order of the axes of a Transpose, if it is known."""
    data, order = context.inputs(index)[:2]
    if order.value == () and data.shape is not None:
        return tuple(reversed(range(len(data.shape))))
    known = tuple(axis for axis in order.value or () if isinstance(axis, int))
    return known if order.value is not None and len(known) == len(order.value) else None
