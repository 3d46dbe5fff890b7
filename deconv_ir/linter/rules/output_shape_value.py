"""IR409 output-shape-value."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class OutputShapeValue(Rule):
    """The requested output shape has values that can not be.

    An extent is not negative; batch and channels of a dst_shape are those of the
    inputs.

    Fails (.bin: i64 -5)::

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

    code = "IR409"
    name = "output-shape-value"
    severity = ERROR
    slugs = ("output-shape-value",)

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Point at the input that asks for the shape, unless an attribute does."""
        report = Report.of(found)
        place = found.place
        if isinstance(place, Place) and place.layer is not None and place.attribute is None:
            report.place = Place(layer=place.layer, side="input", port=2)
        return report


RULE = OutputShapeValue
