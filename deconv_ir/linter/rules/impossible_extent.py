"""IR411 impossible-extent."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class ImpossibleExtent(Rule):
    """An output would have a negative extent, or a kernel is empty.

    Pads cut away more than there is.  OpenVINO reads such a file, and fails, or
    worse, when it runs.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="9,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>1</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>-1</dim><dim>447</dim>
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

    code = "IR411"
    name = "impossible-extent"
    severity = ERROR
    slugs = (
        "negative-extent",
        "empty-kernel",
    )

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Point at what cuts the output short."""
        report = Report.of(found)
        place = found.place
        if isinstance(place, Place) and place.layer is not None and found.rule == "negative-extent":
            report.place = Place(layer=place.layer, attribute="pads_begin")
        return report


RULE = ImpossibleExtent
