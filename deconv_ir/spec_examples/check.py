"""Check of the examples of a document: whether their printed dims are correct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from deconv_ir.edits import Edit
from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding, Fix, GraphLocation, Severity
from deconv_ir.hints import Advice, Hint
from deconv_ir.ir.dtypes import ElementType, parse_element_type
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.graph import Graph, Layer, Port
from deconv_ir.ir.infer import compare, infer_layer
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import Shape, format_shape, intersect_dims
from deconv_ir.ops import find_operation
from deconv_ir.ops._index import MODULES
from deconv_ir.ops.base import attributes_of, parse_attributes
from deconv_ir.spec_examples.corrections import corrections
from deconv_ir.spec_examples.dims import is_malformed, meant_number, printed_dim
from deconv_ir.spec_examples.explanations import other_explanation
from deconv_ir.spec_examples.notebook import Notebook
from deconv_ir.spec_examples.rules import Judgement, Verdict, file_under, undecided
from deconv_ir.spec_examples.scanner import Example, PortText, scan
from deconv_ir.spec_examples.text import Document
from deconv_ir.spec_examples.values import input_values, misfit
from deconv_ir.suggestions import nearest, one_edit_apart

if TYPE_CHECKING:
    from deconv_ir.spec_examples.proof import Prover


def check_document(document: Document, semantics: Semantics = Semantics.SPEC) -> list[Judgement]:
    """Check every layer, and every oneDNN Graph file, of a document, in order."""
    checks = [_Check(document, example, semantics) for example in scan(document)]
    found = [check.judge() for check in checks]
    if any(judgement.verdict is Verdict.WRONG and judgement.computed for judgement in found):
        from deconv_ir.spec_examples.proof import Prover

        prover = Prover(document, found)
        found = [c.with_proof(j, prover) for c, j in zip(checks, found, strict=True)]
    if "graph" in document.text:
        from deconv_ir.spec_examples.graphs import MAY_HAVE_GRAPHS, judge_graphs

        if MAY_HAVE_GRAPHS.search(document.text):
            found += judge_graphs(document, semantics)
            found.sort(key=lambda judgement: judgement.example.start)
    if isinstance(document, Notebook):
        return [_in_file(judgement, document) for judgement in found]
    return found


def _in_file(judgement: Judgement, notebook: Notebook) -> Judgement:
    """Convert to lines of a notebook's file, and name cells and their lines in the message."""

    def moved(finding: Finding) -> Finding:
        place, line, before = notebook.shown(finding.line or 1)
        columns = [c and c + before for c in (finding.column, finding.end_column)]
        return finding._replace(
            message=place + finding.message, line=line, column=columns[0], end_column=columns[1]
        )

    example = judgement.example
    example.cell, example.line, _ = notebook.shown(example.line)
    return judgement._replace(findings=tuple(map(moved, judgement.findings)))


def no_examples(document: Document) -> Finding:
    """Report that a document has no examples: silence would look like a successful check."""
    message = "no XML layer example was found"
    return file_under(Finding(message, file=document.name, line=1, rule="no-example"))


CONVOLUTIONS = (
    *("Convolution", "GroupConvolution"),
    *("ConvolutionBackpropData", "GroupConvolutionBackpropData"),
)
"""Types whose outputs have the type of their data."""
_PADS = ("pads_begin", "pads_end")
_EXPLAINED = "; {} would give the printed dims"
_PADDED = ("same_upper", "same_lower", "valid", "SAME_UPPER", "SAME_LOWER", "VALID")


class _UndecidedError(Exception):
    """The document lacks information that the judgement needs."""


