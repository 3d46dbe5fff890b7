"""IR101 file-unreadable."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class FileUnreadable(Rule):
    """The file can not be read.

    It is gone, not permitted, a directory or another thing than a regular file.
    Nothing else can be said about it.

    Fails::

        (A FIFO or a folder named model.xml.)

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

    code = "IR101"
    name = "file-unreadable"
    severity = ERROR
    slugs = ("io",)


RULE = FileUnreadable
