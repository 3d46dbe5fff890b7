"""IR412 broadcast-mismatch."""

from __future__ import annotations

from deconv_ir.linter.rule import ERROR, Rule


class BroadcastMismatch(Rule):
    """Shapes can not be broadcast to one another.

    Axis by axis, from the last one, dims are equal or one of them is 1.

    Fails::

        <layer id="5" name="a" type="Add" version="opset1">
            <data auto_broadcast="numpy"/>
            <input>
                <port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port>
                <port id="1" precision="FP32"><dim>1</dim><dim>4</dim></port>
            </input>
            <output>
                <port id="2" precision="FP32"><dim>2</dim><dim>3</dim></port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="Add" version="opset1">
            <data auto_broadcast="numpy"/>
            <input>
                <port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="2" precision="FP32"><dim>2</dim><dim>3</dim></port>
            </output>
        </layer>
    """

    code = "IR412"
    name = "broadcast-mismatch"
    severity = ERROR
    slugs = ("broadcast",)


RULE = BroadcastMismatch
