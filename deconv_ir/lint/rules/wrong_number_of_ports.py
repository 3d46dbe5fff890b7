"""IR213 wrong-number-of-ports."""

from __future__ import annotations

from ...errors import DeconvError
from ...findings import Finding
from ...model import Place
from ..rule import ERROR, Report, Rule
from ..subject import Subject


class WrongNumberOfPorts(Rule):
    """A layer has more or fewer ports than its operation.

    Inputs are told apart by their order, so that one too few shifts all that
    follow.

    Fails::

        <layer id="5" name="a" type="Add" version="opset1">
            <data auto_broadcast="numpy"/>
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="Add" version="opset1">
            <data auto_broadcast="numpy"/>
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="2" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>
    """

    code = "IR213"
    name = "wrong-number-of-ports"
    severity = ERROR
    slugs = ("input-count", "output-count")

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Point at the first output that is too many."""
        report = Report.of(found)
        place = found.place
        if found.rule == "output-count" and isinstance(place, Place):
            report.place = Place(layer=place.layer, side="output", port=found.expected)
        return report


RULE = WrongNumberOfPorts
