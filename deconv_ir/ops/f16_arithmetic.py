"""Arithmetic of f16 in f32, as the OpenVINO CPU runtime computes it.

The document says nothing of precision, so a layer of f16 rounds its result to f16.  The runtime
computes layers of f16 in f32 (with the inference precision f32) and rounds at the outputs alone.
The difference shows where weights are decompressed in f16, as NNCF stores them.
"""

from __future__ import annotations

from typing import Final

from deconv_ir.findings import Finding, Severity
from deconv_ir.ir.body import walk_graphs
from deconv_ir.ir.dtypes import F16, F32
from deconv_ir.ir.graph import Graph, Layer, Source
from deconv_ir.ops.base import attributes_of
from deconv_ir.ops.conversions import STORING, Conversions

_KEPT: Final = frozenset({"Const", "Parameter", "Result", "ReadValue", "Assign"})
"""Layers whose tensors stay in f16: memory and interfaces."""
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
        hint="semantics='spec' or 'openvino' chooses",
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
    return _in_f32(graph, outermost=True)


def _in_f32(graph: Graph, *, outermost: bool) -> Graph:
    changed = Conversions(graph)
    for index, layer in enumerate(graph.layers):
        kept = layer.type in _KEPT and (outermost or layer.type != "Parameter")
        if not kept:
            _retype(changed, index)
            continue
        for output, port in enumerate(layer.outputs):
            if port.element_type is F16 and layer.type != "Assign":
                changed.convert_output(index, output, F32)
    for index, layer in enumerate(graph.layers):
        is_read = layer.type == "ReadValue" and bool(layer.inputs)
        if (is_read or layer.type in STORING) and (outermost or layer.type != "Result"):
            source = graph.topology.sources[index][0]
            if source is not None and _is_computed(graph, source):
                changed.convert_input(index, F16)
    return changed.graph()


def _is_computed(graph: Graph, source: Source) -> bool:
    """Whether a tensor is declared as f16, and computed in f32 now."""
    layer = graph.layers[source[0]]
    return layer.type not in _KEPT and layer.outputs[source[1]].element_type is F16


def _retype(changed: Conversions, index: int) -> None:
    """Change attributes, declared types and bodies of a layer from f16 to f32."""
    operation = changed.layers[index].operation
    fields = {
        spec.field: F32
        for spec in attributes_of(type(operation))
        if getattr(operation, spec.field, None) is F16
    }
    bodies = {
        name: body.replace(graph=_in_f32(body.graph, outermost=False))
        for name, body in zip(operation.body_names, operation.bodies, strict=False)
    }
    if fields or bodies:
        changed.set_operation(index, operation.replace(**fields, **bodies))
    changed.set_types(index, F16, F32)
