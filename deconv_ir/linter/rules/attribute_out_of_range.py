"""IR303 attribute-out-of-range."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.linter.rule import ERROR, Rule


class AttributeOutOfRange(Rule):
    """A number is below or above what the attribute allows.

    Strides and dilations are positive, pads and output_padding are not negative.
    OpenVINO's reader lets some of these pass and fails when the model runs.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="-1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>449</dim><dim>447</dim>
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

    code = "IR303"
    name = "attribute-out-of-range"
    severity = ERROR
    slugs = ("attribute-value",)

    @staticmethod
    def claims(found: DeconvError | Finding) -> bool:
        """Claim what this rule is about."""
        texts = str(found.actual).split(",")
        return "whole number" in str(found.expected) and all(map(_is_integer, texts))


def _is_integer(text: str) -> bool:
    digits = text.strip().removeprefix("-")
    return digits.isascii() and digits.isdigit()


RULE = AttributeOutOfRange
