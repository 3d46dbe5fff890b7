"""The check of one file: read, connect, infer, run the rules."""

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.errors import DeconvError, InputError, WeightsError
from deconv_ir.findings import Finding, GraphLocation, Severity
from deconv_ir.formats import parse_bytes, read_file
from deconv_ir.formats.format import ParsedFile
from deconv_ir.formats.openvino_xml.weights import weights_beside, weights_error
from deconv_ir.formats.registry import FORMATS, format_named
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Graph, Layer
from deconv_ir.ir.infer import Inference
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import compatible, format_shape, intersect
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.linter.catalogue import FALLBACK, RULES, is_claimed, rule_for
from deconv_ir.linter.context import LintContext, infer_with_evidence
from deconv_ir.linter.options import CheckOptions, choose
from deconv_ir.linter.rule import Rule

if TYPE_CHECKING:
    from deconv_ir.linter.evidence import Evidence
    from deconv_ir.linter.suppress import Suppressions
    from deconv_ir.linter.targets.verdict import TargetVerdict
    from deconv_ir.linter.weights import RecordedWeights

MAX_SHOWN = 1000
"""Maximum number of characters of a line that are kept."""


class FileResult(NamedTuple):
    """The result of checking one file."""

    file: str
    findings: list[Finding]
    """In the order of the file."""
    layers: int = 0
    passed_over: tuple[tuple[str, int], ...] = ()
    """Types without a shape rule, and their numbers of layers."""
    suppressed: int = 0
    """Number of findings silenced by comments in the file."""
    hidden: tuple[tuple[Severity, int], ...] = ()
    """Findings that were not requested, by severity; see `CheckOptions.hidden`."""
    parsed: ParsedFile | None = None
    reads: tuple[tuple[int, int], ...] | None = None
    """The bytes of the .bin on which the findings depend; None if it was not opened."""
    lines: Mapping[int, str] = MappingProxyType({})
    """Line number -> text, for lines with findings."""
    fixes: tuple[tuple[str, int], ...] = ()
    """Codes of the findings that `fix_bytes` fixed, and their numbers."""
    verdicts: "tuple[TargetVerdict, ...]" = ()
    """Whether the file runs on each target; see `CheckOptions.targets`."""

    @property
    def is_blocked(self) -> bool:
        """Whether a target cannot run the file."""
        return any(verdict.word == "blocked" for verdict in self.verdicts)


