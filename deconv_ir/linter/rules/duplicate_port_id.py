"""IR212 duplicate-port-id."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class DuplicatePortId(Rule):
    """Two inputs, or two outputs, of a layer have the same id.

    Edges name ports by id, so that the second one can not be reached.  An output
    may have the id of an input.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="a" type="Add" version="opset1">
                <data auto_broadcast="numpy"/>
                <input>
                    <port id="0" precision="FP32"><dim>3</dim></port>
                    <port id="0" precision="FP32"><dim>3</dim></port>
                </input>
                <output><port id="2" precision="FP32"><dim>3</dim></port></output>
            </layer>
            <layer id="2" name="r" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>3</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>
            <edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
        </edges></net>

    Passes::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="a" type="Add" version="opset1">
                <data auto_broadcast="numpy"/>
                <input>
                    <port id="0" precision="FP32"><dim>3</dim></port>
                    <port id="1" precision="FP32"><dim>3</dim></port>
                </input>
                <output><port id="2" precision="FP32"><dim>3</dim></port></output>
            </layer>
            <layer id="2" name="r" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>3</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>
            <edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
        </edges></net>
    """

    code = "IR212"
    name = "duplicate-port-id"
    severity = ERROR
    when = "repeated_port_ids"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Report each id that comes again."""
        for index, side, i in subject.repeated_port_ids:
            layer = subject.graph.layers[index]
            port = (layer.inputs if side == "input" else layer.outputs)[i]
            yield Report(
                f"{side} port id {port.id} stands twice",
                Place(layer=index, side=side, port=i, attribute="id"),
                actual=port.id,
            )


RULE = DuplicatePortId
