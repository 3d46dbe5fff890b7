"""Rules about the attributes of operations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deconv_ir.findings import Finding, Fix, GraphLocation
from deconv_ir.ir.geometry import PadMode, interior_taps
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.shapes import format_shape
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.edits import attribute_fix
from deconv_ir.linter.patterns import constant_before, kernel_axes
from deconv_ir.linter.rule import (
    ANY_DECONVOLUTION,
    DECONVOLUTION,
    ERROR,
    INFO,
    WARNING,
    check_once,
    rule,
)
from deconv_ir.linter.rules.fragments import output_shape
from deconv_ir.ops.base import Allowed, Form, attributes_of

if TYPE_CHECKING:
    from deconv_ir.ir.operation import Operation
    from deconv_ir.ops.convolution.deconvolution import Deconvolution
    from deconv_ir.ops.linear_algebra.attention import ScaledDotProductAttention

WINDOWS: Final = ("Convolution", "GroupConvolution", "BinaryConvolution", "AvgPool", "MaxPool")
DEFAULTS: Final = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"}
READ_BY_OPENVINO: Final = ("explicit", "same_upper", "same_lower", "valid")


@rule("IR302", "required-attribute-left-out", WARNING, fix="writes the value that readers assume")
def required_attributes(context: LintContext) -> Iterator[Finding]:
    """An attribute that the operation's document requires is missing.

    Most readers silently assume strides and dilations of 1 and pads of 0.  Another reader
    may refuse the file, or assume something else.

        <data strides="2,2" dilations="1,1" pads_end="1,1"/>
    """
    for type_name, indices in context.by_type.items():
        if context.graph.bare and type_name in ("Parameter", "Result"):
            continue  # not in the file
        operation = type(context.graph.layers[indices[0]].operation)
        if not any(s.required and s.has_default for s in attributes_of(operation)):
            continue
        for group in context.alike(type_name):
            for index in group:
                reports = list(_left_out(index, context.graph.layers[index], context))
                yield from reports
                if not reports:
                    break  # the others differ only in name and id


def _left_out(index: int, layer: Layer, context: LintContext) -> Iterator[Finding]:
    """Report attributes that a layer lacks and its document requires."""
    if not layer.operation.implemented:
        return
    # Readers treat an empty list as an absent one.
    written = {name for name, value in layer.attributes if value.strip()}
    empty = {name for name, value in layer.attributes if not value.strip()}
    for spec in attributes_of(type(layer.operation)):
        if not spec.required or not spec.has_default or spec.name in written:
            continue
        if spec.name in empty and not spec.kind.per_axis:
            continue
        default = DEFAULTS.get(spec.name)
        fix = None
        if default is not None and index not in context.unfit:
            shape = context.inputs(index)[0].shape
            if shape is not None:
                value = ",".join([default] * (len(shape) - 2))
                fix = attribute_fix(context, index, spec.name, value)
        yield Finding(
            f"attribute {spec.name!r} is required by the document of {layer.type}"
            + (f"; readers put {default}" if default else ""),
            GraphLocation(layer=index, attribute=spec.name),
            expected=spec.kind.allowed,
            fix=fix,
        )


def has_integers(found: Finding) -> bool:
    """Whether integers were found where integers of another range are expected."""
    texts = [text.strip().removeprefix("-") for text in str(found.actual).split(",")]
    return _wants_integers(found) and all(text.isascii() and text.isdigit() for text in texts)


def has_numbers(found: Finding) -> bool:
    """Whether numbers were found where integers are expected."""
    texts = str(found.actual).split(",")
    return _wants_integers(found) and all(map(_is_number, texts))


def _wants_integers(found: Finding) -> bool:
    return isinstance(found.expected, Allowed) and found.expected.form is Form.INTEGER


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_integers(text: str) -> str | None:
    """Write integral floats as integers, keeping the spaces; None if one has a fraction."""
    parts = re.split(r"(\s*,\s*)", text)
    for i in range(0, len(parts), 2):
        if not _is_number(parts[i]) or not (value := float(parts[i])).is_integer():
            return None
        parts[i] = parts[i].strip() if parts[i].strip().lstrip("-").isdigit() else str(int(value))
    return "".join(parts)


def _as_openvino_reads(text: str) -> str | None:
    """Write the integers that OpenVINO's reader finds: the digits up to another character.

    None: it refuses an element.
    """
    parts = re.split(r"(\s*,\s*)", text)
    for i in range(0, len(parts), 2):
        digits = re.match(r"\s*(-?[0-9]+)", parts[i])
        if digits is None:
            return None
        parts[i] = digits[1]
    return "".join(parts)


def is_auto_pad(found: Finding) -> bool:
    """Whether the attribute is auto_pad."""
    return found.part.attribute == "auto_pad"


@rule(
    "IR308",
    "auto-pad-refused",
    WARNING,
    types=DECONVOLUTION,
    fix="writes the word that means the same",
)
def spelling_of_auto_pad(index: int, layer: Layer, context: LintContext) -> Iterator[Finding]:
    """OpenVINO's reader refuses the spelling of auto_pad.

    The documents give None as the default, but OpenVINO reads neither that word nor spaces
    around a word.

        <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="None"/>
    """
    if not layer.operation.implemented:
        return
    written = dict(layer.attributes).get("auto_pad")
    if written is None or written.lower() in READ_BY_OPENVINO:
        return
    word = written.strip().lower()
    meant = "explicit" if word in ("none", "") else word
    location = GraphLocation(layer=index, attribute="auto_pad")
    known = ", ".join(READ_BY_OPENVINO)
    yield Finding(
        f"auto_pad {written!r} is refused by OpenVINO's reader; it reads {known}",
        location,
        expected=meant,
        actual=written,
        fix=attribute_fix(context, index, "auto_pad", meant),
    )


@rule("IR309", "pads-ignored", WARNING, types=ANY_DECONVOLUTION)
def pads_beside_auto_pad(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """Pads are given, but auto_pad makes them void.

    Pads have an effect only with auto_pad explicit.  Either they or auto_pad is a mistake.

        <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="valid"/>
    """
    if operation.auto_pad is not PadMode.EXPLICIT:
        for name, values in _pads(operation):
            yield Finding(
                f"{name} is ignored: auto_pad is {operation.auto_pad.value}",
                GraphLocation(layer=index, attribute=name),
                actual=values,
            )


@rule(
    "IR310",
    "pads-ignored-with-output-shape",
    INFO,
    fails=output_shape(),
    weights="ones 888, i64 9 11",
    types=DECONVOLUTION,
)
def pads_beside_output_shape(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """Pads are given together with an output_shape input.

    The documents ignore them then, but OpenVINO's CPU plugin applies them.  That is why
    OpenVINO itself writes such files.
    """
    if len(layer.inputs) > 2 and operation.auto_pad is PadMode.EXPLICIT:
        for name, values in _pads(operation):
            yield Finding(
                f"{name} is ignored by the documents, since output_shape is given; "
                "OpenVINO applies it",
                GraphLocation(layer=index, attribute=name),
                actual=values,
            )


def _pads(operation: Deconvolution) -> Iterator[tuple[str, str]]:
    """Iterate over the names and values of the pads that are not all 0."""
    for name in ("pads_begin", "pads_end"):
        values = getattr(operation, name)
        if values and any(values):
            yield name, ",".join(map(str, values))


@rule("IR311", "output-padding-too-large", INFO, types=ANY_DECONVOLUTION)
def large_output_padding(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """output_padding is not smaller than both stride and dilation allow.

    It selects one of the output extents that the same input extent can come from, and
    there are as many as the stride.  From max(stride, dilation) on it adds elements that
    no input reaches; PyTorch and ONNX refuse it.

        <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1" output_padding="2,0"/>
    """
    values = operation.output_padding or ()
    strides = operation.strides or (1,) * len(values)
    dilations = operation.dilations or (1,) * len(values)
    # oneDNN Graph files have more elements than axes: zip stops after the axes.
    for axis, (value, stride, dilation) in enumerate(zip(values, strides, dilations, strict=False)):
        bound = max(stride, dilation)
        if value >= bound:
            yield Finding(
                f"output_padding {value} on spatial axis {axis} must be smaller than "
                f"max(stride, dilation) = max({stride}, {dilation}) = {bound}",
                GraphLocation(layer=index, attribute="output_padding"),
                expected=f"< {bound}",
                actual=value,
            )
            return


@rule("IR313", "outputs-without-input", INFO, types=ANY_DECONVOLUTION)
def unreached_outputs(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """Some outputs of a transposed convolution get no input.

    The stride is larger than the effective kernel, or stride and dilation have a common
    divisor: outputs at regular intervals are 0, or the bias alone, which shows as a grid.

        <data strides="2,2" dilations="2,1" pads_begin="1,1" pads_end="1,1"/>
    """
    for axis, attributes, extent in kernel_axes(operation, context.inputs(index)):
        if extent < 1:
            continue
        stride, dilation = attributes.stride, attributes.dilation
        *_, unreached = interior_taps(attributes, extent)
        if unreached:
            yield Finding(
                f"{unreached} of {stride} outputs on spatial axis {axis} get no input: "
                f"stride {stride}, kernel {extent}, dilation {dilation}",
                GraphLocation(layer=index, attribute="strides"),
                actual=unreached,
            )


@rule("IR314", "mask-ignored", WARNING, types=("ScaledDotProductAttention",))
def mask_beside_causal(
    index: int, layer: Layer, operation: ScaledDotProductAttention, context: LintContext
) -> Iterator[Finding]:
    """An attention has a mask, but causal="true" makes it void.

    ScaledDotProductAttention-13: the input is ignored then.  Either it or the attribute is a
    mistake.  A constant with one element, which only fills the place before the scale,
    is not reported.

        <layer id="7" name="attention" type="ScaledDotProductAttention" version="opset13">
            <data causal="true"/>
        </layer>
        <edge from-layer="5" from-port="1" to-layer="7" to-port="0"/>
        <edge from-layer="5" from-port="1" to-layer="7" to-port="1"/>
        <edge from-layer="5" from-port="1" to-layer="7" to-port="2"/>
        <edge from-layer="3" from-port="0" to-layer="7" to-port="3"/>
        <edge from-layer="7" from-port="4" to-layer="6" to-port="0"/>
    """
    inputs = context.inputs(index)
    if not operation.causal or len(inputs) < 4:
        return
    shape = inputs[3].shape
    found = constant_before(context, index, 3)
    if found is None or shape is None or any(dim != 1 for dim in shape):
        yield Finding(
            f"attention_mask {format_shape(shape)} is ignored: causal is true",
            GraphLocation(layer=index, attribute="causal"),
            expected="false, or no mask",
            actual="true",
        )


@rule("IR312", "attribute-refused-by-openvino", ERROR, when="is_openvino_model")
def refused_by_openvino(context: LintContext) -> Iterator[Finding]:
    """OpenVINO's reader refuses the value of an attribute, or its absence.

    Words may be in upper or lower case, but have no spaces around them; element types are
    those of the opsets, such as f32, and not FP32.  This reader accepts both.

        <layer id="3">
            <data element_type="FP32" shape="1,6,1,1" offset="864" size="24"/>
        </layer>
    """
    from deconv_ir.linter.refusals import refused_attributes, unmatched_variables

    if "Assign" in context.by_type and not context.is_body:
        yield from unmatched_variables(context.graph.layers)
    yield from check_once(
        enumerate(context.graph.layers),
        lambda layer: (id(layer.operation), id(layer.attributes)),  # layers share equal ones
        refused_attributes,
    )


@rule("IR301", "attribute-missing", ERROR, takes="attribute-missing")
def attribute_missing() -> None:
    """A required attribute without a default is missing.

    Neither the document nor OpenVINO's reader has a default for it.

        <layer id="1">
            <data shape="4,6,3,3" offset="0" size="864"/>
        </layer>
    """


@rule("IR303", "attribute-out-of-range", ERROR, takes="attribute-value", claims=has_integers)
def attribute_out_of_range() -> None:
    """A number is outside the range of its attribute.

    Strides and dilations are positive; pads and output_padding are not negative.
    OpenVINO's reader accepts some of these values and fails when the model runs.

        <data strides="0,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
    """


@rule(
    "IR304",
    "float-in-integer-list",
    ERROR,
    takes="attribute-value",
    fix="writes 2.0 as 2, and leaves other fractions to you",
    claims=has_numbers,
)
def written_as_integers(found: Finding, context: LintContext) -> Finding:
    """A list of integers contains floats.

    OpenVINO's reader silently truncates them: ``2.7`` becomes 2, and so does ``2e2``, whose fix is
    left to you.

        <data strides="2.0,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
    """
    layer, name = found.part.layer, found.part.attribute
    if layer is not None and name is not None:
        attributes = dict(context.graph.layers[layer].attributes)
        text = attributes.get(name, "")
        integers, read = _as_integers(text), _as_openvino_reads(text)
        span = context.locator.span(found.part)
        if integers is not None and read in (integers, None):
            return found._replace(fix=Fix(((*span, integers),), safe=True))
        if read is not None and any(mark in text for mark in "eE_"):
            found = found._replace(message=f"{found.message}; OpenVINO's reader takes it as {read}")
        if integers is not None:
            fixes = [Fix(((*span, t),), title=f'{name}="{t}"') for t in (integers, str(read))]
            return found._replace(fix=fixes[0]._replace(alternatives=(fixes[1],)))
    return found


@rule(
    "IR305",
    "unknown-auto-pad",
    ERROR,
    takes="attribute-value",
    fix="writes NOTSET as explicit",
    claims=is_auto_pad,
)
def notset_as_explicit(found: Finding, context: LintContext) -> Finding:
    """auto_pad has an unknown value.

    It is explicit, same_upper, same_lower or valid.  NOTSET is ONNX's word for explicit;
    SAME does not say at which side an odd element is padded.

        <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="NOTSET"/>
    """
    layer = found.part.layer
    if layer is None or str(found.actual).strip().upper() != "NOTSET":
        return found
    return found._replace(fix=attribute_fix(context, layer, "auto_pad", "explicit"))


@rule("IR306", "invalid-attribute-value", ERROR, takes="attribute-value")
def invalid_attribute_value() -> None:
    """The value of an attribute is invalid.

    It has the wrong form, or is not one of the allowed words.

        <layer id="4">
            <data auto_broadcast="nmpy"/>
        </layer>
    """


@rule("IR307", "wrong-list-length", ERROR, takes="attribute-length")
def wrong_list_length() -> None:
    """A list does not have one element for each spatial axis.

    Data of rank 4 has two spatial axes, so strides, dilations, pads and output_padding
    have two elements each.

        <data strides="2,2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
    """


@rule(
    "IR315",
    "window-does-not-fit",
    ERROR,
    types=WINDOWS,
)
def window_does_not_fit(
    index: int, layer: Layer, operation: Operation, context: LintContext
) -> Iterator[Finding]:
    """A window fits at no size of the data, or lies outside of it.

    OpenVINO compiles no convolution with negative pads, and fails at every size if the effective
    kernel is larger than the largest padded extent.  An AvgPool that leaves pads out of its mean
    must not have a window in the pads alone.

        <layer id="7" name="pool" type="AvgPool" version="opset1">
            <data kernel="2,2" strides="1,1" pads_begin="2,2" pads_end="0,0" exclude-pad="true"/>
        </layer>
        <edge from-layer="5" from-port="1" to-layer="7" to-port="0"/>
        <edge from-layer="7" from-port="1" to-layer="6" to-port="0"/>
    """
    from deconv_ir.linter.windows import window_problem

    # oneDNN Graph has other layouts, and oneDNN other limits.
    has_opsets = context.parsed.has_opsets
    found = window_problem(index, operation, context.inputs(index)) if has_opsets else None
    if found is not None:
        yield found
