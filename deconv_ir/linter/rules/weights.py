"""Rules about the constants and the .bin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import GraphLocation
from deconv_ir.ir.shapes import format_shape
from deconv_ir.linter.constants import Span, count_not_finite, gaps, needed_bytes, overlaps, spans
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.edits import attribute_edit
from deconv_ir.linter.report import Fix, Report
from deconv_ir.linter.rule import ERROR, INFO, WARNING, Rule

if TYPE_CHECKING:
    from deconv_ir.linter.weights import WeightsView
    from deconv_ir.ops.constants.constant import Const


def left_to_the_check(found: DeconvError | Finding, context: LintContext) -> None:
    """Drop what inference found: the check reports it for every constant."""


def past_the_end(context: LintContext) -> Iterator[Report]:
    """Compare the end of each constant with the size of the file."""
    if context.weights is None:
        return
    length = len(context.weights)
    for index, _, const in context.constants():
        end = const.offset + const.size
        # A constant without elements is written with a size of 1.
        if end > length and needed_bytes(const) != 0:
            yield Report(
                f"offset {const.offset} + size {const.size} = {end} is past the end of "
                f"{context.weights.name}, which has {length} bytes",
                GraphLocation(layer=index, attribute="offset"),
                expected=f"<= {length}",
                actual=end,
                hint="the .bin does not belong to this .xml, or is cut short",
            )


def wrong_sizes(context: LintContext) -> Iterator[Report]:
    """Compare the size of each constant with its shape and type."""
    for index, _, const in context.constants():
        needed = needed_bytes(const)
        if needed == const.size:
            continue
        if needed is None:
            yield _size_unknown(index, const)
        # A constant without elements is written with a size of 1.
        elif needed or const.size > 1:
            yield Report(
                f"size is {const.size} bytes, but {const.element_type}"
                f"{format_shape(const.shape)} takes {needed}",
                GraphLocation(layer=index, attribute="size"),
                expected=needed,
                actual=const.size,
                fix=_size_fix(context, index, const, needed),
            )


def _size_unknown(index: int, const: Const) -> Report:
    """Report a constant of unknown size."""
    if const.element_type is None:
        return Report(
            "a constant must have an element type",
            GraphLocation(layer=index, attribute="element_type"),
        )
    return Report(
        f"a constant must have a static shape, found {format_shape(const.shape)}",
        GraphLocation(layer=index, attribute="shape"),
        actual=format_shape(const.shape),
    )


def _size_fix(context: LintContext, index: int, const: Const, needed: int) -> Fix:
    """Write the size, where the output port declares the same shape and type."""
    ports = context.graph.layers[index].outputs
    if (
        len(ports) != 1
        or (ports[0].shape or ()) != const.shape
        or ports[0].element_type is not const.element_type
    ):
        return Fix()
    end = const.offset + needed
    safe = context.evidence.supports_size(context, index, const.offset, end)
    return Fix(attribute_edit(context, index, "size", str(needed)), safe)


def _spans(context: LintContext, *, filled: bool = False) -> list[Span]:
    """Return the ranges of the constants; with `filled`, of those that have elements."""
    return spans(
        (index, const)
        for index, _, const in context.constants()
        if not filled or needed_bytes(const)
    )


def partial_overlaps(context: LintContext) -> Iterator[Report]:
    """Look for constants that share some of their bytes."""
    layers = context.graph.layers
    ends = {index: (c.offset, c.offset + c.size) for index, _, c in context.constants()}
    for index, other in overlaps(_spans(context, filled=True)):
        mine, its = (f"{start} to {end}" for start, end in (ends[index], ends[other]))
        yield Report(
            f"bytes {mine} overlap with those of {layers[other].name!r}, "
            f"{its}, in line {layers[other].line}",
            GraphLocation(layer=index, attribute="offset"),
            related=other,
        )


def offsets_between_elements(context: LintContext) -> Iterator[Report]:
    """Report the constants whose offset is not a multiple of their element's size."""
    for index, const in context.misaligned_constants:
        assert const.element_type is not None
        size = const.element_type.bits // 8
        yield Report(
            f"offset {const.offset} is not a multiple of {size}, the size of {const.element_type}",
            GraphLocation(layer=index, attribute="offset"),
            expected=f"a multiple of {size}",
            actual=const.offset,
        )


