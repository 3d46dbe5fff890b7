"""IR501 weights-missing."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class WeightsMissing(Rule):
    """The model has constants, but there is no .bin to read them from.

    The two files belong together: the .xml names offsets, the .bin has the bytes.
    It is looked for beside the .xml, under the same name.

    Fails::

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

    code = "IR501"
    name = "weights-missing"
    severity = ERROR
    slugs = ("weights-missing",)


RULE = WeightsMissing
