"""IR304 float-in-integer-list."""

from __future__ import annotations

import re

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class FloatInIntegerList(Rule):
    """A list of whole numbers is written with floats.

    OpenVINO's reader cuts them off in silence: ``2.7`` becomes 2.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2.0,2.0" dilations="1,1" pads_begin="1,1"
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

    code = "IR304"
    name = "float-in-integer-list"
    severity = ERROR
    slugs = ("attribute-value",)
    fix = "writes 2.0 as 2; other fractions are left for you to decide"

    @staticmethod
    def claims(found: DeconvError | Finding) -> bool:
        """Claim what this rule is about."""
        texts = str(found.actual).split(",")
        return "whole number" in str(found.expected) and all(_is_number(t) for t in texts)

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Add the edit, where no number has a fraction."""
        report = Report.of(found)
        place = found.place
        if isinstance(place, Place) and place.layer is not None and place.attribute is not None:
            written = dict(subject.graph.layers[place.layer].attributes).get(place.attribute, "")
            whole = _whole(written)
            if whole is not None:
                report.edits = subject.replace(place, whole)
        return report


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _whole(text: str) -> str | None:
    """Write whole floats as integers, keeping the spaces; None where one has a fraction."""
    parts = re.split(r"(\s*,\s*)", text)
    for i in range(0, len(parts), 2):
        if not _is_number(parts[i]) or not (value := float(parts[i])).is_integer():
            return None
        parts[i] = parts[i].strip() if parts[i].strip().lstrip("-").isdigit() else str(int(value))
    return "".join(parts)


RULE = FloatInIntegerList
