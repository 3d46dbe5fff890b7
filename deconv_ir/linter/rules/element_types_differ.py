"""IR410 element-types-differ."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class ElementTypesDiffer(Rule):
    """Inputs that must be of one element type are not, or of a type not allowed.

    Nothing is converted on the way: a Convert layer must stand before.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0" precision="FP32">
                    <dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim>
                </port>
                <port id="1" precision="FP16">
                    <dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim>
                </port>
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
                <port id="0" precision="FP32">
                    <dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim>
                </port>
                <port id="1" precision="FP32">
                    <dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim>
                </port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>447</dim><dim>447</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR410"
    name = "element-types-differ"
    severity = ERROR
    slugs = ("element-type",)


RULE = ElementTypesDiffer
