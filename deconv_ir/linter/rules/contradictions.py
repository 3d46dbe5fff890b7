"""Rules about valid layers that other statements of the file contradict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.findings import Finding
from deconv_ir.ir.graph import Layer
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.rule import INFO, rule
from deconv_ir.linter.rules.fragments import quantized_filter

if TYPE_CHECKING:
    from deconv_ir.ir.operation import Operation


@rule("IR809", "unlike-siblings", INFO, when="uneven_types")
def unlike_siblings(context: LintContext) -> Iterator[Finding]:
    """One attribute differs from that of all other layers in the same place of repeated blocks.

    At least three layers of the same type, between the same layers, agree, and their value would
    fit here too; five layers if it is a measure, such as an epsilon.  Axes and single numbers that
    are constant inputs count as attributes.  A flipped boolean or another axis of a SoftMax leaves
    all shapes as they are, so nothing else in the file shows such a mistake.

        <layer id="7" name="a" type="SoftMax" version="opset8"><data axis="1"/></layer>
        <layer id="8" name="b" type="SoftMax" version="opset8"><data axis="1"/></layer>
        <layer id="9" name="c" type="SoftMax" version="opset8"><data axis="2"/></layer>
        <layer id="10" name="d" type="SoftMax" version="opset8"><data axis="1"/></layer>
        <layer id="11" name="all" type="Concat" version="opset1"><data axis="1"/></layer>
        <edge from-layer="5" from-port="1" to-layer="7" to-port="0"/>
        <edge from-layer="5" from-port="1" to-layer="8" to-port="0"/>
        <edge from-layer="5" from-port="1" to-layer="9" to-port="0"/>
        <edge from-layer="5" from-port="1" to-layer="10" to-port="0"/>
        <edge from-layer="7" from-port="1" to-layer="11" to-port="0"/>
        <edge from-layer="8" from-port="1" to-layer="11" to-port="1"/>
        <edge from-layer="9" from-port="1" to-layer="11" to-port="2"/>
        <edge from-layer="10" from-port="1" to-layer="11" to-port="3"/>
        <edge from-layer="11" from-port="4" to-layer="6" to-port="0"/>
    """
    from deconv_ir.linter.siblings import odd_ones

    yield from odd_ones(context)


@rule(
    "IR811",
    "detection-contradicted",
    INFO,
    weights="ones 888, i64 30 30, i64 3 3",
    types=(
        *("PriorBox", "PriorBoxClustered", "DetectionOutput"),
        *("NonMaxSuppression", "MatrixNms", "MulticlassNms", "NMSRotated"),
    ),
)
def detection_contradicted(
    index: int, layer: Layer, operation: Operation, context: LintContext
) -> Iterator[Finding]:
    """Names, values or other attributes contradict a layer that makes or selects boxes.

    Boxes and scores have the same rank, and often fit each other's input, as the two sizes of a
    PriorBox do.  Variances that differ between the first two and the last two numbers are those
    of centers and sizes, which code_type CORNER does not decode.  Thresholds beyond 1, counts of 0
    and a background beyond the classes leave no box, or all of them.

        <layer id="7" name="cells" type="Const" version="opset1">
            <data element_type="i64" shape="2" offset="888" size="16"/>
        </layer>
        <layer id="8" name="image" type="Const" version="opset1">
            <data element_type="i64" shape="2" offset="904" size="16"/>
        </layer>
        <layer id="9" name="priors" type="PriorBox" version="opset1">
            <data min_size="2" offset="0.5" variance="0.1,0.1,0.2,0.2"/>
        </layer>
        <edge from-layer="7" from-port="0" to-layer="9" to-port="0"/>
        <edge from-layer="8" from-port="0" to-layer="9" to-port="1"/>
        <edge from-layer="9" from-port="2" to-layer="6" to-port="0"/>
    """
    from deconv_ir.linter.detection import check_detection

    yield from check_detection(index, layer, context)


@rule(
    "IR812",
    "range-contradicted",
    INFO,
    fails=quantized_filter(),
    weights="ones 888, f32 -0.25 0.25",
    types=("FakeQuantize",),
)
def range_contradicted(context: LintContext) -> Iterator[Finding]:
    """The data, or the other ranges of the network, contradict the range of a FakeQuantize.

    The elements of a constant are outside of the range, or take few of its levels; or the range is
    the only one of the network whose outputs differ from its inputs, that leaves out 0, or that is
    16 times as wide or as narrow as all others in the same place of repeated blocks.
    """
    from deconv_ir.linter.ranges import odd_ranges

    yield from odd_ranges(context)


@rule("IR813", "name-contradicted", INFO, when="is_openvino_model")
def name_contradicted(context: LintContext) -> Iterator[Finding]:
    """The name of a layer, of its tensor or of its original layer says something else.

    Frameworks name layers after what they do, as in `softmax_dim1`, `upsample_2x`,
    `aten::upsample_nearest2d` and `/MaxPool`, and people do.  A changed type, axis or mode that
    fits leaves no other trace.

        <layer id="5" name="Sigmoid_1" type="ReLU" version="opset1">
            <input>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>6</dim> <dim>11</dim> <dim>13</dim>
                </port>
            </input>
            <output>
                <port id="1" precision="FP32" names="y">
                    <dim>1</dim> <dim>6</dim> <dim>11</dim> <dim>13</dim>
                </port>
            </output>
        </layer>
    """
    from deconv_ir.linter.names import contradicted_names

    yield from contradicted_names(context)
