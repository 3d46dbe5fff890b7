"""IR309 pads-ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.graph import Layer, Place
from deconv_ir.linter.rule import WARNING, DeconvolutionRule, Report
from deconv_ir.linter.subject import Subject

if TYPE_CHECKING:
    from deconv_ir.ops.convolution.deconvolution import Deconvolution


class PadsIgnored(DeconvolutionRule):
    """Pads are given, but auto_pad makes them void.

    With any auto_pad but explicit the pads attributes mean nothing.  Whoever wrote
    them meant something: either they or auto_pad is a mistake.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="valid"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>449</dim><dim>449</dim>
                </port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="0,0"
                  pads_end="0,0" output_padding="0,0" auto_pad="valid"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>449</dim><dim>449</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR309"
    name = "pads-ignored"
    severity = WARNING
    types = (
        "ConvolutionBackpropData",
        "GroupConvolutionBackpropData",
        "ConvTranspose",
        "ConvolutionBackwardData",
    )

    def check_deconvolution(
        self, index: int, layer: Layer, operation: Deconvolution, subject: Subject
    ) -> Iterator[Report]:
        """Look for pads that are not 0."""
        if operation.auto_pad is PadMode.EXPLICIT:
            return
        for name in ("pads_begin", "pads_end"):
            values = getattr(operation, name)
            if values and any(values):
                yield Report(
                    f"{name} is ignored: auto_pad is {operation.auto_pad.value}",
                    Place(layer=index, attribute=name),
                    actual=",".join(map(str, values)),
                )


RULE = PadsIgnored
