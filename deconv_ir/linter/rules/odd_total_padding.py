"""IR606 odd-total-padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.graph import Layer, Place
from deconv_ir.linter.rule import INFO, DeconvolutionRule, Report
from deconv_ir.linter.subject import Subject

if TYPE_CHECKING:
    from deconv_ir.ops.convolution.deconvolution import Deconvolution


class OddTotalPadding(DeconvolutionRule):
    """The total padding is odd, and ONNX puts the odd element on the other side.

    same_upper cuts one element more at the start in OpenVINO and oneDNN's
    ConvolutionBackwardData, at the end in ONNX and oneDNN's ConvTranspose.  An
    importer that takes the word over shifts the output by one element.

    Fails (.bin: i64 5)::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,1,3" element_type="f32"/>
                <output>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                </output>
            </layer>
            <layer id="1" name="w" type="Parameter" version="opset1">
                <data shape="1,1,4" element_type="f32"/>
                <output>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                </output>
            </layer>
            <layer id="2" name="y" type="Const" version="opset1">
                <data element_type="i64" shape="1" offset="0" size="8"/>
                <output><port id="0" precision="I64"><dim>1</dim></port></output>
            </layer>
            <layer id="3" name="up" type="ConvolutionBackpropData" version="opset1">
                <data strides="2" dilations="1" pads_begin="0" pads_end="0" auto_pad="same_lower"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                    <port id="1" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                    <port id="2" precision="I64"><dim>1</dim></port>
                </input>
                <output>
                    <port id="3" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                </output>
            </layer>
            <layer id="4" name="r" type="Result" version="opset1">
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                </input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
            <edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
        </edges></net>

    Passes (.bin: i64 6)::

        <net name="n" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="1,1,3" element_type="f32"/>
                <output>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                </output>
            </layer>
            <layer id="1" name="w" type="Parameter" version="opset1">
                <data shape="1,1,4" element_type="f32"/>
                <output>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                </output>
            </layer>
            <layer id="2" name="y" type="Const" version="opset1">
                <data element_type="i64" shape="1" offset="0" size="8"/>
                <output><port id="0" precision="I64"><dim>1</dim></port></output>
            </layer>
            <layer id="3" name="up" type="ConvolutionBackpropData" version="opset1">
                <data strides="2" dilations="1" pads_begin="0" pads_end="0" auto_pad="same_lower"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                    <port id="1" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                    <port id="2" precision="I64"><dim>1</dim></port>
                </input>
                <output>
                    <port id="3" precision="FP32"><dim>1</dim><dim>1</dim><dim>6</dim></port>
                </output>
            </layer>
            <layer id="4" name="r" type="Result" version="opset1">
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>6</dim></port>
                </input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
            <edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
        </edges></net>
    """

    code = "IR606"
    name = "odd-total-padding"
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
        if operation.auto_pad not in (PadMode.SAME_UPPER, PadMode.SAME_LOWER):
            return
        geometry = operation.geometry(subject.inputs(index), subject.context)
        for axis, found in enumerate(geometry or ()):
            if (found.pad_begin + found.pad_end) % 2:
                yield Report(
                    f"total padding of spatial axis {axis} is odd: pad_begin {found.pad_begin}, "
                    f"pad_end {found.pad_end}; ONNX has them the other way round",
                    Place(layer=index, attribute="auto_pad"),
                    actual=found.pad_begin + found.pad_end,
                )


RULE = OddTotalPadding
