"""IR305 unknown-auto-pad."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class UnknownAutoPad(Rule):
    """auto_pad has a value that does not exist.

    explicit, same_upper, same_lower and valid do; NOTSET is ONNX's word for
    explicit, and SAME alone does not say where an odd element goes.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="same"/>
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

    code = "IR305"
    name = "unknown-auto-pad"
    severity = ERROR
    slugs = ("attribute-value",)
    fix = "writes NOTSET as explicit"

    @staticmethod
    def claims(found: DeconvError | Finding) -> bool:
        """Claim what this rule is about."""
        return getattr(found.place, "attribute", None) == "auto_pad"

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Add the edit for the one word whose meaning is beyond doubt."""
        report = Report.of(found)
        if str(found.actual).strip().upper() == "NOTSET" and isinstance(found.place, Place):
            report.edits = subject.replace(found.place, "explicit")
        return report


RULE = UnknownAutoPad
