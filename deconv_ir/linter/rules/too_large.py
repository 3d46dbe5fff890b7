"""IR111 too-large."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class TooLarge(Rule):
    """The file passes a bound on size, layers or rank.

    The bounds are far beyond what any network needs; they keep a file from
    anywhere from taking all memory.

    Fails::

        <layer id="5" name="a" type="ReLU" version="opset1">
            <input>
                <port id="0" precision="FP32">
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                </port>
            </input>
            <output>
                <port id="1" precision="FP32">
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                </port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="ReLU" version="opset1">
            <input>
                <port id="0" precision="FP32">
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                </port>
            </input>
            <output>
                <port id="1" precision="FP32">
                    <dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR111"
    name = "too-large"
    severity = ERROR
    slugs = ("oversize",)


RULE = TooLarge
