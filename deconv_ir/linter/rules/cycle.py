"""IR207 cycle."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class Cycle(Rule):
    """Layers form a cycle.

    Each of them waits for another one, so that none can be computed.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="a" type="ReLU" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim></port></input>
                <output><port id="1" precision="FP32"><dim>1</dim></port></output>
            </layer>
            <layer id="1" name="b" type="ReLU" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim></port></input>
                <output><port id="1" precision="FP32"><dim>1</dim></port></output>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="1" to-layer="1" to-port="0"/>
            <edge from-layer="1" from-port="1" to-layer="0" to-port="0"/>
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

    code = "IR207"
    name = "cycle"
    severity = ERROR
    slugs = ("cycle",)


RULE = Cycle
