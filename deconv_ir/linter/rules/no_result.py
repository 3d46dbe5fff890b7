"""IR211 no-result."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.linter.rule import WARNING, Report, Rule
from deconv_ir.linter.subject import Subject


class NoResult(Rule):
    """The network has no Result.

    It computes nothing that anybody could ask for: a runtime loads it and has no
    output to give.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="ReLU" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input>
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

    code = "IR211"
    name = "no-result"
    severity = WARNING
    when = "has_no_result"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Report the network."""
        if subject.has_no_result:
            yield Report("the network has no Result", subject.document.root)


RULE = NoResult