class _Check:
    """The judgement of one example."""

    def __init__(self, document: Document, example: Example, semantics: Semantics) -> None:
        self.document = document
        self.file = document.name
        self.example = example
        self.context = Context(semantics)
        self.findings: list[Finding] = []
        self.unknown: list[str] = []
        self.explanation = ""
        # Place of a finding about output dims -> hint of its fix, and the start of possible edits.
        self.locations: dict[GraphLocation, tuple[Hint, list[int]]] = {}
        self.read: tuple[Layer, list[TensorInfo]] | None = None

    def judge(self) -> Judgement:
        self.typos()
        try:
            self.read = layer, inputs = self.layer()
            outputs = infer_layer(layer, inputs, self.context)
        except _UndecidedError as reason:
            return self.wrong() if self.errors else self.undecided(str(reason))
        except DeconvError as error:
            self.report(error)
            return self.wrong()
        reasons = self.compare(layer, inputs, outputs)
        computed = tuple(info.shape for info in outputs)
        if self.errors:
            if any(found.rule == "declared-dims" for found in self.errors):
                self.explain(layer, inputs, computed)
            return self.wrong(computed)
        if self.unknown:
            self.unknown += self.unstated(layer.operation, inputs)
            return self.undecided("; ".join(self.unknown), computed)
        return self.done(Verdict.RIGHT, reasons, computed)

    def done(
        self, verdict: Verdict, reasons: Iterable[str], computed: tuple[Shape, ...] = ()
    ) -> Judgement:
        findings = tuple(map(file_under, self.findings))
        explanation = self.explanation
        return Judgement(self.example, verdict, tuple(reasons), findings, computed, explanation)

    def explain(
        self, layer: Layer, inputs: Sequence[TensorInfo], computed: tuple[Shape, ...]
    ) -> None:
        """Search for another explanation of wrong dims."""
        self.explanation = other_explanation(layer, inputs, computed, self.context)

    def undecided(self, reason: str, computed: tuple[Shape, ...] = ()) -> Judgement:
        """Report the reason why the example is undecided."""
        self.findings.append(undecided(reason, self.file, self.example.line, self.example.label))
        return self.done(Verdict.UNTOLD, [reason], computed)

    @property
    def errors(self) -> list[Finding]:
        """The findings that make the example wrong."""
        return [f for f in self.findings if f.severity is Severity.ERROR]

    def wrong(self, computed: tuple[Shape, ...] = ()) -> Judgement:
        """Return the verdict "wrong"."""
        return self.done(Verdict.WRONG, [f.message for f in self.errors], computed)

    def with_proof(self, judgement: Judgement, prover: Prover) -> Judgement:
        """Find the dims that are wrong themselves, and mention `fix` if it can correct them."""
        if judgement.verdict is not Verdict.WRONG or not judgement.computed or self.read is None:
            return judgement
        proven = prover.proven(self.example, *self.read, judgement.computed, self.context)
        explanation = "" if proven else judgement.explanation
        judgement = judgement._replace(
            proven=proven,
            explanation=explanation,
            reasons=tuple(_explained(found, explanation).message for found in self.errors),
            findings=tuple(_explained(found, explanation) for found in judgement.findings),
        )
        safe, _ = corrections(judgement, self.document)
        edits, _ = corrections(judgement, self.document, unsafe=True)
        return judgement._replace(
            findings=tuple(self.with_fix(found, edits, safe) for found in judgement.findings)
        )

    def with_fix(self, found: Finding, edits: Sequence[Edit], safe: Sequence[Edit]) -> Finding:
        """Add the edits that correct the dims, if `fix` makes them."""
        hint, starts = self.locations.get(found.part, (None, []))
        own = tuple(edit for edit in edits if edit[0] in starts)
        if hint is None or not own:
            return found
        is_safe = all(edit in safe for edit in own)
        return found._replace(
            hint=hint() if is_safe else Hint.FIX_DOUBTFUL_DIM(), fix=Fix(own, safe=is_safe)
        )

    def report(self, error: DeconvError) -> None:
        """Add an error of the library to the findings."""
        line = error.line or self.example.line
        found = error.finding._replace(file=self.file, line=line, layer=self.example.label)
        self.findings.append(found._replace(location=None))

    def mistake(
        self, rule: str, message: str, span: tuple[int, int], hint: Advice | None = None
    ) -> Finding:
        """Make a finding about a part of the document."""
        start, end = span
        column = self.document.column(start)
        return Finding(
            message,
            hint=hint,
            file=self.file,
            line=self.document.line(start),
            column=column,
            end_column=column + end - start,
            layer=self.example.label,
            rule=rule,
        )

    def typos(self) -> None:
        """Report misspelt tags, and inputs whose dims are not numbers."""
        for typo in self.example.typos:
            message = f"<{typo.found}> is not an element of a layer"
            hint = Hint.DID_YOU_MEAN_TAG(typo.meant)
            span = typo.start, typo.end
            self.findings.append(self.mistake("misspelt", message, span, hint))
        for index, port in enumerate(self.example.inputs):
            for axis, dim in enumerate(port.dims):
                if is_malformed(dim.text):
                    message = f"input {index}, axis {axis}: {dim.text!r} is not a number"
                    hint = Hint.DID_YOU_MEAN_NUMBER(meant_number(dim.text))
                    self.findings.append(
                        self.mistake("not-a-number", message, (dim.start, dim.end), hint)
                    )

    def unstated(self, operation: Operation, inputs: Sequence[TensorInfo]) -> list[str]:
        """Return the names of list inputs without a value in a comment, which may matter."""
        pairs = zip(operation.inputs[1:], inputs[1:], strict=False)
        return [
            f"no comment states the value of {name}"
            for name, info in pairs
            if info.value is None
            and info.reals is None
            and info.shape is not None
            and len(info.shape) <= 1
        ]

    # From text to a layer

    def layer(self) -> tuple[Layer, list[TensorInfo]]:
        example = self.example
        if not example.type:
            raise _UndecidedError("the type is left out")
        # Only a Result may have no output port.
        if not example.outputs and example.type != "Result":
            raise _UndecidedError("no output port is printed")
        if example.ports_elided:
            raise _UndecidedError("ports are left out with '...'")
        operation = self.operation()
        ports = self.in_order(operation)
        inputs = [self.info(port) for port in ports]
        for i, value in enumerate(input_values(example, ports, operation.inputs)):
            if value is not None:
                inputs[i] = self.with_value(ports[i], inputs[i], value)
        layer = Layer(
            0,
            example.attributes.get("name", ""),
            operation,
            example.type,
            example.attributes.get("version"),
            tuple(map(self.port, ports)),
            tuple(map(self.port, example.outputs)),
            tuple(example.data.items()),
            example.line,
        )
        return layer, inputs

    def in_order(self, operation: Operation) -> list[PortText]:
        """Return the input ports in the order of the operation.

        OpenVINO's page of BatchNormInference-1 has the data first, its files have them third.
        """
        ports = self.example.inputs
        moved = operation.type == "BatchNormInference" and operation.inputs[0] == "gamma"
        if moved and len(ports) == 5 and len(ports[0].dims) > 1:
            return [ports[1], ports[2], ports[0], *ports[3:]]
        return ports

    def operation(self) -> Operation:
        """Find the operation, in the version of the layer or else of the document."""
        example = self.example
        version = example.attributes.get("version") or (
            f"opset{example.versioned}" if example.versioned else None
        )
        cls = find_operation(example.type, version)
        if cls is None:
            if meant := _meant_type(example.type):
                message = f"{example.type} is not a known operation"
                hint = Hint.DID_YOU_MEAN(meant)
                raise DeconvError(message, line=example.line, rule="misspelt", hint=hint)
            named = f"{example.type} of {version}" if version else example.type
            raise _UndecidedError(f"no shape rule for {named} is known")
        if not self.leaves_data_out(cls):
            self.check_names(cls)
        if example.data_elided or self.leaves_data_out(cls):
            raise _UndecidedError("attributes are left out with '...'")
        if cls.body_names:
            raise _UndecidedError("the outputs follow from its bodies, whose layers are checked")
        operation, errors = parse_attributes(cls, example.data)
        if operation is None:
            for error in errors:
                error.line = example.data_line or example.line
            raise errors[0]
        return operation

    def leaves_data_out(self, cls: type[Operation]) -> bool:
        """Whether ``...`` in the tag stands for a ``<data>`` that the operation requires."""
        example = self.example
        required = any(spec.required for spec in attributes_of(cls))
        return required and example.elided and example.data_line is None

    def check_names(self, cls: type[Operation]) -> None:
        """Report attributes that the operation does not have, and missing required ones."""
        specs = {spec.name: spec for spec in attributes_of(cls)}
        line = self.example.data_line or self.example.line
        for name in self.example.data:
            if name not in specs:
                message = f"{cls.type} has no attribute {name!r}"
                hint = nearest(name, specs) or Hint.ATTRIBUTES_ARE(", ".join(specs) or "none")
                self.report(DeconvError(message, line=line, rule="unknown-attribute", hint=hint))
        if self.example.data_elided:
            return
        # Explicit pads have no meaning with another auto_pad.  An attribute without a
        # default is reported as missing when the attributes are read.
        ignored = _PADS if self.example.data.get("auto_pad", "explicit") in _PADDED else ()
        missing = [
            repr(name)
            for name, spec in specs.items()
            if spec.required and spec.has_default and name not in (*self.example.data, *ignored)
        ]
        if missing:
            are = "is" if len(missing) == 1 else "are"
            message = f"{', '.join(missing)} {are} missing, which {cls.type} requires"
            self.report(DeconvError(message, line=line, rule="attribute-missing"))

    def port(self, port: PortText) -> Port:
        info = self.info(port)
        return Port(0, info.shape, info.element_type, (), port.line - self.example.line)

    def info(self, port: PortText) -> TensorInfo:
        """Return the info of a printed port; without dims, the shape is unknown."""
        if port.elided or not port.dims:
            return TensorInfo(None, self.precision(port))
        return TensorInfo(
            tuple(map(printed_dim, (d.text for d in port.dims))), self.precision(port)
        )

    def precision(self, port: PortText) -> ElementType | None:
        """Read `precision`; an invalid value is treated as missing."""
        text = port.attributes.get("precision")
        try:
            return parse_element_type(text) if text else None
        except ValueError:
            return None

    def with_value(self, port: PortText, info: TensorInfo, value: tuple[float, ...]) -> TensorInfo:
        """Add the value that is given in a comment."""
        if not port.dims:
            shape: Shape = () if len(value) == 1 else (len(value),)
        else:
            shape = info.shape
        if why := misfit(value, shape or ()):
            raise DeconvError(why, line=port.line, rule="comment-value")
        whole = tuple(number for number in value if isinstance(number, int))
        integers = whole if len(whole) == len(value) else None
        is_real = info.element_type is None or info.element_type.is_float
        return TensorInfo(
            shape, info.element_type, integers, tuple(map(float, value)) if is_real else None
        )

    # Comparison

    def compare(
        self, layer: Layer, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> list[str]:
        """Compare all outputs; return the formulas of the computed dims."""
        reasons: list[str] = []
        for i, (port, info) in enumerate(zip(self.example.outputs, outputs, strict=False)):
            reasons += self.reasons(layer, inputs, i, port, info.shape)
            self.check_type(layer, inputs, i, info)
        graph = Graph(name=layer.name, layers=(layer,), edges=(), file=self.file, bare=True)
        for found in compare(graph, 0, inputs, outputs, self.context):
            if found.rule == "declared-dims":
                found = self.at_dim(found, outputs[found.part.port or 0].shape or ())
            self.findings.append(found._replace(layer=self.example.label))
        return reasons

    def check_type(
        self, layer: Layer, inputs: Sequence[TensorInfo], index: int, info: TensorInfo
    ) -> None:
        """Check a printed output type that follows from inputs without a printed one."""
        port = layer.outputs[index]
        stated = port.element_type
        if stated is None or info.element_type is not None:
            return
        given = [i if i.element_type else i._replace(element_type=stated) for i in inputs[:1]]
        line = layer.line_of(port)
        found = Finding("", file=self.file, line=line, layer=self.example.label)
        try:
            infer_layer(layer, [*given, *inputs[1:]], self.context)
        except DeconvError as error:
            message = f"output {index} declares precision {stated.ir_name}: {error.message}"
            self.findings.append(found._replace(message=message, rule="declared-type"))
            return
        if layer.type in CONVOLUTIONS and not stated.is_float and stated.bits == 64:
            message = (
                f"output {index} declares precision {stated.ir_name}, and no input of a "
                f"{layer.type} states it"
            )
            self.findings.append(
                found._replace(message=message, rule="unlikely-type", severity=Severity.WARNING)
            )

    def at_dim(self, found: Finding, computed: tuple[Dim, ...]) -> Finding:
        """Move a finding about declared dims to the dim."""
        dims = self.example.outputs[found.part.port or 0].dims
        axis = found.part.axis
        if axis is None:
            dim, hint = dims[min(len(dims) - 1, len(computed))], Hint.FIX_EXAMPLE_DIMS
            starts = [at for d in dims for at in (d.start, d.unit_start, d.unit_end)]
        else:
            dim, hint, starts = dims[axis], Hint.FIX_EXAMPLE_DIM, [dims[axis].start]
        self.locations[found.part] = hint, starts
        column = self.document.column(dim.start)
        end = column + dim.end - dim.start
        return found._replace(line=dim.line, column=column, end_column=end, hint=None)

    def reasons(
        self,
        layer: Layer,
        inputs: Sequence[TensorInfo],
        index: int,
        port: PortText,
        computed: Shape,
    ) -> list[str]:
        """Return the shape and the formulas of an output; collect its unknown dims."""
        name = f"output {index}"
        if computed is None:
            self.unknown.append(f"the rank of {name} is not known")
            return []
        shape = format_shape(computed)
        if port.elided or not port.dims:
            # A scalar has no dims.
            if port.elided or computed:
                self.unknown.append(f"dims of {name} are left out (computed {shape})")
            return [f"{name} {shape}"]
        if len(port.dims) != len(computed):
            return []
        for axis, (printed, dim) in enumerate(zip(port.dims, computed, strict=True)):
            where = f"{name}, axis {axis}"
            stated = printed_dim(printed.text)
            if is_malformed(printed.text):
                message = f"{where}: {printed.text!r} is not a number, computed {dim}"
                found = self.mistake("not-a-number", message, (printed.start, printed.end))
                location = GraphLocation(layer=0, side="output", port=index, axis=axis)
                self.locations[location] = Hint.FIX_EXAMPLE_DIM, [printed.start]
                self.findings.append(found._replace(location=location))
            elif stated == UNKNOWN and dim != UNKNOWN and printed.text not in ("-1", "?"):
                self.unknown.append(
                    f"{where} prints {printed.text!r}, which is not a number (computed {dim})"
                )
            elif stated != dim and intersect_dims(stated, dim) is not None:
                self.unknown.append(f"{where}: {stated} is printed, but only {dim} can be inferred")
        formulas = [
            layer.operation.explain(inputs, self.context, index, axis)
            for axis in range(len(computed))
        ]
        return [f"{name} {shape}", *dict.fromkeys(f for f in formulas if f)]


def _explained(found: Finding, explanation: str) -> Finding:
    """Add another explanation of wrong dims, if there is one, to a finding about them."""
    if not explanation or found.rule != "declared-dims":
        return found
    return found._replace(message=found.message + _EXPLAINED.format(explanation))


def _meant_type(type_name: str) -> str | None:
    """Return the operation whose type is one edit away, or differs in case; None if not found."""
    from deconv_ir.ops.opsets import OPERATIONS

    known = OPERATIONS | MODULES.keys()
    if type_name in known:
        return None
    word = type_name.lower()
    found = [k for k in known if k.lower() == word or one_edit_apart(k.lower(), word)]
    return min(found, default=None)
