"""IR112 repeated-element."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class RepeatedElement(Rule):
    """An element that may stand once in a layer stands there twice.

    The first one counts for this reader and for OpenVINO, whatever the second
    says.

    Fails::

        <layer id="5" name="a" type="ReLU" version="opset1">
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </output>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>4</dim></port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="ReLU" version="opset1">
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>
    """

    code = "IR112"
    name = "repeated-element"
    severity = ERROR
    slugs = ("duplicate-element",)


RULE = RepeatedElement
