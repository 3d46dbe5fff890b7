"""The context of a lint run: what rules know of one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deconv_ir.errors import DeconvError, InputError
from deconv_ir.findings import Finding
from deconv_ir.formats.format import Locator, ParsedFile
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.graph import Graph, Port, ancestors
from deconv_ir.ir.infer import Inference, Outputs, infer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.linter.inferred_graph import InferredGraph
from deconv_ir.ops import find_operation

if TYPE_CHECKING:
    from deconv_ir.cpu_plugin.int8 import Int8Layers
    from deconv_ir.ir.symbolic import SymbolicInference
    from deconv_ir.linter.evidence import Evidence
    from deconv_ir.linter.probing import Contradiction
    from deconv_ir.linter.releases import Target
    from deconv_ir.linter.weights import RecordedWeights
    from deconv_ir.ops.constants.constant import Const

CONVOLUTIONS: Final = (
    *("Convolution", "GroupConvolution"),
    *("ConvolutionBackpropData", "GroupConvolutionBackpropData"),
    *("ConvTranspose", "ConvolutionBackwardData"),
)
"""Types whose input 1 is a filter of input and output channels."""
SINKS = ("Result", "Assign")
"""Types of layers that are always needed."""
NAMED_OR_MEASURED: Final = frozenset({"Const", "Parameter", "ReadValue", *SINKS})
"""Types whose attributes name or measure something, so that they differ from layer to layer."""

_KNOWN_VERSIONS = frozenset({f"opset{number}" for number in range(1, 18)})

_OF_EDGES: Final = ("two-edges-into-port", "input-without-edge")
"""Problems of explicit edges; those of graph files follow from ids."""


class BodyContext(NamedTuple):
    """One body of an If, Loop or TensorIterator."""

    owner: int
    """Index of the layer."""
    tag: str
    """``body``, ``then_body`` or ``else_body``."""
    context: LintContext
    """The context of the body."""


class LintContext(InferredGraph):
    """One file, read, connected and inferred.

    Attributes
    ----------
    bodies : tuple of BodyContext
        Bodies of the graph's If, Loop and TensorIterator layers.
    around : LintContext or None
        For a body: the graph with its layer.
    targets : tuple of Target
        Releases on which the file should run.
    tables : tuple
        Settings of the rules of other packages; see `setting`.
    resumes : bool
        Whether inference continues with the declared dims around a disputed layer.
    evidence : Evidence
    dead_channels : dict
        Filter and axes of its output channels -> the channels whose elements are all 0; a cache
        shared by rules.
    library_findings : dict
        Findings of reading, connecting and inference, by their `rule`.
    """

    bodies: tuple[BodyContext, ...] = ()
    around: LintContext | None = None
    resumes: bool = True
    targets: tuple[Target, ...] = ()
    tables: tuple[tuple[str, tuple[tuple[str, object], ...]], ...] = ()

    def __init__(
        self,
        parsed: ParsedFile,
        context: Context,
        inference: Inference | None,
        weights: RecordedWeights | None,
        errors: Iterable[DeconvError] = (),
        evidence: Evidence | None = None,
    ) -> None:
        super().__init__(parsed, context, inference, weights)
        self._evidence = evidence
        self.dead_channels: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        self.library_findings: dict[str, list[Finding]] = {}
        for error in errors:
            self.file(error.finding)
        for error in (*parsed.errors, *parsed.remarks):
            self.file(error.finding)
        implied = () if parsed.states_edges else _OF_EDGES
        if inference is not None:
            for error in self.topology.errors:
                if error.rule not in implied:
                    self.file(error.finding)
            for found in (*(error.finding for error in inference.errors), *inference.findings):
                is_implied = found.rule in implied
                if not is_implied and found.part.child is None:
                    self.file(found)  # a body reports its own findings

    def setting(self, family: str, name: str) -> Any:
        """Return a setting of another package's rules, or its default.

        Raises
        ------
        InputError
            The package declares no such setting.
        """
        from deconv_ir.linter.settings import SETTINGS_OF

        for table, values in self.tables:
            if table == family and name in dict(values):
                return dict(values)[name]
        for setting in SETTINGS_OF.get(family, ()):
            if setting.name == name:
                return setting.default
        raise InputError(f"{family} declares no setting {name!r}")

    def file(self, found: Finding) -> None:
        """Add a finding of the library to those of its rule."""
        self.library_findings.setdefault(found.rule, []).append(found)

    @property
    def is_body(self) -> bool:
        """Whether this is the body of a layer."""
        return self.around is not None

    def with_bodies(self) -> Iterator[LintContext]:
        """Iterate over the graph and all bodies within it."""
        yield self
        for body in self.bodies:
            yield from body.context.with_bodies()

    @property
    def evidence(self) -> Evidence:
        """Statements about each tensor, which determine the safe fixes."""
        if self._evidence is None:
            from deconv_ir.linter.evidence import Evidence

            self._evidence = Evidence(self.graph)
        return self._evidence

    @property
    def disputed(self) -> dict[int, Outputs]:
        """Layers that contradict the declared dims around them; see `Evidence.disputed`."""
        return {} if self._evidence is None else self._evidence.disputed

    # The properties that rules name in `when`, which are cheap and mostly empty.

    @cached_property
    def unequal_edges(self) -> list[tuple[int, int, tuple[int, int]]]:
        """Edges whose two ends declare different dims or precisions.

        Index of the layer and of the port at its end, and its source.
        """
        if self.graph.bare:
            return []
        layers = self.graph.layers
        return [
            (index, port, source)
            for index, sources in enumerate(self.topology.sources)
            for port, source in enumerate(sources)
            if source is not None
            and _differ(layers[source[0]].outputs[source[1]], layers[index].inputs[port])
        ]

    @cached_property
    def contradictions(self) -> list[Contradiction]:
        """Layers of a dynamic model that fit at no size, if shapes have no other errors."""
        assert self.inference is not None
        wrong = self.inference.errors or self.topology.errors or self.disputed
        if wrong or not self._is_dynamic or self.graph.bare or self.is_body:
            return []
        from deconv_ir.linter.probing import contradictions

        return contradictions(self)

    @cached_property
    def symbolic(self) -> SymbolicInference | None:
        """The dims of a dynamic model as expressions, if shapes have no errors; None if static."""
        assert self.inference is not None
        wrong = self.inference.errors or self.topology.errors or self.disputed
        if wrong or self.graph.bare or self.is_body or not self._is_dynamic:
            return None
        from deconv_ir.ir.symbolic import infer_symbolic

        return infer_symbolic(self.graph, self.inference_context, self.inference)

    @cached_property
    def int8_layers(self) -> Int8Layers | None:
        """What OpenVINO's CPU plugin computes in integers; None if nothing is quantised."""
        if self.is_body or not self.is_openvino_model or not self._has_convolutions:
            return None
        if not self.by_type.get("FakeQuantize") and not self._scales_integers:
            return None
        from deconv_ir.cpu_plugin.int8 import Int8Layers

        outputs = [self.outputs(index) for index in range(len(self.graph.layers))]
        return Int8Layers(self.graph, outputs, self.inference_context)

    @property
    def _has_convolutions(self) -> bool:
        return any(self.by_type.get(type_name) for type_name in CONVOLUTIONS)

    @property
    def _scales_integers(self) -> bool:
        """Whether a Convert makes floating-point numbers of i8 or u8."""
        return any(
            info.element_type is not None and info.element_type.name in ("i8", "u8")
            for index in self.by_type.get("Convert", ())
            for info in self.inputs(index)[:1]
        )

    @property
    def unequal_sizes(self) -> bool:
        """Whether a layer of a dynamic model needs sizes to be equal that are not always."""
        found = self.symbolic
        return found is not None and bool(found.conditions or found.contradictions)

    @property
    def _is_dynamic(self) -> bool:
        """Whether a Parameter declares a dynamic dim."""
        return any(
            isinstance(dim, Interval)
            for index in self.by_type.get("Parameter", ())
            for info in self.outputs(index)
            for dim in info.shape or ()
        )

    @property
    def has_repeated_names(self) -> bool:
        """Whether two layers have the same name; operations of a graph file have ids instead."""
        layers = self.graph.layers
        return self.is_openvino_model and len({layer.name for layer in layers}) < len(layers)

    @property
    def repeated_port_ids(self) -> list[tuple[int, str, int]]:
        """Index of the layer, side, and index of each port that repeats an id."""
        found = []
        unlike: set[int] = set()
        for index, layer in enumerate(self.graph.layers):
            for side, ports in (("input", layer.inputs), ("output", layer.outputs)):
                if len(ports) < 2 or id(ports) in unlike:
                    continue
                ids = [port.id for port in ports]
                if len(set(ids)) == len(ids):
                    unlike.add(id(ports))  # layers share equal ports
                else:
                    found += [(index, side, i) for i, n in enumerate(ids) if n in ids[:i]]
        return found

    @property
    def has_no_result(self) -> bool:
        """Whether the network has no Result and no Assign."""
        if self.graph.bare or (
            not self.parsed.states_edges and (self.graph.layers or self.parsed.errors)
        ):
            return False  # outputs of a graph file are its unused tensors
        return not any(self.by_type.get(type_name) for type_name in SINKS)

    @cached_property
    def unneeded(self) -> list[int]:
        """Layers, except Parameters, on which neither a Result nor an Assign depends."""
        if self.graph.bare or not self.by_type.get("Result"):
            return []
        broken = self.parsed.errors or self.topology.errors
        if broken and not self.parsed.states_edges:
            return []
        ends = [i for type_name in SINKS for i in self.by_type.get(type_name, ())]
        needed = ancestors(self.topology, ends)
        return [
            index
            for index, layer in enumerate(self.graph.layers)
            if index not in needed and layer.type != "Parameter"
        ]

    @cached_property
    def has_untidy_constants(self) -> bool:
        """Whether sizes and offsets of constants may be wrong."""
        from deconv_ir.linter.constants import are_untidy

        if self.bodies or self.is_body:
            return True
        found = [const for _, _, const in self.constants()]
        if len(found) < len(self.by_type.get("Const", ())):
            return True  # the attributes of a constant cannot be read
        return are_untidy(found, None if self.weights is None else len(self.weights))

    @property
    def misaligned_constants(self) -> list[tuple[int, Const]]:
        """Constants, not packed, whose offset is not a multiple of their element's size."""
        found = [
            (index, const)
            for index, _, const in self.constants()
            if const.element_type and const.offset % max(1, const.element_type.bits // 8)
        ]
        return [pair for pair in found if pair[1].offset not in self.constant_ends]

    @cached_property
    def constant_ends(self) -> frozenset[int]:
        """Offsets at which a constant of the file ends, in any of its graphs."""
        if self.around is not None:
            return self.around.constant_ends
        inner = (context.constants() for context in self.with_bodies())
        return frozenset(const.offset + const.size for own in inner for _, _, const in own)

    @property
    def computed_filters(self) -> list[int]:
        """Convolutions whose filter is computed, as that of a quantized one is."""
        layers, sources = self.graph.layers, self.topology.sources
        return [
            index
            for type_name in CONVOLUTIONS
            for index in self.by_type.get(type_name, ())
            if len(sources[index]) > 1
            and (source := sources[index][1]) is not None
            and layers[source[0]].type not in ("Const", "Parameter")
            and layers[index].operation.implemented
            and index not in self.unfit
        ]

    @cached_property
    def uneven_types(self) -> list[str]:
        """Types with at least four layers that do not all have the same attributes or constants."""
        layers = self.graph.layers
        return [
            type_name
            for type_name, found in self.by_type.items()
            if len(found) > 3
            and type_name not in NAMED_OR_MEASURED
            and not layers[found[0]].operation.bodies
            and self.are_uneven(found)
        ]

    def are_uneven(self, indices: Sequence[int]) -> bool:
        """Whether layers of one type do not all have the same attributes and small constants."""
        layers = self.graph.layers
        return (
            len({id(layers[index].operation) for index in indices}) > 1
            or len({self._small_constants(index) for index in indices}) > 1
        )

    def _small_constants(self, index: int) -> tuple[object, ...]:
        """Return the inputs of a layer that are integers, or one number, by port."""
        return tuple(
            (port, info.value, info.reals)
            for port, source in enumerate(self.topology.sources[index])
            if source is not None and self.graph.layers[source[0]].type == "Const"
            for info in self.outputs(source[0])[source[1] : source[1] + 1]
            if info.value is not None or (info.reals is not None and len(info.reals) == 1)
        )

    @cached_property
    def suspicious_constants(self) -> list[tuple[int, bool]]:
        """Constants that may have a NaN or an infinite element; see `finite.suspicious`."""
        if self.weights is None or not self.by_type.get("Const"):
            return []
        from deconv_ir.linter.finite import suspicious

        return suspicious(self)

    @property
    def unusual_operations(self) -> set[tuple[str, str]]:
        """Types and versions other than those of implemented operations."""
        if not self.parsed.has_opsets:
            return set()
        pairs = {(layer.type, layer.version or "") for layer in self.graph.layers}
        return {pair for pair in pairs if not _is_usual(*pair)}

    @property
    def is_bare(self) -> bool:
        """Whether the file is a single layer."""
        return self.graph.bare

    @property
    def is_openvino_model(self) -> bool:
        """Whether OpenVINO's reader should read the file."""
        return not self.graph.bare and self.parsed.has_opsets

    @property
    def has_doubtful_versions(self) -> bool:
        """Whether a layer of a model for OpenVINO names no opset, or the last, incomplete one."""
        return self.is_openvino_model and any(
            not version.startswith("opset") or version == "opset17"
            for version in {layer.version or "" for layer in self.graph.layers}
        )

    @property
    def oddly_ported(self) -> list[int]:
        """Results with outputs, and other layers without outputs."""
        return [
            index
            for index, layer in enumerate(self.graph.layers)
            if bool(layer.outputs) == (layer.type == "Result")
        ]

    @cached_property
    def locator(self) -> Locator:
        """Finds the parts of the graph in the text."""
        return self.parsed.locator()

    @property
    def semantics(self) -> Semantics:
        """The semantics in use: those of the documents or of OpenVINO."""
        return self.inference_context.semantics


def infer_with_evidence(
    graph: Graph,
    context: Context,
    given: dict[int, TensorInfo],
    errors: list[DeconvError],
    *,
    resume: bool,
) -> tuple[Inference, Evidence | None]:
    """Infer shapes; if declared ones contradict them, infer again with the more likely ones."""
    plain = infer(graph, context, given, collect=True)
    differ = any(found.rule in ("declared-dims", "declared-type") for found in plain.findings)
    if not differ or not resume:
        return plain, None
    from deconv_ir.linter.evidence import Evidence

    evidence = Evidence(graph)
    resumed = infer(graph, context, given, collect=True, resume=evidence.resume)
    if not evidence.disputed and not evidence.mistyped:
        return plain, evidence
    evidence.plain = plain
    known = {error.location for error in resumed.errors}
    errors += [e for e in evidence.errors_of_sources() if e.location not in known]
    return resumed, evidence


def _is_usual(type_name: str, version: str) -> bool:
    """Whether an operation is valid without a look-up in the opsets."""
    found = find_operation(type_name, version)
    return found is not None and (
        not version or version in _KNOWN_VERSIONS or not found.versions  # oneDNN has no opsets
    )


def _differ(start: Port, end: Port) -> bool:
    """Whether the ends of an edge declare different dims or types."""
    return (start.shape is not end.shape and start.shape != end.shape) or (
        start.element_type is not end.element_type and end.element_type is not None
    )
