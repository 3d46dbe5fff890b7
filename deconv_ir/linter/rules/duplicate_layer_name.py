"""IR202 duplicate-layer-name."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import WARNING, Report, Rule
from deconv_ir.linter.subject import Subject


class DuplicateLayerName(Rule):
    """Two layers have the same name.

    Tools find layers by name, and get one of them, or neither.  OpenVINO makes names
    unique when it saves a model.

    Fails::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,3" element_type="f32"/>
                <output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></output>
            </layer>
            <layer id="1" name="x" type="Result" version="opset1">
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

    code = "IR202"
    name = "duplicate-layer-name"
    severity = WARNING
    when = "has_repeated_names"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look for names that come again."""
        layers = subject.graph.layers
        if subject.graph.bare:  # the other layers are ours, not the file's
            return
        first: dict[str, int] = {}
        for index, layer in enumerate(layers):
            before = first.setdefault(layer.name, index)
            if before != index and layer.name:
                yield Report(
                    f"name {layer.name!r} is already taken by layer {layers[before].id} "
                    f"in line {layers[before].line}",
                    Place(layer=index, attribute="name", own=True),
                    related=before,
                )


RULE = DuplicateLayerName
