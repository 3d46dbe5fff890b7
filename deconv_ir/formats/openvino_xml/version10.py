"""Element types of inputs and outputs of IR version 10, as OpenVINO changes them.

For networks of its older interface, OpenVINO's reader makes f16 inputs f32, and outputs i32 if
they are integers of at least 32 bits, else f32.

Source: OpenVINO 2026.4, src/frontends/ir: `read_model` of a file of version 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deconv_ir.ir.dtypes import F16, F32, I32, ElementType
from deconv_ir.ir.findings import Finding, Severity
from deconv_ir.ir.graph import Graph, Port
from deconv_ir.ops.conversions import Conversions

VERSION: Final = 10


def input_type(declared: ElementType | None) -> ElementType | None:
    """Return the element type that OpenVINO gives an input of version 10."""
    return F32 if declared is F16 else declared


def output_type(computed: ElementType | None) -> ElementType | None:
    """Return the element type that OpenVINO gives an output of version 10."""
    if computed is None:
        return None
    return I32 if computed.is_integer and computed.bits >= 32 else F32


def compare_types(
    graph: Graph, inputs: Mapping[str, Port], outputs: Mapping[str, Port]
) -> Finding | None:
    """Report the inputs and outputs of a model whose types OpenVINO changes; None: it has none."""
    if graph.ir_version != VERSION:
        return None
    ports = [
        (name, port.element_type, input_type(port.element_type)) for name, port in inputs.items()
    ]
    ports += [
        (name, port.element_type, output_type(port.element_type)) for name, port in outputs.items()
    ]
    changed = [(name, old, new) for name, old, new in ports if old is not new]
    if not changed:
        return None
    name, old, new = changed[0]
    more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
    return Finding(
        "profiles-differ",
        Severity.WARNING,
        f"OpenVINO changes element types of IR version 10: {name!r} from {old} to {new}{more}; "
        "this run keeps the declared types",
        file=graph.file,
        expected=str(old),
        actual=str(new),
        hint="semantics='spec' or 'openvino' chooses",
    )


def change_types(graph: Graph, outputs: Mapping[str, Port]) -> Graph:
    """Return a graph with the element types of OpenVINO; `outputs` are those of the model."""
    changed = Conversions(graph)
    results = [i for i, layer in enumerate(graph.layers) if layer.type == "Result"]
    for index, layer in enumerate(graph.layers):
        if layer.type == "Parameter" and getattr(layer.operation, "element_type", None) is F16:
            changed.set_operation(index, layer.operation.replace(element_type=F32))
            changed.set_types(index, F16, F32)
            changed.convert_output(index, 0, F16)
    for index, port in zip(results, outputs.values(), strict=True):
        wanted = output_type(port.element_type)
        if wanted is not None and wanted is not port.element_type:
            changed.convert_input(index, wanted)
    return changed.graph()
