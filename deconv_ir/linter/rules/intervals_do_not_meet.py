"""IR402 intervals-do-not-meet."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.edits import dims_edits
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class IntervalsDoNotMeet(Rule):
    """A declared dim lies outside the interval that is computed.

    The dim is not known to the last number, but its bounds are, and no size of the
    inputs gives what is declared.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>10..12</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>30</dim><dim>447</dim>
                </port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>10..12</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>-1</dim><dim>447</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR402"
    name = "intervals-do-not-meet"
    severity = ERROR
    slugs = ("declared-dims",)
    fix = "declares the dims that are computed"

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Add the edit."""
        place = found.place
        assert isinstance(place, Place)
        assert place.layer is not None
        assert place.port is not None
        shape = subject.outputs(place.layer)[place.port].shape
        return Report.of(found, dims_edits(subject, place.layer, "output", place.port, shape))


RULE = IntervalsDoNotMeet
