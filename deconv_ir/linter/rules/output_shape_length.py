"""IR407 output-shape-length."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class OutputShapeLength(Rule):
    """The requested output shape has the wrong number of elements.

    OpenVINO's output_shape covers the spatial axes alone; oneDNN's dst_shape covers
    batch and channels too.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="0,0"
                  pads_end="0,0" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
                <port id="2" precision="I64"><dim>4</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>-1</dim><dim>-1</dim>
                </port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="0,0"
                  pads_end="0,0" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
                <port id="2" precision="I64"><dim>2</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>-1</dim><dim>-1</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR407"
    name = "output-shape-length"
    severity = ERROR
    slugs = ("output-shape-length",)

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Point at the input that asks for the shape, unless an attribute does."""
        report = Report.of(found)
        place = found.place
        if isinstance(place, Place) and place.layer is not None and place.attribute is None:
            report.place = Place(layer=place.layer, side="input", port=2)
        return report


RULE = OutputShapeLength
