"""IR105 missing-element."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class MissingElement(Rule):
    """An element that an IR must have is not there.

    A ``<net>`` without ``<layers>`` is no network; mostly the file was put together
    by hand, or by a script that failed half-way.

    Fails::

        <net name="n" version="11"><edges/></net>

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

    code = "IR105"
    name = "missing-element"
    severity = ERROR
    slugs = ("missing-element",)


RULE = MissingElement
