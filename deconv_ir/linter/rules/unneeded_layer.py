"""IR208 unneeded-layer."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import WARNING, Report, Rule
from deconv_ir.linter.subject import Subject


class UnneededLayer(Rule):
    """No Result needs what a layer computes.

    It costs time and bytes, and often shows that an edge leads to the wrong
    place.  Parameters are exempt: they are the model's interface.  So is what
    leads to an Assign, which keeps its value.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input>
            </layer>
            <layer id="2" name="lost" type="ReLU" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input>
                <output><port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
            <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
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

    code = "IR208"
    name = "unneeded-layer"
    severity = WARNING
    when = "unneeded"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Report each of them."""
        for index in subject.unneeded:
            yield Report("no Result needs what this layer computes", Place(layer=index))


RULE = UnneededLayer
