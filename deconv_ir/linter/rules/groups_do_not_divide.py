"""IR406 groups-do-not-divide."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class GroupsDoNotDivide(Rule):
    """The number of groups does not divide the channels.

    Each group takes the same number of channels of the data and gives the same
    number of channels of the output.

    Fails::

        <layer id="5" name="up" type="ConvTranspose">
            <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1" output_padding="0,0"
                  auto_pad="none" data_format="NCX" filter_format="IOX" groups="3"/>
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

        <layer id="5" name="up" type="ConvTranspose">
            <data strides="2,2" dilations="1,1" pads_begin="1,1" pads_end="1,1" output_padding="0,0"
                  auto_pad="none" data_format="NCX" filter_format="IOX" groups="4"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>40</dim><dim>447</dim><dim>447</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR406"
    name = "groups-do-not-divide"
    severity = ERROR
    slugs = ("groups",)


RULE = GroupsDoNotDivide
