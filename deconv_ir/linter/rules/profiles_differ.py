"""IR601 profiles-differ."""

from __future__ import annotations

from deconv_ir.linter.rule import INFO, Rule


class ProfilesDiffer(Rule):
    """The documents and OpenVINO's CPU plugin give different pads or divisors.

    With an output_shape input the documents split the total padding; the plugin
    keeps the pads attributes, or never pads by less than 0.  Of an AvgPool with padding
    that is not excluded, the plugin divides a last window that reaches beyond the padding
    by its whole extent.  The same file gives different numbers here and there; --semantics
    chooses.

    Fails (.bin: i64 5)::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,1,3" element_type="f32"/>
                <output>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                </output>
            </layer>
            <layer id="1" name="w" type="Parameter" version="opset1">
                <data shape="1,1,4" element_type="f32"/>
                <output>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                </output>
            </layer>
            <layer id="2" name="y" type="Const" version="opset1">
                <data element_type="i64" shape="1" offset="0" size="8"/>
                <output><port id="0" precision="I64"><dim>1</dim></port></output>
            </layer>
            <layer id="3" name="up" type="ConvolutionBackpropData" version="opset1">
                <data strides="2" dilations="1" pads_begin="0" pads_end="0" auto_pad="explicit"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                    <port id="1" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                    <port id="2" precision="I64"><dim>1</dim></port>
                </input>
                <output>
                    <port id="3" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                </output>
            </layer>
            <layer id="4" name="r" type="Result" version="opset1">
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                </input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
            <edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
        </edges></net>

    Passes (.bin: i64 5)::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,1,3" element_type="f32"/>
                <output>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                </output>
            </layer>
            <layer id="1" name="w" type="Parameter" version="opset1">
                <data shape="1,1,4" element_type="f32"/>
                <output>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                </output>
            </layer>
            <layer id="2" name="y" type="Const" version="opset1">
                <data element_type="i64" shape="1" offset="0" size="8"/>
                <output><port id="0" precision="I64"><dim>1</dim></port></output>
            </layer>
            <layer id="3" name="up" type="ConvolutionBackpropData" version="opset1">
                <data strides="2" dilations="1" pads_begin="0" pads_end="0" auto_pad="same_lower"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                    <port id="1" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                    <port id="2" precision="I64"><dim>1</dim></port>
                </input>
                <output>
                    <port id="3" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                </output>
            </layer>
            <layer id="4" name="r" type="Result" version="opset1">
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                </input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
            <edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
        </edges></net>
    """

    code = "IR601"
    name = "profiles-differ"
    severity = INFO
    slugs = ("profiles-differ",)


RULE = ProfilesDiffer
