"""IR301 attribute-missing."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class AttributeMissing(Rule):
    """An attribute is absent that the operation can not do without.

    There is no default for it, in the document or in OpenVINO's reader.

    Fails::

        <layer id="5" name="a" type="Convert" version="opset1">
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP16"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="Convert" version="opset1">
            <data destination_type="f16"/>
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP16"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>
    """

    code = "IR301"
    name = "attribute-missing"
    severity = ERROR
    slugs = ("attribute-missing",)


RULE = AttributeMissing
