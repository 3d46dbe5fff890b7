"""IR404 rank-mismatch."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class RankMismatch(Rule):
    """The ranks of the inputs do not fit the operation, or each other.

    Data of rank 4 goes with a filter of rank 4, or of rank 5 where the filter has
    an axis for groups.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim></port>
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

    code = "IR404"
    name = "rank-mismatch"
    severity = ERROR
    slugs = ("rank",)


RULE = RankMismatch
