"""IR210 edge-precision-differs."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.edits import attribute_edit
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class EdgePrecisionDiffers(Rule):
    """The two ends of an edge declare different precisions.

    They are one tensor, of one element type.  A conversion has to be a layer of
    its own, a Convert.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="Result" version="opset1">
                <input><port id="0" precision="FP16"><dim>1</dim><dim>3</dim></port></input>
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

    code = "IR210"
    name = "edge-precision-differs"
    severity = ERROR
    when = "unequal_edges"
    fix = "declares the precision that the tensor has"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look at the edges whose ends are unequal."""
        for index, port, source in subject.unequal_edges:
            yield from self.judge(subject, index, port, source)

    def judge(
        self, subject: Subject, index: int, port: int, source: tuple[int, int]
    ) -> Iterator[Report]:
        """Tell which end is wrong."""
        layers = subject.graph.layers
        producer, consumer = layers[source[0]], layers[index]
        start, end = producer.outputs[source[1]], consumer.inputs[port]
        if start.element_type is end.element_type:
            return
        computed = subject.outputs(source[0])[source[1]].element_type or start.element_type
        if computed is end.element_type or computed is None or end.element_type is None:
            return  # declared-precision-differs says so, at the wrong end
        yield Report(
            f"declares precision {end.element_type.ir_name}, but {producer.name!r}, which feeds "
            f"it, gives {computed.ir_name} in line {producer.line_of(start)}",
            Place(layer=index, side="input", port=port, attribute="precision"),
            expected=computed.ir_name,
            actual=end.element_type.ir_name,
            edits=attribute_edit(
                subject, index, "precision", computed.ir_name, port=("input", port)
            ),
        )


RULE = EdgePrecisionDiffers
