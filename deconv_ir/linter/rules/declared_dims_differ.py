"""IR401 declared-dims-differ."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.graph import Place
from deconv_ir.ir.shapes import format_shape, intersect_dims
from deconv_ir.linter.edits import dim_text, dims_edits
from deconv_ir.linter.rule import ERROR, Report, Rule
from deconv_ir.linter.subject import Subject


class DeclaredDimsDiffer(Rule):
    """The dims that an output declares are not those that are computed.

    OpenVINO's reader passes over declared dims and computes its own.  A tool that
    trusts them allocates too little, or shows a wrong model.  The message has the
    formula with its numbers, axis by axis.

    Fails::

        <layer id="5" name="up" type="ConvolutionBackpropData" version="opset1">
            <data strides="2,2" dilations="1,1" pads_begin="1,1"
                  pads_end="1,1" output_padding="0,0" auto_pad="explicit"/>
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

    code = "IR401"
    name = "declared-dims-differ"
    severity = ERROR
    slugs = ("declared-dims",)
    fix = "declares the dims that are computed"

    def check(self, subject: Subject) -> Iterator[Report]:
        """Look at what is compatible, and still not what is computed."""
        yield from super().check(subject)
        if not subject.graph.bare:
            yield from self.without_dims(subject)
            yield from self.narrowed(subject)

    def without_dims(self, subject: Subject) -> Iterator[Report]:
        """Look for outputs without dims: only scalars and dynamic ranks have none."""
        for index, layer in enumerate(subject.graph.layers):
            for port, declared in enumerate(layer.outputs):
                if declared.shape is not None or not layer.operation.implemented:
                    continue
                computed = subject.outputs(index)[port].shape
                if computed:
                    yield Report(
                        f"output {port} declares no dims, computed is rank {len(computed)} "
                        f"{format_shape(computed)}",
                        Place(layer=index, side="output", port=port),
                        expected=format_shape(computed),
                        edits=dims_edits(subject, index, "output", port, computed),
                    )

    def narrowed(self, subject: Subject) -> Iterator[Report]:
        """Look for Parameters that declare a number where their shape allows more."""
        for index, layer in subject.layers("Parameter"):
            for declared, info in zip(layer.outputs, subject.outputs(index), strict=False):
                stated, computed = declared.shape, info.shape
                if not stated or not computed or len(stated) != len(computed):
                    continue
                for axis, (a, b) in enumerate(zip(stated, computed, strict=True)):
                    if dim_text(a) != dim_text(b) and intersect_dims(a, b) is not None:
                        yield Report(
                            f"output 0, axis {axis}: declared {a}, the attribute shape says {b}",
                            Place(layer=index, side="output", port=0, axis=axis),
                            expected=str(b),
                            actual=str(a),
                            edits=dims_edits(subject, index, "output", 0, computed),
                        )
                        break

    @staticmethod
    def claims(found: DeconvError | Finding) -> bool:
        """Claim what is known to the last number; intervals are another rule's."""
        return not isinstance(found.expected, Interval) and not isinstance(found.actual, Interval)

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Add the edit."""
        place = found.place
        assert isinstance(place, Place)
        assert place.layer is not None
        assert place.port is not None
        shape = subject.outputs(place.layer)[place.port].shape
        return Report.of(found, dims_edits(subject, place.layer, "output", place.port, shape))


RULE = DeclaredDimsDiffer
