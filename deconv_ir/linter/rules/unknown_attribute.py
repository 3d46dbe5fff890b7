"""IR107 unknown-attribute."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Layer, Place
from deconv_ir.linter.rule import WARNING, Report, Rule
from deconv_ir.linter.subject import Subject
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import attributes_of
from deconv_ir.suggestions import nearest


class UnknownAttribute(Rule):
    """An attribute stands where it means nothing.

    Readers pass over it and take the default of the one that was meant:
    ``stride`` in place of ``strides`` gives strides of 1.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data dilations="1,1" pads_begin="1,1" pads_end="1,1"
                  output_padding="0,0" auto_pad="explicit" stride="2,2"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>447</dim><dim>447</dim>
                </port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>447</dim><dim>447</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR107"
    name = "unknown-attribute"
    severity = WARNING
    slugs = ("unknown-attribute",)

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look for attributes of ``<data>`` that the operation does not have."""
        yield from super().check(subject)
        layers = subject.graph.layers
        for kind, indices in subject.by_type.items():
            if kind == "Const":
                continue  # what it must have is missing then, and reported
            known_to_be_right: set[tuple[str | None, int]] = set()
            for index in indices:
                layer = layers[index]
                key = (layer.version, id(layer.attributes))  # layers share equal attributes
                if key not in known_to_be_right:
                    unknown = list(self.check_layer(index, layer))
                    if not unknown:
                        known_to_be_right.add(key)
                    yield from unknown

    def check_layer(self, index: int, layer: Layer) -> Iterator[Report]:
        """Look for attributes of one layer's ``<data>`` that the operation does not have."""
        operation = find_operation(layer.type, layer.version)
        if operation is None:
            return
        known = {spec.name for spec in attributes_of(operation)}
        for name, _ in layer.attributes:
            if name not in known:
                yield Report(
                    f"{layer.type} has no attribute {name!r}",
                    Place(layer=index, attribute=name),
                    actual=name,
                    hint=nearest(name, known),
                )


RULE = UnknownAttribute
