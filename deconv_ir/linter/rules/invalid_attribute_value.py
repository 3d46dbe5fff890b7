"""IR306 invalid-attribute-value."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class InvalidAttributeValue(Rule):
    """An attribute has a value that it can not have.

    It is neither of the right form nor one of the allowed words.

    Fails::

        <layer id="5" name="a" type="Reshape" version="opset1">
            <data special_zero="maybe"/>
            <input>
                <port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port>
                <port id="1" precision="I64"><dim>2</dim></port>
            </input>
            <output>
                <port id="2" precision="FP32"><dim>6</dim><dim>1</dim></port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="Reshape" version="opset1">
            <data special_zero="true"/>
            <input>
                <port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port>
                <port id="1" precision="I64"><dim>2</dim></port>
            </input>
            <output>
                <port id="2" precision="FP32"><dim>6</dim><dim>1</dim></port>
            </output>
        </layer>
    """

    code = "IR306"
    name = "invalid-attribute-value"
    severity = ERROR
    slugs = ("attribute-value",)


RULE = InvalidAttributeValue
