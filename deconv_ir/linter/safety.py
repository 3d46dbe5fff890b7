"""Safety of fixes: all statements about a tensor, except the changed one, must agree."""

from __future__ import annotations

from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.shapes import Shape, declared_form
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.evidence import all_declare
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import attributes_of


def supports_shape(context: LintContext, index: int, side: str, port: int, shape: Shape) -> bool:
    """Whether all statements about a tensor, except at one port, agree with a shape."""
    source = _source(context, index, side, port)
    if source is None or not _is_sound(context, source[0]):
        return False
    if declared_form(context.outputs(source[0])[source[1]].shape) != declared_form(shape):
        return False
    layer = context.graph.layers[source[0]]
    stated = layer.outputs[source[1]]
    ends = context.evidence.consumers.get(source, [])
    if side == "output":
        return all_declare(ends, shape)
    wrong = context.graph.layers[index].inputs[port]
    return (
        declared_form(stated.shape) == declared_form(shape)
        and all_declare([end for end in ends if end is not wrong], shape, least=0)
        and _may_be_misdeclared(context, index, port)
    )


def supports_type(
    context: LintContext, index: int, side: str, port: int, element_type: ElementType
) -> bool:
    """Whether all statements about a tensor, except at one port, agree with a type."""
    source = _source(context, index, side, port)
    if source is None or not _is_sound(context, source[0]):
        return False
    if context.outputs(source[0])[source[1]].element_type is not element_type:
        return False
    ends = context.evidence.consumers.get(source, [])
    if side == "output":
        return bool(ends) and all(end.element_type is element_type for end in ends)
    wrong = context.graph.layers[index].inputs[port]
    return (
        context.graph.layers[source[0]].outputs[source[1]].element_type is element_type
        and all(end.element_type is element_type for end in ends if end is not wrong)
        and _may_be_misdeclared(context, index, port)
    )


def supports_attribute(context: LintContext, index: int, name: str, value: str) -> bool:
    """Whether a layer has the declared outputs with one value of an attribute only."""
    from deconv_ir.linter.diagnosis import alternatives, gives_declared, is_same_work

    layer = context.graph.layers[index]
    if _unknown_attributes(context, index) or len(layer.inputs) > 2:
        return False  # an output_shape input determines the dims, for any value of the attribute
    if not all(
        port.shape is not None
        and all_declare(context.evidence.consumers.get((index, i), ()), port.shape)
        for i, port in enumerate(layer.outputs)
    ):
        return False
    if not gives_declared(context, index, {name: value}):
        return False
    return not any(
        gives_declared(context, index, {name: other})
        and not is_same_work(context, index, {name: value}, {name: other})
        for other in alternatives(context, index, name)
        if other != value
    )


def supports_size(context: LintContext, index: int, start: int, end: int) -> bool:
    """Whether a constant's port and consumers confirm a size, and its bytes are not shared."""
    (port,) = context.graph.layers[index].outputs
    if context.weights is None or end > len(context.weights):
        return False
    ends = context.evidence.consumers.get((index, 0), [])
    return (
        all_declare(ends, port.shape)
        and all(other.element_type is port.element_type for other in ends)
        and not any(
            const.offset < end and start < const.offset + const.size and other != index
            for other, _, const in context.constants()
            if const.offset != start
        )
    )


def _source(context: LintContext, index: int, side: str, port: int) -> tuple[int, int] | None:
    return (index, port) if side == "output" else context.graph.topology.sources[index][port]


def _is_sound(context: LintContext, index: int) -> bool:
    """Whether the computation of a layer's outputs is certain."""
    layer = context.graph.layers[index]
    written = {name for name, value in layer.attributes if value.strip()}
    return (
        layer.operation.implemented
        and index not in context.unfit
        and index not in context.evidence.disputed
        and index not in context.evidence.mistyped
        and not _unknown_attributes(context, index)
        and all(
            spec.name in written or not spec.required
            for spec in attributes_of(type(layer.operation))
        )
    )


def _may_be_misdeclared(context: LintContext, index: int, port: int) -> bool:
    """Whether an input port is wrong, rather than the edge that leads to it.

    The layer works with the edge's tensor, and no other tensor matches the port.
    """
    if index in context.unfit or index in context.evidence.disputed:
        return False
    stated = context.graph.layers[index].inputs[port]
    form = declared_form(stated.shape), stated.element_type
    return form not in context.evidence.declared_tensors


def _unknown_attributes(context: LintContext, index: int) -> bool:
    """Whether a layer has attributes that its operation does not have."""
    layer = context.graph.layers[index]
    operation = find_operation(layer.type, layer.version)
    if operation is None:
        return True
    known = {spec.name for spec in attributes_of(operation)}
    return any(name not in known for name, _ in layer.attributes)
