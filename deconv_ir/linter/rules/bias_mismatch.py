"""IR414 bias-mismatch."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class BiasMismatch(Rule):
    """A bias does not have one element for each output channel.

    The bias of ConvTranspose is a list as long as the output has channels, one
    number for each.

    Fails::

        <layer id="5" name="up" type="ConvTranspose">
            <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"
                  output_padding="0,0" auto_pad="none" data_format="NCX" filter_format="IOX"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
                <port id="2" precision="FP32"><dim>11</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>447</dim><dim>447</dim>
                </port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="up" type="ConvTranspose">
            <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"
                  output_padding="0,0" auto_pad="none" data_format="NCX" filter_format="IOX"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
                <port id="2" precision="FP32"><dim>10</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>447</dim><dim>447</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR414"
    name = "bias-mismatch"
    severity = ERROR
    slugs = ("bias-shape",)


RULE = BiasMismatch
