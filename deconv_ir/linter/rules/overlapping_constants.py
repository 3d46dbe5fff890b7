"""IR504 overlapping-constants."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.constants import overlaps, span_text
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class OverlappingConstants(Rule):
    """Two constants share bytes of the .bin, but not all of them.

    OpenVINO stores equal constants once, so that the same range twice is as it
    should be.  Ranges that overlap in part are a wrong offset.

    Fails (.bin: zeros 16)::

        <net name="n" version="11"><layers>
            <layer id="0" name="a" type="Const" version="opset1">
                <data element_type="f32" shape="2" offset="0" size="8"/>
                <output><port id="0" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="1" name="b" type="Const" version="opset1">
                <data element_type="f32" shape="2" offset="4" size="8"/>
                <output><port id="0" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="2" name="c" type="Add" version="opset1">
                <data auto_broadcast="numpy"/>
                <input>
                    <port id="0" precision="FP32"><dim>2</dim></port>
                    <port id="1" precision="FP32"><dim>2</dim></port>
                </input>
                <output><port id="2" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="3" name="r" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>2</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
            <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
        </edges></net>

    Passes (.bin: zeros 16)::

        <net name="n" version="11"><layers>
            <layer id="0" name="a" type="Const" version="opset1">
                <data element_type="f32" shape="2" offset="0" size="8"/>
                <output><port id="0" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="1" name="b" type="Const" version="opset1">
                <data element_type="f32" shape="2" offset="8" size="8"/>
                <output><port id="0" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="2" name="c" type="Add" version="opset1">
                <data auto_broadcast="numpy"/>
                <input>
                    <port id="0" precision="FP32"><dim>2</dim></port>
                    <port id="1" precision="FP32"><dim>2</dim></port>
                </input>
                <output><port id="2" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="3" name="r" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>2</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
            <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
        </edges></net>
    """

    code = "IR504"
    name = "overlapping-constants"
    severity = ERROR
    when = "has_untidy_constants"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Sweep over the ranges in the order of their offsets."""
        layers = subject.graph.layers
        for index, other in overlaps(subject):
            mine, its = layers[index].operation, layers[other].operation
            yield Report(
                f"bytes {span_text(mine)} overlap with those of {layers[other].name!r}, "
                f"{span_text(its)}, in line {layers[other].line}",
                Place(layer=index, attribute="offset"),
                related=other,
            )


RULE = OverlappingConstants