def check_file(
    path: str | os.PathLike[str],
    options: CheckOptions,
    *,
    weights: str | os.PathLike[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> FileResult:
    """Check an IR; an invalid file gives findings, not an error.

    Without `weights`, the .bin is the one next to the .xml.
    """
    name = str(path)
    data = read_or_check(name, options, limits)
    if isinstance(data, FileResult):
        return data
    return check_bytes(data, name, options, weights or weights_beside(path), limits)


def read_or_check(file: str, options: CheckOptions, limits: Limits) -> bytes | FileResult:
    """Return the bytes of a file, or the result with an error if it cannot be read."""
    try:
        return read_file(file, limits)
    except DeconvError as error:
        parsed = ParsedFile(file)
        parsed.errors.append(error)
        return check_parsed(parsed, options)


def check_bytes(
    data: bytes,
    name: str,
    options: CheckOptions,
    weights: str | os.PathLike[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    resume: bool = True,
) -> FileResult:
    """Check an IR given by its bytes; `weights` is the path of its .bin.

    With `resume`, a layer that contradicts the declared dims on all sides is one finding, and
    inference continues with these dims; without it, each such dim is a finding.
    """
    parsed = parse_bytes(data, name, limits)
    return check_parsed(parsed, options, weights, resume=resume)


def check_parsed(
    parsed: ParsedFile,
    options: CheckOptions,
    weights: str | os.PathLike[str] | None = None,
    *,
    resume: bool = True,
) -> FileResult:
    """Check an IR that has been read; see `check_bytes`."""
    context = open_context(parsed, options, weights, resume=resume)
    contexts = [context]
    if context.bodies:
        contexts = list(context.with_bodies())
    graph, opened = parsed.graph, context.weights
    suppressions = _suppressions(contexts)
    found: list[Finding] = []
    suppressed = 0
    hidden: dict[Severity, int] = {}
    for context, code in _runs(options, contexts, suppressions):
        for finding in _found(RULES[code], context):
            if suppressions is not None and _is_silent(suppressions, code, finding, context):
                suppressed += code not in options.hidden
                continue
            severity = options.severity_of(code)
            if code in options.hidden:
                hidden[severity] = hidden.get(severity, 0) + 1
                continue
            if code in options.unfixable:
                finding = finding._replace(fix=None)
            found.append(_complete(finding, RULES[code], severity, context))
    found.sort(key=lambda finding: (finding.line or 0, finding.column or 0, finding.code))
    verdicts: tuple[TargetVerdict, ...] = ()
    if options.targets:
        from deconv_ir.linter.targets.verdict import judge

        verdicts = judge(contexts, _all_findings(contexts), options.targets)
    return FileResult(
        file=parsed.file or "",
        findings=found,
        layers=0 if graph is None else len(graph.layers),
        passed_over=() if graph is None else _passed_over(contexts[0]),
        suppressed=suppressed,
        hidden=tuple(hidden.items()),
        parsed=parsed,
        reads=None if opened is None else tuple(opened.reads),
        lines=_lines(parsed, found),
        verdicts=verdicts,
    )


def _all_findings(contexts: Sequence[LintContext]) -> Iterator[Finding]:
    """Iterate over the warnings and errors of all rules but those about targets.

    A verdict depends neither on the rules that were asked for nor on comments.
    """
    options = choose(severity=Severity.WARNING)
    for context in contexts:
        for code in _to_run(options, context):
            if code in options.rules and not RULES[code].target:
                for finding in _found(RULES[code], context):
                    yield _complete(finding, RULES[code], RULES[code].severity, context)


def open_context(
    parsed: ParsedFile,
    options: CheckOptions,
    weights: str | os.PathLike[str] | None = None,
    *,
    resume: bool = True,
) -> LintContext:
    """Connect and infer a document and its bodies; see `check_bytes`."""
    graph = parsed.graph
    errors: list[DeconvError] = []
    opened: RecordedWeights | None = None
    inference: Inference | None = None
    evidence: Evidence | None = None
    inference_context = Context(options.semantics)
    if graph is not None:
        own = format_named(parsed.format)
        beside = weights if own is None or own.weights_suffix else None
        opened = _open_weights(graph, beside, errors)
        inference_context = Context(options.semantics, opened)
        given = _given(graph, options)
        resume = resume and not given and not graph.bare
        inference, evidence = infer_with_evidence(
            graph, inference_context, given, errors, resume=resume
        )
    context = LintContext(parsed, inference_context, inference, opened, errors, evidence)
    context.deep = options.deep
    context.targets = options.targets
    context.tables = options.tables
    context.resumes = resume
    if parsed.bodies:
        from deconv_ir.linter.bodies import read_bodies

        context.bodies = tuple(read_bodies(context))
    return context


def _lines(parsed: ParsedFile, findings: Iterable[Finding]) -> dict[int, str]:
    """Return the text of the lines with findings."""
    file_text = parsed.file_text
    if file_text is None:
        return {}
    numbers = {finding.line for finding in findings if finding.line}
    return {number: file_text.line_text(number)[:MAX_SHOWN] for number in sorted(numbers)}


def _found(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """Iterate over the findings of a rule: first those of other parts of the library."""
    names = context.library_findings if rule.code == FALLBACK else rule.library_rules
    for name in names:
        for found in context.library_findings.get(name, ()):
            if rule_for(name, found) == rule.code:
                finding = rule.present(found, context) if rule.present else found
                if finding is not None:
                    yield finding
    # Without a graph, all findings come from reading the file.
    if context.parsed.graph is not None:
        yield from rule.found_in(context)


def _suppressions(contexts: Sequence[LintContext]) -> "Suppressions | None":
    """Return the suppressions of the file's comments, and report comments that name no rule."""
    file_text = contexts[0].parsed.file_text
    if file_text is None or not file_text.comments:
        return None
    from deconv_ir.linter.suppress import Suppressions

    parsed_files = [context.parsed for context in contexts]
    starts = [start for d in parsed_files for start in (*d.layers, *d.edges)]
    suppressions = Suppressions(file_text, starts)
    for mistake in suppressions.mistakes:
        contexts[0].file(mistake)
    return suppressions if suppressions.directives else None


def _runs(
    options: CheckOptions, contexts: Sequence[LintContext], suppressions: "Suppressions | None"
) -> Iterator[tuple[LintContext, str]]:
    """Iterate over the rules to run and their contexts; the rule about unused comments is last."""
    runs = [(c, code) for c in contexts for code in _to_run(options, c)]
    if suppressions is None or contexts[0].parsed.graph is None:
        yield from runs
        return
    from deconv_ir.linter.suppress import OWN_RULE

    yield from (run for run in runs if run[1] != OWN_RULE)
    asked = {rule.code for rule in options.asked}
    if OWN_RULE in asked:
        for unused in suppressions.unused(asked, selected=options.selected):
            contexts[0].file(unused)
        yield contexts[0], OWN_RULE


def _to_run(options: CheckOptions, context: LintContext) -> Iterable[str]:
    """Iterate over the rules that may have something to report."""
    types = None if context.inference is None else context.by_type.keys()
    others = {known.rules for known in FORMATS if known.name != context.parsed.format}
    present = frozenset(context.library_findings)
    if "ir-version" in present:
        # Other versions give other meanings to what follows.
        present, types = frozenset({"ir-version"}), None
    unclaimed = not all(map(is_claimed, present))
    # This runs over all rules for each file, so the loop has no calls.
    for rule in options.asked:
        if (
            (present and not present.isdisjoint(rule.library_rules))
            or (unclaimed and rule.code == FALLBACK)
            or (
                types is not None
                and rule.has_check
                and not (rule.types and types.isdisjoint(rule.types))
                and (not rule.when or getattr(context, rule.when))
                and rule.family not in others
            )
        ):
            yield rule.code


def _open_weights(
    graph: Graph, path: str | os.PathLike[str] | None, errors: list[DeconvError]
) -> "RecordedWeights | None":
    """Open the .bin; report an error if constants need it and it cannot be read."""
    filled = next((i for i, layer in enumerate(graph.layers) if _is_filled(layer)), None)
    if path is not None and (filled is not None or os.path.exists(path)):
        from deconv_ir.linter.weights import RecordedWeights

        try:
            opened = RecordedWeights(path)
        except WeightsError as error:
            reason = error.message
        else:
            found = weights_error(opened)
            if found is None:
                return opened
            reason = found
    else:
        reason = "no weights file was given"
    if filled is not None:
        name = "" if path is None else f"{os.path.basename(path)}: "
        own = graph.layers[filled].type == "Const"
        errors.append(
            WeightsError(
                f"the model has constants, but {name}{reason}",
                location=GraphLocation(layer=filled, attribute="offset" if own else None),
                rule="weights-missing",
                hint=Hint.WEIGHTS_CAN_BE_NAMED(),
            )
        )
    return None


def _is_filled(layer: Layer) -> bool:
    """Whether a layer is a constant with elements, or its body has such a constant."""
    if layer.type == "Const":
        # A constant without elements is written with a size of 1.
        return getattr(layer.operation, "size", 0) > 1
    return any(_is_filled(inner) for body in layer.operation.bodies for inner in body.graph.layers)


def _given(graph: Graph, options: CheckOptions) -> dict[int, TensorInfo]:
    """Return the infos of the Parameters that are checked at other shapes.

    Raises
    ------
    InputError
        An input is unknown, or does not accept the shape.
    """
    given: dict[int, TensorInfo] = {}
    for name, shape in options.reshape:
        for index, layer in enumerate(graph.layers):
            names = [layer.name, *(n for port in layer.outputs for n in port.names)]
            if layer.type == "Parameter" and name in names:
                port = layer.outputs[0] if layer.outputs else None
                element_type = None if port is None else port.element_type
                stated = getattr(layer.operation, "shape", None)
                narrowed = intersect(stated, shape) if compatible(stated, shape) else shape
                given[index] = TensorInfo(narrowed, element_type)
                break
        else:
            known = ", ".join(repr(x.name) for x in graph.of_type("Parameter")) or "none"
            raise InputError(
                f"there is no input {name!r} to give shape {format_shape(shape)}; "
                f"the model has {known}",
                file=graph.file,
            )
    return given


def _is_silent(
    suppressions: "Suppressions", code: str, finding: Finding, context: LintContext
) -> bool:
    owner = None
    if finding.location is not None and context.inference is not None:
        start, _ = context.locator.span(finding.location)
        found = context.locator.owner(start)
        owner = None if found is None else found[0]
    return suppressions.silences(code, owner)


def _complete(finding: Finding, rule: Rule, severity: Severity, context: LintContext) -> Finding:
    """Add rule, severity and file, and the line, columns and layer of the location."""
    location = finding.location
    line, column, end_column = finding.line, finding.column, finding.end_column
    layer = finding.layer
    file_text = context.parsed.file_text
    if location is not None and file_text is not None:
        start, end = context.locator.span(location)
        line, column = file_text.position(start)
        last, end_column = file_text.position(max(end, start + 1))
        if last > line:
            end_column = len(file_text.line_text(line)) + 1
    if isinstance(location, GraphLocation):
        layer = _label(location, context)
    elif location is not None and file_text is not None and context.inference is not None:
        layer = _layer_at(context, location.start)
    return finding._replace(
        file=context.parsed.file,
        line=line,
        column=column,
        end_column=end_column,
        layer=layer,
        rule=rule.name,
        severity=severity,
        code=rule.code,
    )


def _label(location: GraphLocation, context: LintContext) -> str | None:
    """Return the label of a layer, or of an edge."""
    if location.layer is not None:
        return context.parsed.label(location.layer)
    if location.edge is None:
        return None
    edge = context.graph.edges[location.edge]
    return f"edge {edge.from_layer}:{edge.from_port} -> {edge.to_layer}:{edge.to_port}"


def _layer_at(context: LintContext, offset: int) -> str | None:
    """Return the label of the layer that contains an offset."""
    at = bisect_right(context.parsed.layers, offset) - 1
    if at < 0 or context.graph.bare:
        return None
    owner = context.locator.owner(offset)
    is_in = owner is not None and owner.start == context.parsed.layers[at]
    return context.graph.layers[at].label if is_in else None


def _passed_over(context: LintContext) -> tuple[tuple[str, int], ...]:
    """Count the layers without a shape rule, by type; those with wrong attributes have findings."""
    if "ir-version" in context.library_findings:
        return ()
    counts: dict[str, int] = {}
    for layer in context.graph.layers:
        if not layer.operation.implemented and not context.parsed.is_known(layer):
            counts[layer.type] = counts.get(layer.type, 0) + 1
    return tuple(sorted(counts.items()))
