"""IR103 wrong-root."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class WrongRoot(Rule):
    """The root element is neither ``<net>`` nor ``<layer>``.

    The file is XML, but of another kind: nothing in it can be checked.  Folders may
    hold such files; there, they are passed over and counted.

    Fails::

        <model name="n" version="11"><layers/></model>

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

    code = "IR103"
    name = "wrong-root"
    severity = ERROR
    slugs = ("root",)


RULE = WrongRoot
