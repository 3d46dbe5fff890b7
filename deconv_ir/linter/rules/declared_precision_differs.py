"""IR403 declared-precision-differs."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import Place
from deconv_ir.linter.edits import attribute_edit
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class DeclaredPrecisionDiffers(Rule):
    """The precision that an output declares is not the computed one.

    A transposed convolution gives the type of its data, a Convert the type that it
    names.  The bytes of the tensor are of one type only.

    Fails::

        <layer id="5" name="a" type="Convert" version="opset1">
            <data destination_type="f16"/>
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>

    Passes::

        <layer id="5" name="a" type="Convert" version="opset1">
            <data destination_type="f16"/>
            <input>
                <port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="1" precision="FP16"><dim>1</dim><dim>3</dim></port>
            </output>
        </layer>
    """

    code = "IR403"
    name = "declared-precision-differs"
    severity = ERROR
    slugs = ("declared-type",)
    fix = "declares the precision that is computed"

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Add the edit."""
        place = found.place
        assert isinstance(place, Place)
        assert place.layer is not None
        assert place.port is not None
        edits = attribute_edit(
            subject, place.layer, "precision", found.expected.ir_name, port=("output", place.port)
        )
        return Report.of(found, edits)


RULE = DeclaredPrecisionDiffers
