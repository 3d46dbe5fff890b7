"""IR413 reshape-mismatch."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class ReshapeMismatch(Rule):
    """Data can not take the shape that a Reshape asks for.

    The number of elements stays what it is.  -1 stands for what is left over, once;
    0 with special_zero for the dim of the data at the same place.

    Fails (.bin: i64 5)::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="s" type="Const" version="opset1">
                <data element_type="i64" shape="1" offset="0" size="8"/>
                <output><port id="0" precision="I64"><dim>1</dim></port></output>
            </layer>
            <layer id="2" name="y" type="Reshape" version="opset1">
                <data special_zero="true"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
                    <port id="1" precision="I64"><dim>1</dim></port>
                </input>
                <output><port id="2" precision="FP32"><dim>3</dim></port></output>
            </layer>
            <layer id="3" name="r" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>3</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
            <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
        </edges></net>

    Passes (.bin: i64 3)::

        <layer id="5" name="a" type="Reshape" version="opset1">
            <data special_zero="true"/>
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
                <port id="1" precision="I64"><dim>1</dim></port>
            </input>
            <output>
                <port id="2" precision="FP32"><dim>3</dim></port>
            </output>
        </layer>
    """

    code = "IR413"
    name = "reshape-mismatch"
    severity = ERROR
    slugs = ("reshape",)


RULE = ReshapeMismatch
