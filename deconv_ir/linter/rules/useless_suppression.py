"""IR113 useless-suppression."""

from __future__ import annotations

from deconv_ir.linter.rule import WARNING, Rule


class UselessSuppression(Rule):
    """A comment for this linter names no rule, or stands where it silences nothing.

    ``<!-- deconv-lint: ignore=IR401 -->`` silences a rule for the layer or the
    edge right after it; ``ignore-file=IR401`` for the whole file.

    Fails::

        <!-- deconv-lint: ignore=IR999 -->
        <layer id="5" name="a" type="ReLU" version="opset1">
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>

    Passes::

        <!-- deconv-lint: ignore=IR401 -->
        <layer id="5" name="a" type="ReLU" version="opset1">
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>4</dim></port>
            </output>
        </layer>
    """

    code = "IR113"
    name = "useless-suppression"
    severity = WARNING
    slugs = ("suppression",)


RULE = UselessSuppression
