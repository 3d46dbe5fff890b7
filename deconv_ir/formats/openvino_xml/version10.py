"""Element types of inputs and outputs of IR version 10, as OpenVINO changes them.

For networks of its older interface, OpenVINO's reader makes f16 inputs f32, and outputs i32 if
they are integers of at least 32 bits, else f32.

Source: OpenVINO 2026.4, src/frontends/ir: `read_model` of a file of version 10.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deconv_ir.findings import Finding, Severity
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import F16, F32, I32, ElementType
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.tensor_names import tensor_name
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


def compare_types(graph: Graph) -> Finding | None:
    """Report the inputs and outputs whose declared types OpenVINO changes; None: it has none."""
    if graph.ir_version != VERSION:
        return None
    changed = [
        (name, old, new)
        for _, name, old, new in (*_inputs(graph), *_outputs(graph))
        if old is not new
    ]
    if not changed:
        return None
    name, old, new = changed[0]
    more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
    return Finding(
        f"OpenVINO changes element types of IR version 10: {name!r} from {old} to {new}{more}; "
        "this run keeps the declared types",
        file=graph.file,
        expected=str(old),
        actual=str(new),
        hint=Hint.OTHER_SEMANTICS("openvino"),
        rule="profiles-differ",
        severity=Severity.WARNING,
    )


def change_types(graph: Graph) -> Graph:
    """Return a graph with the element types of OpenVINO."""
    if graph.ir_version != VERSION:
        return graph
    changed = Conversions(graph)
    for index, _, old, new in _inputs(graph):
        if old is F16 and new is not None:
            changed.set_operation(index, graph.layers[index].operation.replace(element_type=new))
            changed.set_types(index, old, new)
            changed.convert_output(index, 0, old)
    for index, _, old, new in _outputs(graph):
        if new is not None and new is not old:
            changed.convert_input(index, 0, new)
    return changed.graph()


_Types = tuple[int, str, ElementType | None, ElementType | None]
"""Index of a layer, name of its tensor, declared type, OpenVINO's type."""


def _inputs(graph: Graph) -> Iterator[_Types]:
    for index, layer in enumerate(graph.layers):
        if layer.type == "Parameter":
            declared = getattr(layer.operation, "element_type", None)
            yield index, layer.name, declared, input_type(declared)


def _outputs(graph: Graph) -> Iterator[_Types]:
    """Iterate over the Results; a tensor of a changed Parameter has its new type."""
    for index, layer in enumerate(graph.layers):
        source = graph.topology.sources[index][0] if layer.type == "Result" else None
        if source is None:
            continue
        producer = graph.layers[source[0]]
        declared = producer.outputs[source[1]].element_type
        if producer.type == "Parameter":
            declared = input_type(declared)
        yield index, tensor_name(graph, source), declared, output_type(declared)
