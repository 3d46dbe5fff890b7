"""IR109 not-a-number."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class NotANumber(Rule):
    """Something that must be a whole number is none.

    Ids and the ends of edges are whole numbers from 0; a ``<dim>`` is one too, or
    -1, ``?`` or a range where it is not known.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim><dim>three</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        </edges></net>

    Passes::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        </edges></net>
    """

    code = "IR109"
    name = "not-a-number"
    severity = ERROR
    slugs = (
        "number",
        "dim-value",
    )


RULE = NotANumber
