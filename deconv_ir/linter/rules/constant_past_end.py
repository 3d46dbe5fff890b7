"""IR502 constant-past-end."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.constants import needed_bytes
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class ConstantPastEnd(Rule):
    """A constant reaches past the end of the .bin.

    The .bin belongs to another .xml, or was cut short on its way.

    Fails (.bin: zeros 12)::

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

    code = "IR502"
    name = "constant-past-end"
    severity = ERROR
    when = "has_untidy_constants"
    slugs = ("const-past-end",)

    def check(self, subject: Subject) -> Iterator[Report]:
        """Compare offset and size of each constant with the size of the file."""
        if subject.weights is None:
            return
        length = len(subject.weights)
        for index, _, const in subject.constants():
            end = const.offset + const.size
            # A constant without elements is written with a size of 1.
            if end > length and needed_bytes(const) != 0:
                yield Report(
                    f"offset {const.offset} + size {const.size} = {end} is past the end of "
                    f"{subject.weights.name}, which has {length} bytes",
                    Place(layer=index, attribute="offset"),
                    expected=f"<= {length}",
                    actual=end,
                    hint="the .bin does not belong to this .xml, or is cut short",
                )


RULE = ConstantPastEnd
