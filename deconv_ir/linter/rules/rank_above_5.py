"""IR604 rank-above-5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.ir.graph import Layer, Place
from deconv_ir.linter.rule import INFO, DeconvolutionRule, Report
from deconv_ir.linter.subject import Subject

if TYPE_CHECKING:
    from deconv_ir.ops.convolution.deconvolution import Deconvolution


class RankAbove5(DeconvolutionRule):
    """A transposed convolution has more than three spatial axes.

    The newer document allows rank 3, 4 and 5, and so do OpenVINO and oneDNN.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="1,1,1,1" dilations="1,1,1,1" pads_begin="0,0,0,0"
                  pads_end="0,0,0,0" output_padding="0,0,0,0" auto_pad="explicit"/>
            <input>
                <port id="0">
                    <dim>1</dim><dim>2</dim><dim>3</dim><dim>3</dim><dim>3</dim><dim>3</dim>
                </port>
                <port id="1">
                    <dim>2</dim><dim>2</dim><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim>
                </port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>2</dim><dim>3</dim><dim>3</dim><dim>3</dim><dim>3</dim>
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

    code = "IR604"
    name = "rank-above-5"
    severity = INFO
    types = (
        "ConvolutionBackpropData",
        "GroupConvolutionBackpropData",
        "ConvTranspose",
        "ConvolutionBackwardData",
    )

    def check_deconvolution(
        self, index: int, layer: Layer, operation: Deconvolution, subject: Subject
    ) -> Iterator[Report]:
        """Look at the geometry of each axis."""
        shape = subject.inputs(index)[0].shape
        if shape is not None and len(shape) > 5:
            yield Report(
                f"data has rank {len(shape)}; OpenVINO and oneDNN take 3, 4 and 5",
                Place(layer=index, side="input", port=0),
                expected="3, 4 or 5",
                actual=len(shape),
            )


RULE = RankAbove5
