"""Rules about valid networks that are rarely intended, above all decoders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.hints import Hint
from deconv_ir.ir.geometry import Interval, PadMode, effective_kernel, interior_taps
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.shapes import dim_text, format_shape
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.patterns import (
    MAX_STEPS,
    constant_before,
    kernel_axes,
    producer,
    real_elements,
)
from deconv_ir.linter.rule import ANY_DECONVOLUTION, DECONVOLUTION, INFO, WARNING, rule
from deconv_ir.linter.rules.fragments import fake_quantize, output_shape
from deconv_ir.ops.convolution.dims import OUTPUT_CHANNEL_AXES

if TYPE_CHECKING:
    from deconv_ir.ir.operation import Operation
    from deconv_ir.ops.convolution.deconvolution import Deconvolution

SAME: Final = (PadMode.SAME_UPPER, PadMode.SAME_LOWER)
WITH_CONSTANT: Final = (
    *("Add", "Subtract", "Multiply", "Divide"),
    *("Maximum", "Minimum", "Power", "SquaredDifference"),
)
"""Elementwise types, one of whose inputs may be a bias or a scale for each channel."""
RANGES: Final = (("input_low", "input_high"), ("output_low", "output_high"))


@rule("IR801", "uneven-overlap", INFO, types=ANY_DECONVOLUTION)
def uneven_overlap(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """The kernel of a transposed convolution is not a multiple of its stride.

    Outputs sum more kernel elements at some positions than at others, in a fixed pattern,
    which often shows as a checkerboard in images.

        <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
    """
    found = []
    for axis, attributes, extent in kernel_axes(operation, context.inputs(index)):
        if extent < 1:
            continue
        fewest, most, unreached = interior_taps(attributes, extent)
        if not unreached and fewest < most:
            found.append(
                f"spatial axis {axis}: kernel {extent}, stride {attributes.stride}, "
                f"{fewest} or {most} kernel elements an output"
            )
    if found:
        yield Finding(
            f"the kernel is not a multiple of the stride: {'; '.join(found)}",
            GraphLocation(layer=index, attribute="strides"),
        )


@rule("IR802", "same-without-output-shape", INFO, types=DECONVOLUTION)
def same_without_output_shape(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """auto_pad is same_upper or same_lower, but there is no output_shape input.

    The documents and OpenVINO set all pads to 0 then, so the output is larger than stride
    times the input.  Other frameworks make it exactly that large.

        <data strides="2,2" dilations="1,1" auto_pad="same_upper"/>
    """
    inputs = context.inputs(index)
    if operation.auto_pad not in SAME or len(inputs) > 2:
        return
    for axis, attributes, extent in kernel_axes(operation, inputs):
        reach = effective_kernel(extent, attributes.dilation) + attributes.output_padding
        surplus = reach - attributes.stride
        if surplus:
            extent_text = f"stride*X {'+' if surplus > 0 else '-'} {abs(surplus)}"
            yield Finding(
                f"without output_shape, {operation.auto_pad.value} means pads of 0: spatial axis "
                f"{axis} gets {extent_text} outputs, not stride*X",
                GraphLocation(layer=index, attribute="auto_pad"),
                expected="explicit pads, or an output_shape input",
                actual=operation.auto_pad.value,
            )
            return


@rule("IR803", "wrong-quantization-axis", WARNING, weights="ones 904", when="computed_filters")
def wrong_quantization_axis(context: LintContext) -> Iterator[Finding]:
    """Scales of a convolution's filter lie along its input channels.

    Axis 0 of the filter of ConvolutionBackpropData is the input channels; in a Convolution it
    is the output channels, and oneDNN has a format for each order.  A tool that quantizes all
    alike takes the wrong axis, which costs accuracy, and integer kernels cannot use such scales.

        <layer id="7" name="scale" type="Const" version="opset1">
            <data element_type="f32" shape="4,1,1,1" offset="888" size="16"/>
        </layer>
        <layer id="8" name="quantized" type="FakeQuantize" version="opset1">
            <data levels="255"/>
        </layer>
        <edge from-layer="1" from-port="0" to-layer="8" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="1"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="2"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="3"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="4"/>
        <edge from-layer="8" from-port="5" to-layer="2" to-port="1"/>
    """
    from deconv_ir.linter.filters import OUT, wrong_scales

    layers = context.graph.layers
    seen = set()
    for index in context.computed_filters:
        found = wrong_scales(context, index)
        if found is None or found.layer in seen:
            continue
        seen.add(found.layer)
        axes = [axis for axis, role in enumerate(found.roles) if OUT in role]
        wanted = tuple(dim if axis in axes else 1 for axis, dim in enumerate(found.data or ()))
        both = " and output channels" if OUT in found.along else ""
        yield Finding(
            f"{layers[found.layer].type} scales the filter of {layers[index].name!r}, "
            f"{format_shape(found.data)}, along its input channels{both}: "
            f"{format_shape(found.shape)}; output channels are axis {axes[-1] if axes else '?'}",
            GraphLocation(layer=found.layer),
            expected=format_shape(wanted),
            actual=format_shape(found.shape),
        )


def reversed_ranges(context: LintContext, which: int) -> Iterator[Finding]:
    """Compare the bounds of the input ranges (0) or output ranges (1)."""
    low_name, high_name = RANGES[which]
    port = 1 + 2 * which
    for index, _ in context.valid_layers("FakeQuantize"):
        low, high = (real_elements(context, index, port + side) for side in (0, 1))
        if not low or not high or (len(low) != len(high) and 1 not in (len(low), len(high))):
            continue
        count = max(len(low), len(high))
        pairs = zip(low * (count // len(low)), high * (count // len(high)), strict=True)
        wrong = [pair for pair in pairs if pair[0] > pair[1]]
        if wrong:
            a, b = wrong[0]
            more = f" in {len(wrong)} of {count} channels" if count > 1 else ""
            yield Finding(
                f"{low_name} is larger than {high_name}{more}: {a:g} > {b:g}",
                GraphLocation(layer=index, side="input", port=port),
                expected=f"<= {b:g}",
                actual=f"{a:g}",
            )


@rule(
    "IR804",
    "input-range-reversed",
    WARNING,
    fails=fake_quantize(7, 8, 8, 7),
    weights="ones 888, f32 5 1",
    types=("FakeQuantize",),
)
def input_range_reversed(context: LintContext) -> Iterator[Finding]:
    """The lower bound of a FakeQuantize's inputs is larger than the upper one.

    Every input is outside of the range, so the output is one of two numbers.
    """
    yield from reversed_ranges(context, 0)


@rule(
    "IR805",
    "output-range-reversed",
    INFO,
    fails=fake_quantize(8, 7, 7, 8),
    weights="ones 888, f32 5 1",
    types=("FakeQuantize",),
)
def output_range_reversed(context: LintContext) -> Iterator[Finding]:
    """The lower bound of a FakeQuantize's outputs is larger than the upper one.

    Larger inputs give smaller outputs.  Multiplying the range by a negative number, as
    optimizers do, has this effect too.
    """
    yield from reversed_ranges(context, 1)


@rule("IR806", "bias-along-width", WARNING, types=(*WITH_CONSTANT, "FakeQuantize"))
def bias_along_width(context: LintContext) -> Iterator[Finding]:
    """A constant with an element for each channel is added or multiplied along another axis.

    A constant of shape [C] or [1,1,1,C] is aligned with the last axis, not with the channels.
    Where the extents happen to be equal, the network runs, and every column gets another bias,
    scale or range.

        <data strides="2,1" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
        <output>
            <port id="2" precision="FP32"><dim>1</dim><dim>6</dim><dim>9</dim><dim>6</dim></port>
        </output>
        <layer id="3">
            <data element_type="f32" shape="6" offset="864" size="24"/>
            <output>
                <port id="0" precision="FP32"><dim>6</dim></port>
            </output>
        </layer>
    """
    sources = context.topology.sources
    for index, layer in context.valid_layers(*WITH_CONSTANT, "FakeQuantize"):
        for port, source in enumerate(sources[index]):
            data = 0 if layer.type == "FakeQuantize" else 1 - port
            if source is None or port == data:
                continue
            taken = context.outputs(source[0])[source[1]].shape
            places = [] if taken is None else [axis for axis, n in enumerate(taken) if n != 1]
            if taken is None or len(places) != 1 or not constant_before(context, index, port):
                continue
            (place,) = places
            before = _scaled_convolution(context, index, data)
            shape = None if before is None else context.outputs(before)[0].shape
            if shape is None or len(shape) < 3 or len(taken) > len(shape):
                continue
            axis = len(shape) - len(taken) + place
            if axis > 1 and taken[place] == shape[1] == shape[axis]:
                wanted = (1, shape[1], *[1] * (len(shape) - 2))
                yield Finding(
                    f"{layer.type} takes a constant {format_shape(taken)} along axis {axis} of "
                    f"{format_shape(shape)}, though it has an element for each channel",
                    GraphLocation(layer=index, side="input", port=port),
                    expected=format_shape(wanted),
                    actual=format_shape(taken),
                )


def _scaled_convolution(context: LintContext, index: int, port: int) -> int | None:
    """Return the convolution behind an input, with constants added or multiplied in between."""
    layers = context.graph.layers
    at = producer(context, index, port)
    for _ in range(MAX_STEPS):
        if at is None or layers[at].type in OUTPUT_CHANNEL_AXES:
            return at
        if layers[at].type not in WITH_CONSTANT or len(layers[at].inputs) != 2:
            return None
        data = [i for i in (0, 1) if constant_before(context, at, i) is None]
        at = producer(context, at, data[0]) if len(data) == 1 else None
    return None


@rule(
    "IR807",
    "constant-output-shape",
    INFO,
    fails="""
        <layer id="0">
            <data shape="1,4,?,6" element_type="f32"/>
        </layer>
        """
    + output_shape(),
    weights="ones 888, i64 9 11",
    types=DECONVOLUTION,
)
def constant_output_shape(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """output_shape is a constant, but the spatial dims of the data are dynamic.

    Outputs have the same extents regardless of the size of the data: they are cropped, or filled
    up with zeros.  Models that were traced with one size have such constants.
    """
    inputs = context.inputs(index)
    requested = inputs[2].value if len(inputs) > 2 else None
    if requested is None or not all(isinstance(dim, int) for dim in requested):
        return
    spatial = (inputs[0].shape or ())[2:]
    for axis, (dim, wanted) in enumerate(zip(spatial, requested, strict=False)):
        if isinstance(dim, Interval):
            yield Finding(
                f"output_shape is always {wanted} on spatial axis {axis}, but the data has "
                f"extent {dim_text(dim)}",
                GraphLocation(layer=index, side="input", port=2),
                actual=wanted,
                hint=Hint.COMPUTE_FROM_SHAPE(),
            )
            return


@rule("IR808", "constant-batch", INFO, weights="ones 888, i64 1 4 5 6", types=("Reshape",))
def constant_batch(
    index: int, layer: Layer, operation: Operation, context: LintContext
) -> Iterator[Finding]:
    """A Reshape fixes the extent of an axis 0 that is dynamic in its data.

    Other batches than the one that the model was traced with fail, or are mixed with another
    axis.  A 0 in the target shape keeps the batch.

        <layer id="0">
            <data shape="?,4,5,6" element_type="f32"/>
        </layer>
        <layer id="7" name="shape" type="Const" version="opset1">
            <data element_type="i64" shape="4" offset="888" size="32"/>
        </layer>
        <layer id="8" name="reshape" type="Reshape" version="opset1">
            <data special_zero="true"/>
        </layer>
        <edge from-layer="0" from-port="0" to-layer="8" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="1"/>
        <edge from-layer="8" from-port="2" to-layer="2" to-port="0"/>
    """
    data, pattern = context.inputs(index)[:2]
    value = pattern.value
    if data.shape is None or len(data.shape) < 3 or not value or len(value) < 3:
        return
    first = value[0]
    if isinstance(data.shape[0], Interval) and isinstance(first, int) and first > 0:
        yield Finding(
            f"the target shape begins with {first}, but axis 0 of the data is dynamic: "
            f"{format_shape(data.shape)}",
            GraphLocation(layer=index, side="input", port=1),
            expected="0 or -1",
            actual=first,
        )


@rule(
    "IR810",
    "output-shape-crops-inputs",
    WARNING,
    fails="""
        <layer id="0">
            <data shape="1,4,10,12" element_type="f32"/>
            <output>
                <port id="0" precision="FP32" names="x">
                    <dim>1</dim> <dim>4</dim> <dim>10</dim> <dim>12</dim>
                </port>
            </output>
        </layer>
        """
    + output_shape(),
    weights="ones 888, i64 9 11",
    types=DECONVOLUTION,
)
def output_shape_crops_inputs(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """output_shape is so small that the output leaves out whole inputs at the border.

    The total padding reaches the effective kernel: the outputs of some rows are cropped completely.
    Mostly the data has grown, and the constant output_shape has stayed.
    """
    inputs = context.inputs(index)
    requested = inputs[2].value if len(inputs) > 2 else None
    spatial = (inputs[0].shape or ())[2:]
    if requested is None or len(requested) != len(spatial):
        return
    extra = operation.output_padding or ()
    for axis, attributes, kernel in kernel_axes(operation, inputs):
        extent, wanted = spatial[axis], requested[axis]
        if not isinstance(extent, int) or not isinstance(wanted, int) or extent < 2 or wanted < 1:
            continue
        effective = effective_kernel(kernel, attributes.dilation)
        natural = attributes.stride * (extent - 1) + effective
        natural += extra[axis] if axis < len(extra) else 0
        if natural - wanted >= effective:
            yield Finding(
                f"output_shape {wanted} on spatial axis {axis} crops {natural - wanted} of "
                f"{natural} rows, at least the effective kernel {effective}: inputs at the border "
                "have no effect",
                GraphLocation(layer=index, side="input", port=2),
                expected=f"> {natural - effective}",
                actual=wanted,
            )
            return
