"""IR308 auto-pad-refused."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.ir.graph import Layer, Place
from deconv_ir.linter.rule import WARNING, LayerRule, Report
from deconv_ir.linter.subject import Subject

READ = ("explicit", "same_upper", "same_lower", "valid")


class AutoPadRefused(LayerRule):
    """auto_pad is spelt in a way that OpenVINO's reader refuses.

    The documents give None as its default, but OpenVINO reads
    no such word, and no spaces around a word.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="none"/>
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

    code = "IR308"
    name = "auto-pad-refused"
    severity = WARNING
    types = (
        "ConvolutionBackpropData",
        "GroupConvolutionBackpropData",
    )
    fix = "writes the word that means the same"

    def check_layer(self, index: int, layer: Layer, subject: Subject) -> Iterator[Report]:
        """Look at the spelling."""
        if not layer.operation.implemented:
            return
        written = dict(layer.attributes).get("auto_pad")
        if written is None or written.lower() in READ:
            return
        word = written.strip().lower()
        meant = "explicit" if word in ("none", "") else word
        place = Place(layer=index, attribute="auto_pad")
        yield Report(
            f"auto_pad {written!r} is refused by OpenVINO's reader; it reads {', '.join(READ)}",
            place,
            expected=meant,
            actual=written,
            edits=subject.replace(place, meant),
        )


RULE = AutoPadRefused
