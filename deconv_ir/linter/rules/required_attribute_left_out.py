"""IR302 required-attribute-left-out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deconv_ir.ir.graph import Layer, Place
from deconv_ir.linter.edits import attribute_edit
from deconv_ir.linter.rule import WARNING, Edit, Report, Rule
from deconv_ir.linter.subject import Subject
from deconv_ir.ops.base import attributes_of

DEFAULTS: Final = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"}


class RequiredAttributeLeftOut(Rule):
    """An attribute is absent that the operation's document requires.

    Readers put 1 for absent strides and dilations and 0 for absent pads, mostly in
    silence.  Another reader may refuse the file, or guess otherwise.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data dilations="1,1" pads_begin="1,1" pads_end="1,1"
                  output_padding="0,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>224</dim><dim>224</dim>
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

    code = "IR302"
    name = "required-attribute-left-out"
    severity = WARNING
    fix = "writes the value that readers put in its place"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look at the types whose documents require what readers do without."""
        for kind, indices in subject.by_type.items():
            if subject.graph.bare and kind in ("Parameter", "Result"):
                continue  # made up
            operation = type(subject.graph.layers[indices[0]].operation)
            if not any(s.required and s.has_default for s in attributes_of(operation)):
                continue
            for group in subject.alike(kind):
                for index in group:
                    reports = list(self.check_layer(index, subject.graph.layers[index], subject))
                    yield from reports
                    if not reports:
                        break  # the others differ in name and id alone

    def check_layer(self, index: int, layer: Layer, subject: Subject) -> Iterator[Report]:
        """Compare the attributes with those that the document requires."""
        if not layer.operation.implemented:
            return
        # Readers take an empty list for an absent one.
        written = {name for name, value in layer.attributes if value.strip()}
        empty = {name for name, value in layer.attributes if not value.strip()}
        for spec in attributes_of(type(layer.operation)):
            if not spec.required or not spec.has_default or spec.name in written:
                continue
            if spec.name in empty and not spec.kind.per_axis:
                continue
            default = DEFAULTS.get(spec.name)
            spatial = None
            if default is not None and index not in subject.unfit:
                spatial = _spatial_axes(layer, subject, index)
            edits: tuple[Edit, ...] = ()
            if default is not None and spatial is not None:
                value = ",".join([default] * spatial)
                edits = attribute_edit(subject, index, spec.name, value)
            yield Report(
                f"attribute {spec.name!r} is required by the document of {layer.type}"
                + (f"; readers put {default}" if default else ""),
                Place(layer=index, attribute=spec.name),
                expected=spec.kind.allowed,
                edits=edits,
            )


def _spatial_axes(layer: Layer, subject: Subject, index: int) -> int | None:
    """Tell the number of spatial axes; None where it is not known."""
    shape = subject.inputs(index)[0].shape
    return None if shape is None else len(shape) - 2


RULE = RequiredAttributeLeftOut
