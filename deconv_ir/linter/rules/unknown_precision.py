"""IR110 unknown-precision."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class UnknownPrecision(Rule):
    """A port's precision is no element type.

    Without it nobody knows what the bytes of the tensor mean.  IRs write FP32, FP16,
    BF16, I64, U8, BOOL and so on.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="Result" version="opset1">
                <input><port id="0" precision="FLOAT"><dim>1</dim><dim>3</dim></port></input>
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

    code = "IR110"
    name = "unknown-precision"
    severity = ERROR
    slugs = ("precision",)


RULE = UnknownPrecision
