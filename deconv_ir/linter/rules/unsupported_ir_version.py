"""IR104 unsupported-ir-version."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class UnsupportedIrVersion(Rule):
    """The IR version is none that is read: 10 or 11.

    Earlier IRs state other attributes under the same names; OpenVINO refuses them
    too.  A new conversion of the original model helps.

    Fails::

        <net name="n" version="9"><layers>
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

    code = "IR104"
    name = "unsupported-ir-version"
    severity = ERROR
    slugs = ("ir-version",)


RULE = UnsupportedIrVersion
