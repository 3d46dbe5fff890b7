"""IR405 channels-differ."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class ChannelsDiffer(Rule):
    """Data and filter differ in channels.

    A filter [C_INPUT, C_OUTPUT, ...] takes data of C_INPUT channels, one with
    groups of GROUPS * C_INPUT.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>21</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>447</dim><dim>447</dim>
                </port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>447</dim><dim>447</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR405"
    name = "channels-differ"
    severity = ERROR
    slugs = ("channels",)

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Point at the channels of the data."""
        report = Report.of(found)
        place = found.place
        if isinstance(place, Place) and place.layer is not None:
            operation = subject.graph.layers[place.layer].operation
            shape = subject.inputs(place.layer)[0].shape or ()
            last = getattr(operation, "channels_last", False)
            axis = len(shape) - 1 if last else 1
            report.place = Place(layer=place.layer, side="input", port=0, axis=axis)
        return report


RULE = ChannelsDiffer
