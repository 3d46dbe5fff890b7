"""Judging the examples of a document: whether the dims that they print are the right ones."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import ElementType, parse_element_type
from deconv_ir.ir.findings import Finding, Severity
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.graph import Graph, Layer, Port
from deconv_ir.ir.infer import compare, infer_layer
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import Shape, format_shape, intersect_dims, is_static, parse_dim
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import parse_attributes
from deconv_ir.spec_examples.judgement import Judgement, Verdict
from deconv_ir.spec_examples.rules import file_under
from deconv_ir.spec_examples.scanner import DimText, Example, PortText, scan
from deconv_ir.spec_examples.text import Document
from deconv_ir.spec_examples.values import input_values, misfit


def check_document(document: Document, semantics: Semantics = Semantics.SPEC) -> list[Judgement]:
    """Judge every layer, and every oneDNN Graph file, of a document, in its order."""
    found = [_Check(document, example, semantics).judge() for example in scan(document)]
    if '"graph"' in document.text:
        from deconv_ir.spec_examples.graphs import judge_graphs

        found += judge_graphs(document, semantics)
        found.sort(key=lambda judgement: judgement.example.start)
    return found


def no_examples(document: Document) -> Finding:
    """Say that a document has no example: silence would pass for a clean check."""
    message = "no XML layer example was found"
    return file_under(Finding("no-example", Severity.INFO, message, document.name, 1))


class _UntoldError(Exception):
    """Something that the judgement needs is not in the document."""


class _Check:
    """The judgement of one example."""

    def __init__(self, document: Document, example: Example, semantics: Semantics) -> None:
        self.document = document
        self.file = document.name
        self.example = example
        self.context = Context(semantics)
        self.findings: list[Finding] = []
        self.unknown: list[str] = []

    def judge(self) -> Judgement:
        """Compute the outputs, and compare."""
        try:
            layer, inputs = self.layer()
            outputs = infer_layer(layer, inputs, self.context)
        except _UntoldError as reason:
            return self.untold(str(reason))
        except DeconvError as error:
            return self.wrong(error)
        reasons = self.compare(layer, inputs, outputs)
        computed = tuple(info.shape for info in outputs)
        errors = [f for f in self.findings if f.severity is Severity.ERROR]
        if errors:
            return self.done(Verdict.WRONG, "; ".join(f.message for f in errors), computed)
        if self.unknown:
            self.unknown += self.unstated(layer.operation, inputs)
            return self.untold("; ".join(self.unknown), computed)
        return self.done(Verdict.RIGHT, "; ".join(reasons), computed)

    def done(self, verdict: Verdict, reason: str, computed: tuple[Shape, ...] = ()) -> Judgement:
        """Close the case."""
        findings = tuple(map(file_under, self.findings))
        return Judgement(self.example, verdict, reason, findings, computed)

    def untold(self, reason: str, computed: tuple[Shape, ...] = ()) -> Judgement:
        """Report why nothing can be told."""
        self.add("example-untold", Severity.INFO, f"undecided: {reason}", self.example.line)
        return self.done(Verdict.UNTOLD, reason, computed)

    def wrong(self, error: DeconvError) -> Judgement:
        """Report that the example does not hold together."""
        self.findings.append(
            Finding(
                error.rule or "example",
                Severity.ERROR,
                error.message,
                self.file,
                error.line or self.example.line,
                self.example.label,
                error.expected,
                error.actual,
                error.hint,
            )
        )
        return self.done(Verdict.WRONG, error.message)

    def add(
        self,
        rule: str,
        severity: Severity,
        message: str,
        at: int | DimText,
        expected: object = None,
        actual: object = None,
        hint: str | None = None,
    ) -> None:
        """Note a finding: about a dim, or a line."""
        if isinstance(at, DimText):
            column = self.document.column(at.start)
            line, end = at.line, column + at.end - at.start
        else:
            line, column, end = at, None, None
        label = self.example.label
        self.findings.append(
            Finding(
                rule, severity, message, self.file, line, label, expected, actual, hint, column, end
            )
        )

    def unstated(self, operation: Operation, inputs: Sequence[TensorInfo]) -> list[str]:
        """Name the lists among the inputs whose value no comment states: one may matter."""
        pairs = zip(operation.inputs[1:], inputs[1:], strict=False)
        return [
            f"no comment states the value of {name}"
            for name, info in pairs
            if info.value is None and info.shape is not None and len(info.shape) <= 1
        ]

    # From text to a layer

    def layer(self) -> tuple[Layer, list[TensorInfo]]:
        """Make a layer of the example, and say what is known of its inputs."""
        example = self.example
        if not example.type:
            raise _UntoldError("the type is left out")
        # A Result is the one layer that has none.
        if not example.outputs and example.type != "Result":
            raise _UntoldError("no output port is printed")
        if example.ports_elided:
            raise _UntoldError("ports are left out with '...'")
        operation = self.operation()
        inputs = [self.info(port) for port in example.inputs]
        for i, value in enumerate(input_values(example, operation.inputs)):
            if value is not None:
                inputs[i] = self.with_value(example.inputs[i], inputs[i], value)
        layer = Layer(
            0,
            example.attributes.get("name", ""),
            operation,
            example.type,
            example.attributes.get("version"),
            tuple(map(self.port, example.inputs)),
            tuple(map(self.port, example.outputs)),
            tuple(example.data.items()),
            example.line,
        )
        return layer, inputs

    def operation(self) -> Operation:
        """Find the operation, in the version of the layer or else of the document."""
        example = self.example
        version = example.attributes.get("version") or (
            f"opset{example.versioned}" if example.versioned else None
        )
        cls = find_operation(example.type, version)
        if cls is None:
            named = f"{example.type} of {version}" if version else example.type
            raise _UntoldError(f"no shape rule for {named} is known")
        if example.data_elided:
            raise _UntoldError("attributes are left out with '...'")
        operation, errors = parse_attributes(cls, example.data)
        if operation is None:
            for error in errors:
                error.line = example.data_line or example.line
            raise errors[0]
        return operation

    def port(self, port: PortText) -> Port:
        """Make a port of what is printed."""
        info = self.info(port)
        return Port(0, info.shape, info.element_type, (), port.line - self.example.line)

    def info(self, port: PortText) -> TensorInfo:
        """Say what a port prints; without dims, that is nothing."""
        if port.elided or not port.dims:
            return TensorInfo(None, self.precision(port))
        return TensorInfo(
            tuple(map(printed_dim, (d.text for d in port.dims))), self.precision(port)
        )

    def precision(self, port: PortText) -> ElementType | None:
        """Read `precision`; what is none counts as not stated."""
        text = port.attributes.get("precision")
        try:
            return parse_element_type(text) if text else None
        except ValueError:
            return None

    def with_value(self, port: PortText, info: TensorInfo, value: tuple[int, ...]) -> TensorInfo:
        """Add the value that a comment states."""
        if not port.dims:
            shape: Shape = () if len(value) == 1 else (len(value),)
        else:
            shape = info.shape
        if why := misfit(value, shape or ()):
            raise DeconvError(why, line=port.line, rule="comment-value")
        return TensorInfo(shape, info.element_type, value)

    # Comparison

    def compare(
        self, layer: Layer, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> list[str]:
        """Compare all outputs; return what the computed dims rest on."""
        reasons: list[str] = []
        printed = self.example.outputs
        for i, (port, info) in enumerate(zip(printed, outputs, strict=False)):
            reasons += self.compare_output(layer, inputs, i, port, info.shape)
        # Declared dims have their own findings above, at the line of each dim.
        graph = Graph(name=layer.name, layers=(layer,), edges=(), file=self.file, bare=True)
        self.findings += [
            found._replace(layer=self.example.label)
            for found in compare(graph, 0, inputs, outputs, self.context)
            if found.rule != "declared-dims"
        ]
        return reasons

    def compare_output(
        self,
        layer: Layer,
        inputs: Sequence[TensorInfo],
        index: int,
        port: PortText,
        computed: Shape,
    ) -> list[str]:
        """Compare the dims of one output."""
        name = f"output {index}"
        if computed is None:
            self.unknown.append(f"the rank of {name} is not known")
            return []
        shape = format_shape(computed)
        if port.elided or not port.dims:
            # A scalar has no dims to print.
            if port.elided or computed:
                self.unknown.append(f"dims of {name} are left out (computed {shape})")
            return [f"{name} {shape}"]
        if len(port.dims) != len(computed):
            formula = layer.operation.explain(inputs, self.context, index, 0)
            stated = format_shape(tuple(printed_dim(d.text) for d in port.dims))
            self.add(
                "declared-dims",
                Severity.ERROR,
                f"{name} declares rank {len(port.dims)} {stated}, "
                f"computed is rank {len(computed)} {shape}" + (f": {formula}" if formula else ""),
                port.dims[min(len(port.dims) - 1, len(computed))],
                shape,
                stated,
                "deconv-spec fix writes the computed dims" if is_static(computed) else None,
            )
            return []
        formulas = [
            layer.operation.explain(inputs, self.context, index, axis)
            for axis in range(len(computed))
        ]
        for axis, (stated_dim, dim) in enumerate(zip(port.dims, computed, strict=True)):
            self.compare_dim(index, axis, stated_dim, dim, formulas[axis])
        return [f"{name} {shape}", *dict.fromkeys(f for f in formulas if f)]

    def compare_dim(
        self, output: int, axis: int, dim: DimText, computed: Dim, formula: str | None
    ) -> None:
        """Compare one dim."""
        where = f"output {output}, axis {axis}"
        text = dim.text
        stated = printed_dim(text)
        if intersect_dims(stated, computed) is None:
            self.add(
                "declared-dims",
                Severity.ERROR,
                f"{where}: declared {stated}, computed {computed}"
                + (f": {formula}" if formula else ""),
                dim,
                computed,
                stated,
                "deconv-spec fix writes the computed dim" if isinstance(computed, int) else None,
            )
        elif stated == UNKNOWN and computed != UNKNOWN and text not in ("-1", "?"):
            self.unknown.append(
                f"{where} prints {text!r}, which is not a number (computed {computed})"
            )
        elif stated != computed:
            self.unknown.append(
                f"{where}: {stated} is printed, and {computed} is all that is known"
            )


def printed_dim(text: str) -> Dim:
    """Read a dim; a symbol such as ``H`` may be anything."""
    try:
        return parse_dim(text)
    except ValueError:
        return UNKNOWN