def unused_bytes(context: LintContext) -> Iterator[Report]:
    """Look for gaps between the ranges of the constants."""
    weights = context.weights
    if weights is None or context.is_body:
        return  # what is outside of the body uses bytes too
    if any(not layer.operation.implemented for layer in context.graph.of_type("Const")):
        return  # a constant whose attributes cannot be read may use them
    used = _spans(context)
    if context.bodies:
        from deconv_ir.linter.bodies import all_contexts

        inner = [spans((-1, const) for _, _, const in c.constants()) for c in all_contexts(context)]
        used = sorted([*used, *(span for found in inner[1:] for span in found)])
    for start, end, index in gaps(used, len(weights)):
        if _is_padding(weights, start, end):
            continue
        index = None if index == -1 else index
        location = None if index is None else GraphLocation(layer=index, attribute="offset")
        yield Report(
            f"bytes {start} to {end} of {weights.name} are used by no constant",
            context.document.root if location is None else location,
            actual=end - start,
        )


def _is_padding(weights: WeightsView, start: int, end: int) -> bool:
    """Tell whether a gap of zeros aligns the constant that follows to 2, 4 or 8 bytes."""
    aligned = any(end == -(-start // size) * size for size in (2, 4, 8))
    return aligned and end < len(weights) and not any(weights.read(start, end - start))


def not_finite(context: LintContext) -> Iterator[Report]:
    """Read every constant of a floating-point type."""
    if context.weights is None:
        return
    for index, layer, const in context.constants():
        needed = needed_bytes(const)
        if not needed or const.element_type is None or not const.element_type.is_float:
            continue
        if const.offset + needed > len(context.weights) or needed > const.size:
            continue  # other rules report it
        nans, infinities, first = count_not_finite(const, context.weights)
        if nans or infinities:
            yield Report(
                f"{layer.name!r} has {nans} NaN and {infinities} infinite elements, "
                f"the first at index {first}",
                GraphLocation(layer=index),
                actual=nans + infinities,
            )


RULES = (
    Rule(
        "IR501",
        "weights-missing",
        ERROR,
        """The model has constants, but their .bin is missing.

        The .xml names offsets in the .bin, which is expected beside it under the same name.
        """,
        fails="""
        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="864" size="24"/>
        </layer>
        """,
        weights="none",
        library_rules=("weights-missing",),
    ),
    Rule(
        "IR502",
        "constant-past-end",
        ERROR,
        """A constant ends after the end of the .bin.

        The .bin belongs to another .xml, or is truncated.
        """,
        fails="""
        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="900" size="24"/>
        </layer>
        """,
        library_rules=("const-past-end",),
        when="has_untidy_constants",
        check=past_the_end,
        present=left_to_the_check,
    ),
    Rule(
        "IR503",
        "constant-size",
        ERROR,
        """The size of a constant does not match its shape and type.

        Size, shape or type is wrong, so wrong bytes are read.  OpenVINO refuses a size that is
        too small and accepts one that is too large.
        """,
        fails="""
        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="864" size="12"/>
        </layer>
        """,
        library_rules=("const-size",),
        when="has_untidy_constants",
        fix="writes the size where the declared dims confirm shape and type",
        check=wrong_sizes,
        present=left_to_the_check,
    ),
    Rule(
        "IR504",
        "overlapping-constants",
        ERROR,
        """Two constants share some bytes of the .bin, but not all.

        OpenVINO stores equal constants once, so two constants may have the same range.  Ranges
        that overlap in part have a wrong offset.
        """,
        fails="""
        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="860" size="24"/>
        </layer>
        """,
        when="has_untidy_constants",
        check=partial_overlaps,
    ),
    Rule(
        "IR505",
        "misaligned-constant",
        INFO,
        """The offset of a constant is not a multiple of its element's size.

        OpenVINO writes such files itself.  Readers that map the file have to copy, and on some
        machines they fail.
        """,
        fails="""
        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="865" size="24"/>
        </layer>
        """,
        weights="zeros 889",
        when="misaligned_constants",
        check=offsets_between_elements,
    ),
    Rule(
        "IR506",
        "unused-weights",
        WARNING,
        """No constant uses some bytes of the .bin.

        The .bin belongs to another .xml, an offset is wrong, or the file is larger than it
        needs to be.
        """,
        fails="""
        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="864" size="24"/>
        </layer>
        """,
        weights="zeros 900",
        when="has_untidy_constants",
        check=unused_bytes,
    ),
    Rule(
        "IR507",
        "weights-not-finite",
        WARNING,
        """A constant has NaN or infinite elements.

        A single one in a filter makes every output NaN.  Negative infinity is not reported, since
        masks of attention contain it.
        """,
        fails="""
        <layer id="3">
            <data element_type="f32" shape="1,6,1,1" offset="864" size="24"/>
        </layer>
        """,
        weights="zeros 864, f32 1 nan 1 1 1 1",
        deep=True,
        check=not_finite,
    ),
)
