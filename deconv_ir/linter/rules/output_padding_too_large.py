"""IR311 output-padding-too-large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.ir.graph import Layer, Place
from deconv_ir.linter.rule import INFO, DeconvolutionRule, Report
from deconv_ir.linter.subject import Subject

if TYPE_CHECKING:
    from deconv_ir.ops.convolution.deconvolution import Deconvolution


class OutputPaddingTooLarge(DeconvolutionRule):
    """output_padding is not smaller than stride or dilation.

    It settles which of several input extents an output came from, and there are
    stride of them.  Beyond max(stride, dilation) - 1 it adds elements that no
    input reaches; PyTorch and ONNX refuse it.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="2,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>449</dim><dim>447</dim>
                </port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="1,0" auto_pad="explicit"/>
            <input>
                <port id="0"><dim>1</dim><dim>20</dim><dim>224</dim><dim>224</dim></port>
                <port id="1"><dim>20</dim><dim>10</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="3" precision="FP32">
                    <dim>1</dim><dim>10</dim><dim>448</dim><dim>447</dim>
                </port>
            </output>
        </layer>
    """

    code = "IR311"
    name = "output-padding-too-large"
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
        """Compare axis by axis."""
        values = operation.output_padding or ()
        strides = operation.strides or (1,) * len(values)
        dilations = operation.dilations or (1,) * len(values)
        # oneDNN Graph files have more elements than axes: zip ends with the axes.
        for axis, (value, stride, dilation) in enumerate(
            zip(values, strides, dilations, strict=False)
        ):
            if value >= max(stride, dilation):
                yield Report(
                    f"output_padding {value} on spatial axis {axis} must be smaller than "
                    f"max(stride, dilation) = max({stride}, {dilation}) = {max(stride, dilation)}",
                    Place(layer=index, attribute="output_padding"),
                    expected=f"< {max(stride, dilation)}",
                    actual=value,
                )
                return


RULE = OutputPaddingTooLarge
