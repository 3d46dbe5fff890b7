"""IR507 weights-not-finite."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.constants import count_not_finite, needed_bytes
from deconv_ir.linter.rule import WARNING, Report, Rule
from deconv_ir.linter.subject import Subject


class WeightsNotFinite(Rule):
    """A constant has NaN or infinite elements.

    One of them in a filter makes every output NaN.  Some masks hold infinities on
    purpose: ignore the rule for their layers.  Reads all weights, so it runs only
    with --deep.

    Fails (.bin: f32 1 nan 1 1)::

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

    Passes (.bin: f32 1 1 1 1)::

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

    code = "IR507"
    name = "weights-not-finite"
    severity = WARNING
    deep = True

    def check(self, subject: Subject) -> Iterator[Report]:
        """Read every constant of a floating-point type."""
        if subject.weights is None:
            return
        for index, layer, const in subject.constants():
            needed = needed_bytes(const)
            if not needed or const.element_type is None or not const.element_type.is_float:
                continue
            if const.offset + needed > len(subject.weights) or needed > const.size:
                continue  # other rules say so
            nans, infinities, first = count_not_finite(const, subject.weights)
            if nans or infinities:
                yield Report(
                    f"{layer.name!r} has {nans} NaN and {infinities} infinite elements, "
                    f"the first at index {first}",
                    Place(layer=index),
                    actual=nans + infinities,
                )


RULE = WeightsNotFinite
