"""IR506 unused-weights."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.constants import gaps
from deconv_ir.linter.rule import WARNING, Report, Rule
from deconv_ir.linter.subject import Subject


class UnusedWeights(Rule):
    """Bytes of the .bin are used by no constant.

    Either the .bin belongs to another .xml, or an offset is wrong, or the file is
    larger than it need be.

    Fails (.bin: zeros 24)::

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

    code = "IR506"
    name = "unused-weights"
    severity = WARNING
    when = "has_untidy_constants"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look for gaps between the ranges in the order of their offsets."""
        weights = subject.weights
        if weights is None:
            return
        if any(not layer.operation.implemented for layer in subject.graph.of_type("Const")):
            return  # a constant whose attributes can not be read may use them
        for start, end, index in gaps(subject, len(weights)):
            yield Report(
                f"bytes {start} to {end} of {weights.name} are used by no constant",
                subject.document.root if index is None else Place(layer=index, attribute="offset"),
                actual=end - start,
            )


RULE = UnusedWeights
