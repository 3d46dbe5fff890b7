"""IR503 constant-size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.ir.graph import Layer, Place
from deconv_ir.ir.shapes import format_shape
from deconv_ir.linter.constants import needed_bytes
from deconv_ir.linter.edits import attribute_edit
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject

if TYPE_CHECKING:
    from deconv_ir.ops.constants.constant import Const


class ConstantSize(Rule):
    """The size of a constant is not what its shape and type take.

    One of size, shape and type is wrong, and with it every byte that is read.
    OpenVINO refuses a size that is too small and lets one pass that is too
    large.

    Fails (.bin: zeros 16)::

        <net name="n" version="11"><layers>
            <layer id="0" name="a" type="Const" version="opset1">
                <data element_type="f32" shape="2" offset="0" size="8"/>
                <output><port id="0" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="1" name="b" type="Const" version="opset1">
                <data element_type="f32" shape="2" offset="8" size="4"/>
                <output><port id="0" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="2" name="c" type="Add" version="opset1">
                <data auto_broadcast="numpy"/>
                <input>
                    <port id="0" precision="FP32"><dim>2</dim></port>
                    <port id="1" precision="FP32"><dim>2</dim></port>
                </input>
                <output><port id="2" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="3" name="r" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>2</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
            <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
        </edges></net>

    Passes (.bin: zeros 16)::

        <net name="n" version="11"><layers>
            <layer id="0" name="a" type="Const" version="opset1">
                <data element_type="f32" shape="2" offset="0" size="8"/>
                <output><port id="0" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="1" name="b" type="Const" version="opset1">
                <data element_type="f32" shape="2" offset="8" size="8"/>
                <output><port id="0" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="2" name="c" type="Add" version="opset1">
                <data auto_broadcast="numpy"/>
                <input>
                    <port id="0" precision="FP32"><dim>2</dim></port>
                    <port id="1" precision="FP32"><dim>2</dim></port>
                </input>
                <output><port id="2" precision="FP32"><dim>2</dim></port></output>
            </layer>
            <layer id="3" name="r" type="Result" version="opset1">
                <input><port id="0" precision="FP32"><dim>2</dim></port></input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
            <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
        </edges></net>
    """

    code = "IR503"
    name = "constant-size"
    severity = ERROR
    when = "has_untidy_constants"
    slugs = ("const-size",)
    fix = "writes the size, where the declared dims confirm shape and type"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Compare size with shape and type."""
        for index, layer, const in subject.constants():
            needed = needed_bytes(const)
            if needed == const.size:
                continue
            if needed is None:
                yield self.unknown(index, const)
            # A constant without elements is written with a size of 1.
            elif needed or const.size > 1:
                yield Report(
                    f"size is {const.size} bytes, but {const.element_type}"
                    f"{format_shape(const.shape)} takes {needed}",
                    Place(layer=index, attribute="size"),
                    expected=needed,
                    actual=const.size,
                    edits=attribute_edit(subject, index, "size", str(needed))
                    if _declared_agrees(layer, const)
                    else (),
                )

    def unknown(self, index: int, const: Const) -> Report:
        """Report a constant whose size can not be told."""
        if const.element_type is None:
            return Report(
                "a constant must have an element type", Place(layer=index, attribute="element_type")
            )
        return Report(
            f"a constant must have a static shape, found {format_shape(const.shape)}",
            Place(layer=index, attribute="shape"),
            actual=format_shape(const.shape),
        )


def _declared_agrees(layer: Layer, const: Const) -> bool:
    """Tell whether the output port says the same of shape and type."""
    ports = layer.outputs
    return (
        len(ports) == 1
        and (ports[0].shape or ()) == const.shape
        and ports[0].element_type is const.element_type
    )


RULE = ConstantSize
