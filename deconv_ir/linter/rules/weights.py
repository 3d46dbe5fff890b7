"""Rules about the constants and the .bin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.findings import Finding, Fix, GraphLocation
from deconv_ir.hints import Hint
from deconv_ir.ir.shapes import format_shape, static
from deconv_ir.linter.constants import (
    Span,
    count_not_finite,
    count_saturated,
    gaps,
    needed_bytes,
    overlaps,
    spans,
    zero_channels,
)
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.edits import attribute_edit
from deconv_ir.linter.finite import WEIGHTS
from deconv_ir.linter.indices import INDICES, TYPES, outside
from deconv_ir.linter.patterns import constant_before, is_readable
from deconv_ir.linter.rule import ERROR, INFO, WARNING, rule
from deconv_ir.linter.safety import supports_size
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.convolution.dims import OUTPUT_CHANNEL_AXES

if TYPE_CHECKING:
    from deconv_ir.linter.weights import RecordedWeights


def left_to_the_check(found: Finding, context: LintContext) -> Finding | None:
    """Drop findings of inference: the check reports them for every constant.

    The blobs of old layers are checked when they are read, and are not constants if they are wrong.
    """
    return found if found.rule == "legacy-blob" else None


@rule(
    "IR502",
    "constant-past-end",
    ERROR,
    takes="const-past-end",
    when="has_untidy_constants",
    present=left_to_the_check,
)
def past_the_end(context: LintContext) -> Iterator[Finding]:
    """A constant ends after the end of the .bin.

    The .bin belongs to another .xml, or is truncated.  The first such constant is reported, with
    the number of the others.

        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="900" size="24"/>
        </layer>
    """
    if context.weights is None:
        return
    length = len(context.weights)
    past = [
        (index, const)
        for index, _, const in context.constants()
        # A constant without elements is written with a size of 1.
        if const.offset + const.size > length and needed_bytes(const) != 0
    ]
    if not past:
        return
    index, const = past[0]
    end = const.offset + const.size
    more = ""
    if len(past) > 1:
        last = max(const.offset + const.size for _, const in past)
        others = f"{len(past) - 1} more constant" + ("s" if len(past) > 2 else "")
        more = f"; {others} too, the last ends at {last}"
    yield Finding(
        f"offset {const.offset} + size {const.size} = {end} is past the end of "
        f"{context.weights.name}, which has {length} bytes{more}",
        GraphLocation(layer=index, attribute="offset"),
        expected=f"<= {length}",
        actual=end,
        hint=Hint.OTHER_BIN(),
    )


@rule(
    "IR503",
    "constant-size",
    ERROR,
    takes="const-size legacy-blob",
    when="has_untidy_constants",
    fix="writes the size where the declared dims confirm shape and type",
    present=left_to_the_check,
)
def wrong_sizes(context: LintContext) -> Iterator[Finding]:
    """The size of a constant does not match its shape and type.

    Size, shape or type is wrong, so wrong bytes are read.  OpenVINO refuses a size that is
    too small and accepts one that is too large.

        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="864" size="12"/>
        </layer>
    """
    for index, _, const in context.constants():
        needed = needed_bytes(const)
        if needed == const.size:
            continue
        if needed is None:
            yield _size_unknown(index, const)
        # A constant without elements is written with a size of 1.
        elif needed or const.size > 1:
            yield Finding(
                f"size is {const.size} bytes, but {const.element_type}"
                f"{format_shape(const.shape)} takes {needed}",
                GraphLocation(layer=index, attribute="size"),
                expected=needed,
                actual=const.size,
                fix=_size_fix(context, index, const, needed),
            )


def _size_unknown(index: int, const: Const) -> Finding:
    """Report a constant of unknown size."""
    if const.element_type is None:
        return Finding(
            "a constant must have an element type",
            GraphLocation(layer=index, attribute="element_type"),
        )
    return Finding(
        f"a constant must have a static shape, found {format_shape(const.shape)}",
        GraphLocation(layer=index, attribute="shape"),
        actual=format_shape(const.shape),
    )


def _size_fix(context: LintContext, index: int, const: Const, needed: int) -> Fix | None:
    """Return the fix of the size, if the output port declares the same shape and type."""
    ports = context.graph.layers[index].outputs
    if (
        len(ports) != 1
        or (ports[0].shape or ()) != const.shape
        or ports[0].element_type is not const.element_type
    ):
        return None
    end = const.offset + needed
    safe = supports_size(context, index, const.offset, end)
    return Fix(attribute_edit(context, index, "size", str(needed)), safe)


def _spans(context: LintContext, *, filled: bool = False) -> list[Span]:
    """Return the ranges of the constants; with `filled`, only of those with elements."""
    return spans(
        (index, const)
        for index, _, const in context.constants()
        if not filled or needed_bytes(const)
    )


@rule("IR504", "overlapping-constants", ERROR, when="has_untidy_constants")
def partial_overlaps(context: LintContext) -> Iterator[Finding]:
    """Two constants share some bytes of the .bin, but not all.

    OpenVINO stores equal constants once, so two constants may have the same range.  Ranges
    that overlap in part have a wrong offset.

        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="860" size="24"/>
        </layer>
    """
    layers = context.graph.layers
    ends = {index: (c.offset, c.offset + c.size) for index, _, c in context.constants()}
    for index, other in overlaps(_spans(context, filled=True)):
        mine, its = (f"{start} to {end}" for start, end in (ends[index], ends[other]))
        yield Finding(
            f"bytes {mine} overlap with those of {layers[other].name!r}, "
            f"{its}, in line {layers[other].line}",
            GraphLocation(layer=index, attribute="offset"),
        )


@rule("IR505", "misaligned-constant", INFO, weights="ones 889", when="misaligned_constants")
def offsets_between_elements(context: LintContext) -> Iterator[Finding]:
    """An offset is not a multiple of the element's size, although no constant ends there.

    OpenVINO packs constants without gaps, whatever their element types, and reads them at any
    offset.  An offset after a gap is not OpenVINO's; it may be wrong, and readers that map the file
    have to copy, or fail.

        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="865" size="24"/>
        </layer>
    """
    for index, const in context.misaligned_constants:
        assert const.element_type is not None
        size = const.element_type.bits // 8
        yield Finding(
            f"offset {const.offset} is not a multiple of {size}, the size of "
            f"{const.element_type}, and no constant ends there",
            GraphLocation(layer=index, attribute="offset"),
            expected=f"a multiple of {size}",
            actual=const.offset,
        )


@rule("IR506", "unused-weights", WARNING, weights="ones 900", when="has_untidy_constants")
def unused_bytes(context: LintContext) -> Iterator[Finding]:
    """No constant uses some bytes of the .bin.

    The .bin belongs to another .xml, an offset is wrong, or the file is larger than it
    needs to be.

        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="864" size="24"/>
        </layer>
    """
    weights = context.weights
    if weights is None or context.is_body:
        return  # layers outside of the body use bytes too
    unread = any(not layer.operation.implemented for layer in context.graph.of_type("Const"))
    if unread or not context.parsed.states_constants:
        return  # a constant whose attributes cannot be read may use them
    used = _spans(context)
    if any(info.tag == "pre-process" for info in context.graph.extras):
        from deconv_ir.formats.openvino_xml.pre_process import image_spans
        from deconv_ir.formats.registry import format_of

        stated = format_of(context.graph).states_image_type
        images = image_spans(context.graph, states_type=stated)
        used = sorted([*used, *((*span, [-1]) for span in images)])
    if context.bodies:
        inner = [spans((-1, const) for _, _, const in c.constants()) for c in context.with_bodies()]
        used = sorted([*used, *(span for found in inner[1:] for span in found)])
    for start, end, index in gaps(used, len(weights)):
        if _is_padding(weights, start, end):
            continue
        index = None if index == -1 else index
        location = None if index is None else GraphLocation(layer=index, attribute="offset")
        yield Finding(
            f"bytes {start} to {end} of {weights.name} are used by no constant",
            context.parsed.root if location is None else location,
            actual=end - start,
        )


def _is_padding(weights: RecordedWeights, start: int, end: int) -> bool:
    """Whether a gap of zeros aligns the constant that follows to 2, 4 or 8 bytes."""
    aligned = any(end == -(-start // size) * size for size in (2, 4, 8))
    return aligned and end < len(weights) and not any(weights.read(start, end - start))


@rule(
    "IR507",
    "weights-not-finite",
    ERROR,
    weights="ones 864, f32 1 nan 1 1 1 1",
    when="suspicious_constants",
)
def not_finite(context: LintContext) -> Iterator[Finding]:
    """A constant has NaN or infinite elements.

    A single one in a filter makes every output NaN.  Negative infinity is reported in weights
    only, since masks of attention contain it.  The constants with which layers calculate are
    searched, up to 16 MiB of a file; with ``--deep``, all constants.

        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="864" size="24"/>
        </layer>
    """
    assert context.weights is not None, "a constant was read"
    for index, mask_allowed in context.suspicious_constants:
        layer = context.graph.layers[index]
        assert isinstance(layer.operation, Const)
        nans, infinities, first = count_not_finite(
            layer.operation, context.weights, mask_allowed=mask_allowed
        )
        if nans or infinities:
            yield Finding(
                f"{layer.name!r} has {nans} NaN and {infinities} infinite elements, "
                f"the first at index {first}",
                GraphLocation(layer=index),
                actual=nans + infinities,
            )


def _filters(context: LintContext) -> Iterator[tuple[int, Const, tuple[int, ...]]]:
    """Iterate over the constants that are filters, with the axes of their output channels.

    The constant may be decompressed before the convolution: 0 stays 0 in a Convert and a Multiply.
    """
    seen = set()
    for index, layer in context.valid_layers(*OUTPUT_CHANNEL_AXES):
        axes = OUTPUT_CHANNEL_AXES[layer.type]
        found = constant_before(context, index, 1, ("Convert", "Multiply"))
        if found is None or (found[0], axes) in seen or not is_readable(context, found[1]):
            continue
        if len(found[1].shape or ()) == len(context.inputs(index)[1].shape or ()):
            seen.add((found[0], axes))
            yield *found, axes


@rule(
    "IR508",
    "zero-filter",
    WARNING,
    weights="zeros 864, f32 1 1 1 1 1 1",
    deep=True,
    types=tuple(OUTPUT_CHANNEL_AXES),
)
def zero_filters(context: LintContext) -> Iterator[Finding]:
    """All elements of a convolution's filter are 0.

    The layer gives its bias alone.  The weights were never written, or the offset is wrong.

        <layer id="1">
            <data element_type="f32" shape="4,6,3,3" offset="0" size="864"/>
        </layer>
    """
    for index, _, dead, channels in _dead_channels(context):
        if dead == channels:
            yield Finding("all elements of the filter are 0", GraphLocation(layer=index))


@rule(
    "IR509",
    "zero-output-channels",
    INFO,
    weights="ones 36, zeros 828, f32 1 1 1 1 1 1",
    deep=True,
    types=tuple(OUTPUT_CHANNEL_AXES),
)
def zero_output_channels(context: LintContext) -> Iterator[Finding]:
    """Some output channels of a convolution's filter are all 0.

    The channels have the same value everywhere, and could be removed.  Pruning leaves such
    channels, and so do activations that never let them learn.

        <layer id="1">
            <data element_type="f32" shape="4,6,3,3" offset="0" size="864"/>
        </layer>
    """
    for index, first, dead, channels in _dead_channels(context):
        if dead < channels:
            yield Finding(
                f"the elements of {dead} of {channels} output channels are all 0, "
                f"the first of channel {first}",
                GraphLocation(layer=index),
                actual=dead,
            )


def _dead_channels(context: LintContext) -> Iterator[tuple[int, int, int, int]]:
    """Iterate over constant filters: constant, first zero channel, number of these and of all.

    Each filter is read once, although two rules use it.
    """
    if context.weights is None:
        return
    for index, const, axes in _filters(context):
        key = (index, axes)
        if key not in context.dead_channels:
            context.dead_channels[key] = zero_channels(const, context.weights, axes)
        dead = context.dead_channels[key]
        if dead:
            shape = static(const.shape)
            yield index, dead[0], len(dead), math.prod(shape[axis] for axis in axes)


@rule(
    "IR510",
    "saturated-weights",
    WARNING,
    weights="ones 888, f16 65504, zeros 430",
    deep=True,
    types=tuple(WEIGHTS),
)
def saturated_weights(context: LintContext) -> Iterator[Finding]:
    """Weights of f16 are at the bounds of that type, 65504 and -65504.

    They were larger before the model was saved as f16, and the result is wrong wherever they
    matter.  Masks, which are added and not multiplied, are not checked.

        <layer id="7" name="half" type="Const" version="opset1">
            <data element_type="f16" shape="4,6,3,3" offset="888" size="432"/>
        </layer>
        <layer id="8" name="decompress" type="Convert" version="opset1">
            <data destination_type="f32"/>
        </layer>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="0"/>
        <edge from-layer="8" from-port="1" to-layer="2" to-port="1"/>
    """
    seen: set[int] = set()
    layers = context.graph.layers
    for type_name, ports in WEIGHTS.items():
        for index, port in [(i, p) for i, _ in context.layers(type_name) for p in ports]:
            found = constant_before(context, index, port, ("Convert", "Reshape", "Transpose"))
            if found is None or found[0] in seen or not is_readable(context, found[1]):
                continue
            at, const = found
            seen.add(at)
            if str(const.element_type) != "f16" or context.weights is None:
                continue
            count, first = count_saturated(const, context.weights)
            if count:
                yield Finding(
                    f"{layers[at].name!r} has {count} elements of 65504 or -65504, the bounds of "
                    f"f16, the first at index {first}",
                    GraphLocation(layer=at),
                    actual=count,
                )


@rule("IR501", "weights-missing", ERROR, weights="none", takes="weights-missing")
def weights_missing() -> None:
    """The model has constants, but their .bin is missing.

    The .xml names offsets in the .bin, which is expected next to it under the same name.

        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="864" size="24"/>
        </layer>
    """


def _outside(context: LintContext, *, zeros: bool) -> Iterator[Finding]:
    """Report the first constant index of each layer that is outside of its axis."""
    for index, layer in context.valid_layers(*TYPES):
        # Only Gather-8 counts from the end, and defines the others.
        counts = layer.type == "Gather" and bool(getattr(layer.operation, "negative", False))
        found = outside(context, index, layer) if counts == zeros else None
        if found is not None:
            yield Finding(
                f"index {found.value} is outside {found.where} of {layer.type}, which takes "
                f"{found.least} to {found.most}",
                GraphLocation(layer=index, side="input", port=INDICES),
                expected=f"{found.least}..{found.most}",
                actual=found.value,
            )


@rule("IR511", "index-out-of-range", ERROR, weights="ones 888, i64 0 9", types=TYPES)
def index_out_of_range(context: LintContext) -> Iterator[Finding]:
    """A constant index is outside of the axis that it selects from.

    GatherElements, the scatters and the embedding bags of OpenVINO fail when the model runs or
    write other memory, GatherND reads it, and Gather-1 and Gather-7 give zeros for an index that
    their documents do not allow.  Only Gather-8 counts negative indices from the end.

        <layer id="7" name="indices" type="Const" version="opset1">
            <data element_type="i64" shape="2" offset="888" size="16"/>
        </layer>
        <layer id="8" name="updated" type="GatherND" version="opset8"/>
        <edge from-layer="5" from-port="1" to-layer="8" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="1"/>
        <edge from-layer="8" from-port="2" to-layer="6" to-port="0"/>
    """
    yield from _outside(context, zeros=False)


@rule(
    "IR512",
    "index-gives-zeros",
    WARNING,
    weights="ones 888, i64 0 9, i64 1",
    types=("Gather",),
)
def index_gives_zeros(context: LintContext) -> Iterator[Finding]:
    """A constant index of a Gather-8 is outside of its axis.

    The slice is zero then, which is rarely intended.

        <layer id="7" name="indices" type="Const" version="opset1">
            <data element_type="i64" shape="2" offset="888" size="16"/>
        </layer>
        <layer id="8" name="axis" type="Const" version="opset1">
            <data element_type="i64" shape="" offset="904" size="8"/>
        </layer>
        <layer id="9" name="gathered" type="Gather" version="opset8"/>
        <edge from-layer="5" from-port="1" to-layer="9" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="9" to-port="1"/>
        <edge from-layer="8" from-port="0" to-layer="9" to-port="2"/>
        <edge from-layer="9" from-port="3" to-layer="6" to-port="0"/>
    """
    yield from _outside(context, zeros=True)
