"""IR209 edge-dims-differ."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.ir.shapes import Shape, compatible, format_shape
from deconv_ir.linter.edits import declared_form, dims_edits
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class EdgeDimsDiffer(Rule):
    """The two ends of an edge declare different dims.

    They are one tensor.  OpenVINO's reader passes over declared dims, so that
    nothing tells until a tool that trusts one of them fails.  The end that
    contradicts what is computed is the one reported.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="y" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port></input>
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

    code = "IR209"
    name = "edge-dims-differ"
    severity = ERROR
    when = "unequal_edges"
    fix = "declares what is computed at the end that is wrong"

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
        computed = subject.outputs(source[0])[source[1]].shape
        form = declared_form(computed)
        start_form, end_form = declared_form(start.shape), declared_form(end.shape)
        if start_form == end_form:
            return  # the same, written in two ways
        if end_form == form:
            if not compatible(start.shape, computed) or producer.type == "Parameter":
                return  # declared-dims-differ says so, at the wrong end
            place = Place(layer=source[0], side="output", port=source[1])
            stated, other, other_line = start, end, consumer.line_of(end)
            other_name = f"{consumer.name!r}, which it feeds,"
        else:
            place = Place(layer=index, side="input", port=port)
            stated, other, other_line = end, start, producer.line_of(start)
            other_name = f"{producer.name!r}, which feeds it,"
        known = producer.operation.implemented
        wanted = computed if known else other.shape
        yield Report(
            f"declares {format_shape(stated.shape)}, but {other_name} declares "
            f"{format_shape(other.shape)} in line {other_line}",
            place._replace(axis=_first_difference(stated.shape, wanted)),
            expected=format_shape(wanted),
            actual=format_shape(stated.shape),
            edits=dims_edits(subject, place.layer or 0, place.side or "", place.port or 0, wanted)
            if known
            else (),
        )


def _first_difference(stated: Shape, wanted: Shape) -> int | None:
    """Return the first axis on which two shapes differ; None where only ranks do."""
    pairs = zip(declared_form(stated), declared_form(wanted), strict=False)
    return next((axis for axis, (a, b) in enumerate(pairs) if a != b), None)


RULE = EdgeDimsDiffer
