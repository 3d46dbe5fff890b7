"""IR213 wrong-number-of-ports."""

from __future__ import annotations

from collections.abc import Iterator

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
    slugs = ("input-count",)

    def check(self, subject: Subject) -> Iterator[Report]:
        """Compare the declared outputs with those that are computed."""
        yield from super().check(subject)
        if subject.inference is None:
            return
        for index, count in subject.inference.output_counts:
            layer = subject.graph.layers[index]
            yield Report(
                f"{layer.type} gives {count} output{'s' if count != 1 else ''}, the layer declares "
                f"{len(layer.outputs)}",
                Place(layer=index, side="output", port=min(count, len(layer.outputs) - 1))
                if layer.outputs
                else Place(layer=index),
                expected=count,
                actual=len(layer.outputs),
            )


RULE = WrongNumberOfPorts
