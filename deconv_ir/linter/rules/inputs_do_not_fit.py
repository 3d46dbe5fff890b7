"""IR415 inputs-do-not-fit."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class InputsDoNotFit(Rule):
    """The inputs of a layer do not fit its operation.

    An operation's shape rule refuses them for a reason that has no rule of its
    own.  The layer can not be computed.

    Fails::

        <layer id="5" name="a" type="Concat" version="opset1">
            <data axis="0"/>
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
                <port id="1" precision="FP32"><dim>1</dim><dim>4</dim></port>
            </input>
            <output>
                <port id="2" precision="FP32"><dim>1</dim><dim>7</dim></port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="Concat" version="opset1">
            <data axis="1"/>
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
                <port id="1" precision="FP32"><dim>1</dim><dim>4</dim></port>
            </input>
            <output>
                <port id="2" precision="FP32"><dim>1</dim><dim>7</dim></port>
            </output>
        </layer>
    """

    code = "IR415"
    name = "inputs-do-not-fit"
    severity = ERROR


RULE = InputsDoNotFit
