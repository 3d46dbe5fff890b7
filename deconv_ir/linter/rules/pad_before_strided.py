"""IR605 pad-before-strided."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import INFO, Report, Rule
from deconv_ir.linter.subject import OPENVINO_DECONVOLUTIONS, Subject


class PadBeforeStrided(Rule):
    """A Pad layer stands before a transposed convolution with a stride.

    OpenVINO's CPU plugin may fuse the two, and takes the amounts of the Pad as if
    the stride were 1: the output has a wrong shape and wrong numbers.  Pad by a
    layer that is not fused, or crop the output instead.

    Fails (.bin: i64 0 0 1)::

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
            <layer id="2" name="p" type="Const" version="opset1">
                <data element_type="i64" shape="3" offset="0" size="24"/>
                <output><port id="0" precision="I64"><dim>3</dim></port></output>
            </layer>
            <layer id="3" name="pad" type="Pad" version="opset1">
                <data pad_mode="constant"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                    <port id="1" precision="I64"><dim>3</dim></port>
                    <port id="2" precision="I64"><dim>3</dim></port>
                </input>
                <output>
                    <port id="3" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                </output>
            </layer>
            <layer id="4" name="up" type="ConvolutionBackpropData" version="opset1">
                <data strides="2" dilations="1" pads_begin="0" pads_end="0"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                    <port id="1" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                </input>
                <output>
                    <port id="2" precision="FP32"><dim>1</dim><dim>1</dim><dim>12</dim></port>
                </output>
            </layer>
            <layer id="5" name="r" type="Result" version="opset1">
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>12</dim></port>
                </input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="1"/>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
            <edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="4" to-port="1"/>
            <edge from-layer="4" from-port="2" to-layer="5" to-port="0"/>
        </edges></net>

    Passes (.bin: i64 0 0 1)::

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
            <layer id="2" name="p" type="Const" version="opset1">
                <data element_type="i64" shape="3" offset="0" size="24"/>
                <output><port id="0" precision="I64"><dim>3</dim></port></output>
            </layer>
            <layer id="3" name="pad" type="Pad" version="opset1">
                <data pad_mode="constant"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>3</dim></port>
                    <port id="1" precision="I64"><dim>3</dim></port>
                    <port id="2" precision="I64"><dim>3</dim></port>
                </input>
                <output>
                    <port id="3" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                </output>
            </layer>
            <layer id="4" name="up" type="ConvolutionBackpropData" version="opset1">
                <data strides="1" dilations="1" pads_begin="0" pads_end="0"/>
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>5</dim></port>
                    <port id="1" precision="FP32"><dim>1</dim><dim>1</dim><dim>4</dim></port>
                </input>
                <output>
                    <port id="2" precision="FP32"><dim>1</dim><dim>1</dim><dim>8</dim></port>
                </output>
            </layer>
            <layer id="5" name="r" type="Result" version="opset1">
                <input>
                    <port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>8</dim></port>
                </input>
            </layer>
        </layers><edges>
            <edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="1"/>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
            <edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
            <edge from-layer="1" from-port="0" to-layer="4" to-port="1"/>
            <edge from-layer="4" from-port="2" to-layer="5" to-port="0"/>
        </edges></net>
    """

    code = "IR605"
    name = "pad-before-strided"
    severity = INFO
    types = (
        "ConvolutionBackpropData",
        "GroupConvolutionBackpropData",
    )

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look at what feeds the data of each transposed convolution."""
        layers, sources = subject.graph.layers, subject.topology.sources
        for index, layer in subject.layers(*OPENVINO_DECONVOLUTIONS):
            source = sources[index][0] if sources[index] else None
            strides = getattr(layer.operation, "strides", None) or ()
            if source is None or layers[source[0]].type != "Pad" or max(strides, default=1) < 2:
                continue
            pad = layers[source[0]]
            yield Report(
                f"strides are {','.join(map(str, strides))} and the Pad {pad.name!r} in line "
                f"{pad.line} stands before: OpenVINO's CPU plugin may fuse them wrongly",
                Place(layer=index, attribute="strides"),
                related=source[0],
            )


RULE = PadBeforeStrided
