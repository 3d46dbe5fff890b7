"""Computation in wider types: f16 in f32 as the OpenVINO CPU runtime does, all floats in f64.

The documents do not define precision, so a layer of f16 rounds its result to f16.  The runtime
computes layers of f16 in f32 (with the inference precision f32) and rounds at the outputs alone.
The difference shows where weights are decompressed in f16, as NNCF stores them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from deconv_ir.findings import Finding, Severity
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import BF16, F16, F32, F64, ElementType
from deconv_ir.ir.graph import Graph, Layer, Port, walk_graphs
from deconv_ir.ops.base import attributes_of

if TYPE_CHECKING:
    from deconv_ir.ops.conversions import Conversions

_KEPT: Final = frozenset({"Const", "Parameter", "Result", "ReadValue", "Assign"})
"""Layers whose tensors stay in f16: memory and interfaces."""
_GIVEN: Final = frozenset({"Const", "Parameter", "RandomUniform"})
"""Layers whose tensors are not computed, or depend on their type."""
_F32: Final = frozenset({"NMSRotated", "NonMaxSuppression", "PriorBox", "PriorBoxClustered"})
"""Layers whose outputs are f32 by definition."""
_EXACT_FAMILIES: Final = ("constants", "shape", "gather_scatter", "control_flow")
_EXACT: Final = frozenset(
    {"Abs", "Clamp", "Convert", "ConvertLike", "MaxPool", "Maximum", "Minimum", "Negative", "PReLU"}
    | {"ReLU", "Select", "Sign", "Floor", "Ceiling", "Round", "ReduceMax", "ReduceMin", "Tile"}
)
"""Layers that return elements of their inputs, or other numbers that f16 represents."""


def compare_rounding(graph: Graph) -> Finding | None:
    """Report that layers round to f16 what OpenVINO keeps in f32; None: no layer does."""
    rounding = [
        layer
        for part in walk_graphs(graph)
        for layer in part.layers
        if any(port.element_type is F16 for port in layer.outputs) and _rounds(layer)
    ]
    if not rounding:
        return None
    first = rounding[0]
    more = f" and {len(rounding) - 1} more" if len(rounding) > 1 else ""
    verb = "round" if more else "rounds"
    return Finding(
        f"this layer{more} {verb} to f16, the OpenVINO runtime computes in f32; this run uses spec",
        file=graph.file,
        line=first.line,
        layer=first.label,
        expected="f16",
        actual="f32",
        hint=Hint.OTHER_SEMANTICS("openvino"),
        rule="profiles-differ",
        severity=Severity.WARNING,
    )


def _rounds(layer: Layer) -> bool:
    operation = type(layer.operation)
    family = operation.__module__.removeprefix("deconv_ir.ops.").partition(".")[0]
    return family not in _EXACT_FAMILIES and layer.type not in _EXACT


def in_f32(graph: Graph) -> Graph:
    """Return a graph that computes in f32 what this one computes in f16.

    Constants are stored, and inputs, outputs and variables are given and returned, in f16.
    """
    return _Retyping({F16: F32}, kept=_KEPT, rounds=True).change(graph, outermost=True)


def in_f64(graph: Graph, *, rounded: bool = False) -> Graph:
    """Return a graph that computes in f64 what this one computes in f16, bf16 or f32.

    Constants are stored and inputs are given as before.  Outputs are f64; with `rounded`, they are
    rounded once to their types.  Quantisation to narrower types remains.
    """
    wide = dict.fromkeys((F16, BF16, F32), F64)
    return _Retyping(wide, kept=_GIVEN, rounds=rounded).change(graph, outermost=True)


def keeps_types(layer: Layer) -> bool:
    """Whether a layer of a graph `in_f64` takes and returns the types of before."""
    return layer.type in _F32


class _Retyping(NamedTuple):
    """Types -> wider types in which layers compute."""

    wider: Mapping[ElementType, ElementType]
    kept: frozenset[str]
    """Types of the layers whose tensors are not changed."""
    rounds: bool
    """Whether outputs have the types of before."""

    def change(self, graph: Graph, *, outermost: bool) -> Graph:
        from deconv_ir.ops.conversions import Conversions

        changed = Conversions(graph)
        storing = {layer.type for layer in graph.layers if self._stores(layer, outermost)}
        for index, layer in enumerate(graph.layers):
            if not self._keeps(layer, outermost):
                self._retype(changed, index)
                continue
            for output, port in enumerate(layer.outputs):
                wide = self._wider(port)
                if wide is not None and layer.type != "Assign":
                    changed.convert_output(index, output, wide, storing)
        for index, layer in enumerate(graph.layers):
            sources = graph.topology.sources[index] if layer.type in storing else ()
            for position, source in enumerate(sources):
                if source is None or self._keeps(graph.layers[source[0]], outermost):
                    continue
                port = graph.layers[source[0]].outputs[source[1]]
                if port.element_type is not None and self._wider(port) is not None:
                    changed.convert_input(index, position, port.element_type)
        return changed.graph()

    def _wider(self, port: Port) -> ElementType | None:
        return None if port.element_type is None else self.wider.get(port.element_type)

    def _keeps(self, layer: Layer, outermost: bool) -> bool:
        if layer.type in _F32 and F32 in self.wider:
            return True
        return layer.type in self.kept and (outermost or layer.type != "Parameter")

    def _stores(self, layer: Layer, outermost: bool) -> bool:
        """Whether a layer takes its inputs in the types of before."""
        if layer.type == "Result":
            return self.rounds and outermost
        return layer.type in self.kept and layer.type not in ("Const", "Parameter")

    def _retype(self, changed: "Conversions", index: int) -> None:
        """Change attributes, declared types and bodies of a layer."""
        operation = changed.layers[index].operation
        values = {
            spec.field: getattr(operation, spec.field, None)
            for spec in attributes_of(type(operation))
        }
        fields = {
            name: self.wider[value]
            for name, value in values.items()
            if isinstance(value, ElementType) and value in self.wider
        }
        bodies = {
            name: body.replace(graph=self.change(body.graph, outermost=False))
            for name, body in zip(operation.body_names, operation.bodies, strict=False)
        }
        if fields or bodies:
            changed.set_operation(index, operation.replace(**fields, **bodies))
        for narrow, wide in self.wider.items():
            changed.set_types(index, narrow, wide)
