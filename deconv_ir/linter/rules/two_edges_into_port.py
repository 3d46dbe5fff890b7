"""IR205 two-edges-into-port."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class TwoEdgesIntoPort(Rule):
    """Two edges lead into one input port.

    An input takes one tensor; which of the two it is, nothing says.  Mostly one
    of the edges was meant for the next port.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        </edges></net>

    Passes::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        </edges></net>
    """

    code = "IR205"
    name = "two-edges-into-port"
    severity = ERROR
    slugs = ("two-edges-into-port",)


RULE = TwoEdgesIntoPort
