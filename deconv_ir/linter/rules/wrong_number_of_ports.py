"""IR213 wrong-number-of-ports."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import SINKS, Subject


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
    when = "oddly_ported"
    slugs = ("input-count", "output-count")

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look for Results with outputs, and others without."""
        yield from super().check(subject)
        for index in subject.oddly_ported:
            layer = subject.graph.layers[index]
            if layer.outputs:
                yield Report(
                    "a Result has no outputs in an IR",
                    Place(layer=index, side="output", port=0),
                    expected=0,
                    actual=len(layer.outputs),
                )
            elif layer.type not in SINKS and layer.operation.implemented:
                yield Report(
                    f"{layer.type} declares no output, so nothing can use what it computes",
                    Place(layer=index),
                    expected="1 or more",
                    actual=0,
                )

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Point at the first output that is too many."""
        report = Report.of(found)
        place = found.place
        if found.rule == "output-count" and isinstance(place, Place):
            report.place = Place(layer=place.layer, side="output", port=found.expected)
        return report


RULE = WrongNumberOfPorts
