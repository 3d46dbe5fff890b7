"""Rules about files that other software reads or runs differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.shapes import format_shape
from deconv_ir.linter.context import CONVOLUTIONS, LintContext
from deconv_ir.linter.rule import ANY_DECONVOLUTION, DECONVOLUTION, ERROR, INFO, WARNING, rule
from deconv_ir.linter.rules.fragments import output_shape, quantized_data

if TYPE_CHECKING:
    from deconv_ir.ops.convolution.deconvolution import Deconvolution


@rule(
    "IR602",
    "negative-pads",
    INFO,
    fails=output_shape(),
    weights="ones 888, i64 20 11",
    types=ANY_DECONVOLUTION,
)
def negative_pads(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """A requested output is larger than the inputs give.

    The total padding is negative then, and zeros are added around the output.  oneDNN
    refuses negative pads, and OpenVINO's CPU plugin adds all zeros at the end.
    """
    if layer.type in DECONVOLUTION and len(layer.inputs) < 3:
        return  # its pads are attributes, which are not negative
    geometry = operation.geometry(context.inputs(index), context.inference_context)
    for axis, found in enumerate(geometry or ()):
        if found.pad_begin < 0 or found.pad_end < 0:
            yield Finding(
                f"pads of spatial axis {axis} are negative: pad_begin {found.pad_begin}, "
                f"pad_end {found.pad_end}; {found.formula}",
                GraphLocation(layer=index),
                expected=">= 0",
                actual=min(found.pad_begin, found.pad_end),
            )


@rule("IR603", "zero-extent", INFO, types=ANY_DECONVOLUTION)
def zero_extents(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """Data or output of a transposed convolution has no elements.

    For a spatial extent of 0, OpenVINO's CPU plugin returns uninitialised memory, and
    oneDNN refuses some of these shapes.

        <layer id="0">
            <data shape="1,4,0,6" element_type="f32"/>
            <output>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>4</dim> <dim>0</dim> <dim>6</dim>
                </port>
            </output>
        </layer>
        <data strides="2,2" dilations="1,1" pads_begin="0,1" pads_end="1,1"/>
    """
    infos = [*context.inputs(index)[:1], *context.outputs(index)[:1]]
    for side, info in zip(("input", "output"), infos, strict=False):
        for axis, dim in enumerate(info.shape or ()):
            if dim == 0:
                yield Finding(
                    f"axis {axis} of the {side} has extent 0",
                    GraphLocation(layer=index, side=side, port=0, axis=axis),
                    actual=0,
                )


@rule("IR604", "rank-above-5", INFO, types=ANY_DECONVOLUTION)
def high_ranks(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """A transposed convolution has more than three spatial axes.

    The newer document allows rank 3, 4 and 5, and so do OpenVINO and oneDNN.

        <layer id="0">
            <data shape="1,4,5,6,1,1" element_type="f32"/>
            <output><port id="0" precision="FP32"/></output>
        </layer>
        <layer id="1">
            <data element_type="f32" shape="4,6,3,3,1,1" offset="0" size="864"/>
            <output><port id="0" precision="FP32"/></output>
        </layer>
        <data strides="2,2,1,1" dilations="1,1,1,1" pads_begin="1,1,0,0" pads_end="1,1,0,0"/>
    """
    shape = context.inputs(index)[0].shape
    if shape is not None and len(shape) > 5:
        yield Finding(
            f"data has rank {len(shape)}; OpenVINO and oneDNN take 3, 4 and 5",
            GraphLocation(layer=index, side="input", port=0),
            expected="3, 4 or 5",
            actual=len(shape),
        )


@rule("IR605", "pad-before-strided", INFO, weights="ones 888, i64 0 0 1 1", types=DECONVOLUTION)
def pads_before_strides(context: LintContext) -> Iterator[Finding]:
    """A transposed convolution with a stride follows a Pad.

    OpenVINO's CPU plugin may fuse the two, and applies the amounts of the Pad as if the
    stride were 1: the output has a wrong shape and wrong numbers.  Pad with a layer that
    is not fused, or crop the output instead.

        <layer id="7" name="pads" type="Const" version="opset1">
            <data element_type="i64" shape="4" offset="888" size="32"/>
        </layer>
        <layer id="8" name="pad" type="Pad" version="opset1">
            <data pad_mode="constant"/>
        </layer>
        <edge from-layer="0" from-port="0" to-layer="8" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="1"/>
        <edge from-layer="7" from-port="0" to-layer="8" to-port="2"/>
        <edge from-layer="8" from-port="3" to-layer="2" to-port="0"/>
    """
    layers, sources = context.graph.layers, context.topology.sources
    for index, layer in context.layers(*DECONVOLUTION):
        source = sources[index][0] if sources[index] else None
        strides = getattr(layer.operation, "strides", None) or ()
        if source is None or layers[source[0]].type != "Pad" or max(strides, default=1) < 2:
            continue
        pad = layers[source[0]]
        yield Finding(
            f"strides are {','.join(map(str, strides))} and the Pad {pad.name!r} in line "
            f"{pad.line} precedes it: OpenVINO's CPU plugin may fuse them wrongly",
            GraphLocation(layer=index, attribute="strides"),
        )


@rule(
    "IR606",
    "odd-total-padding",
    INFO,
    fails='<data strides="2,2" dilations="1,1" auto_pad="same_lower"/>' + output_shape(),
    weights="ones 888, i64 10 12",
    types=ANY_DECONVOLUTION,
)
def odd_total_padding(
    index: int, layer: Layer, operation: Deconvolution, context: LintContext
) -> Iterator[Finding]:
    """The total padding is odd, and ONNX pads the odd element at the other side.

    With same_upper, OpenVINO and oneDNN's ConvolutionBackwardData remove one element more
    at the start, ONNX and oneDNN's ConvTranspose at the end.  An importer that keeps the
    word shifts the output by one element.
    """
    if operation.auto_pad not in (PadMode.SAME_UPPER, PadMode.SAME_LOWER):
        return
    geometry = operation.geometry(context.inputs(index), context.inference_context)
    for axis, found in enumerate(geometry or ()):
        if (found.pad_begin + found.pad_end) % 2:
            yield Finding(
                f"total padding of spatial axis {axis} is odd: pad_begin {found.pad_begin}, "
                f"pad_end {found.pad_end}; ONNX has them the other way round",
                GraphLocation(layer=index, attribute="auto_pad"),
                actual=found.pad_begin + found.pad_end,
            )


@rule("IR607", "bare-layer-refused", INFO, takes="openvino-form-of-bare-layer", when="is_bare")
def refused_bare_layer(context: LintContext) -> Iterator[Finding]:
    """OpenVINO's reader would refuse a single layer, even within a network.

    The documents print layers without version and ports without precision; as a part of a
    network they need both.

        <layer id="9" name="up" type="ReLU">
            <input>
                <port id="0"><dim>1</dim><dim>4</dim></port>
            </input>
            <output>
                <port id="1"><dim>1</dim><dim>4</dim></port>
            </output>
        </layer>
    """
    from deconv_ir.linter.refusals import refused_attributes, refused_form

    if context.graph.bare:
        for index, layer in enumerate(context.graph.layers):
            if layer.type not in ("Parameter", "Result"):
                yield from refused_form(index, layer)
                yield from refused_attributes(index, layer)


@rule(
    "IR608",
    "f32-in-openvino",
    INFO,
    fails=quantized_data(),
    weights="ones 888, f32 0 1",
    types=CONVOLUTIONS,
    when="int8_layers",
)
def f32_in_openvino(context: LintContext) -> Iterator[Finding]:
    """OpenVINO's CPU plugin computes a quantised convolution in f32.

    The message names the first condition that does not hold.  Data and weights must come from a
    FakeQuantize, or from integers that are converted and scaled, and keep their levels on the
    way; scales of the data must not differ within what a layer sums, scales of weights only along
    the output channels; weights are constants of i8 without a zero point; a deconvolution has one
    group, data without a zero point, a kernel as large as its stride and a last stride of 3 or
    less.  docs/int8.md has all conditions with their sources.  What this program computes in
    integers is another question: `deconv-run --explain-plan` answers it.
    """
    layers = context.int8_layers
    assert layers is not None
    for index, layer in enumerate(context.graph.layers):
        if layer.type not in CONVOLUTIONS:
            continue
        answer = layers.answer(index)
        if answer is not None and answer.integers is False:
            yield Finding(
                f"OpenVINO's CPU plugin computes it in f32: {answer.reason}",
                GraphLocation(layer=index),
            )


@rule(
    "IR609",
    "ranges-misread",
    WARNING,
    weights="ones 888, f32 -1 1 2 3 4 1",
    types=("FakeQuantize",),
    when="int8_layers",
)
def ranges_misread(context: LintContext) -> Iterator[Finding]:
    """The two output ranges of a FakeQuantize have different numbers of elements.

    Where a convolution behind it is computed in integers, OpenVINO's CPU plugin takes the first
    numbers for all channels, or reads beyond the shorter ones: results are wrong.  Repeat the
    numbers, so that output_low and output_high have one shape.

        <layer id="7" name="low" type="Const" version="opset1">
            <data element_type="f32" shape="1,1,1,1" offset="888" size="4"/>
        </layer>
        <layer id="8" name="high" type="Const" version="opset1">
            <data element_type="f32" shape="1,4,1,1" offset="892" size="16"/>
        </layer>
        <layer id="9" name="quantized" type="FakeQuantize"
         version="opset1"><data levels="256"/></layer>
        <edge from-layer="0" from-port="0" to-layer="9" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="9" to-port="1"/>
        <edge from-layer="8" from-port="0" to-layer="9" to-port="2"/>
        <edge from-layer="7" from-port="0" to-layer="9" to-port="3"/>
        <edge from-layer="8" from-port="0" to-layer="9" to-port="4"/>
        <edge from-layer="9" from-port="5" to-layer="2" to-port="0"/>
        <layer id="11" name="most" type="Const" version="opset1">
            <data element_type="f32" shape="1,1,1,1" offset="908" size="4"/>
        </layer>
        <layer id="12" name="levels" type="FakeQuantize"
         version="opset1"><data levels="255"/></layer>
        <edge from-layer="1" from-port="0" to-layer="12" to-port="0"/>
        <edge from-layer="7" from-port="0" to-layer="12" to-port="1"/>
        <edge from-layer="11" from-port="0" to-layer="12" to-port="2"/>
        <edge from-layer="7" from-port="0" to-layer="12" to-port="3"/>
        <edge from-layer="11" from-port="0" to-layer="12" to-port="4"/>
        <edge from-layer="12" from-port="5" to-layer="2" to-port="1"/>
    """
    layers = context.int8_layers
    assert layers is not None
    for index, user in layers.misread_ranges().items():
        low, high = (context.inputs(index)[port].shape for port in (3, 4))
        name = context.graph.layers[user].name
        yield Finding(
            f"output_low has shape {format_shape(low)} and output_high {format_shape(high)}: "
            f"OpenVINO's CPU plugin misreads them for {name!r}",
            GraphLocation(layer=index, side="input", port=3),
        )


def _target_findings(context: LintContext, *, blocks: bool) -> Iterator[Finding]:
    from deconv_ir.linter.targets.reasons import reasons
    from deconv_ir.linter.targets.verdict import shown_releases

    releases = sorted({release for target in context.targets for release in target.releases})
    for reason in reasons(context, releases):
        if reason.blocks is blocks:
            where = GraphLocation(layer=reason.layer)
            yield Finding(
                f"OpenVINO {shown_releases(reason.releases)}: {reason.message}",
                context.parsed.root if reason.layer is None else where,
            )


@rule(
    "IR611", "target-refuses", ERROR, when="targets", target="openvino=2023.0", weights="ones 888"
)
def target_refuses(context: LintContext) -> Iterator[Finding]:
    """A release of OpenVINO that is a target cannot read the file, or cannot compile it.

    The release has no such IR version, opset, operation, element type or attribute value, or its
    CPU plugin refused a small network with it.  docs/targets.md has the tables and their sources.

        <layer id="5" name="act" type="Identity" version="opset16">
            <input>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>6</dim> <dim>9</dim> <dim>11</dim>
                </port>
            </input>
            <output>
                <port id="1" precision="FP32">
                    <dim>1</dim> <dim>6</dim> <dim>9</dim> <dim>11</dim>
                </port>
            </output>
        </layer>
    """
    yield from _target_findings(context, blocks=True)


@rule(
    "IR612", "target-not-known", INFO, when="targets", target="openvino=2022.3", weights="ones 888"
)
def target_not_known(context: LintContext) -> Iterator[Finding]:
    """The tables do not tell whether a target reads and compiles the file.

    It has a layer of an extension or a form of a layer that was not tried with OpenVINO, or the
    target is a release that was not measured.  ``--verify`` asks the installed OpenVINO.

        <layer id="5" name="act" type="ReLU" version="opset1"/>
    """
    yield from _target_findings(context, blocks=False)


@rule(
    "IR601",
    "profiles-differ",
    INFO,
    fails=output_shape(),
    weights="ones 888, i64 10 12",
    takes="profiles-differ",
)
def profiles_differ() -> None:
    """The documents and a runtime compute different pads, divisors, elements or bits.

    With an output_shape input the documents split the total padding; OpenVINO's CPU plugin keeps
    the pads attributes, or never uses negative pads.  In an AvgPool whose padding counts, the
    plugin divides a last window that extends beyond the padding by its whole extent.  In a
    MaxPool, a window of padding alone gives -inf by the documents, and the lowest finite number
    in the plugin.  Interpolate of nearest elements rounds coordinates to f32 in the plugin, and
    may take the neighbour of the element of the exact coordinate.  Of a BinaryConvolution's
    filter it reads each byte from the lowest bit on, as converters wrote them, and pads of
    pad_value 0 count nothing.  oneDNN's library never pads a total less than 0 for SAME_UPPER and
    SAME_LOWER, puts an odd element of ConvolutionBackwardData's padding on the other side, and
    does not count the pads of an AvgPool that rounds up.  The same file gives different results,
    and the semantics option selects one.
    """
