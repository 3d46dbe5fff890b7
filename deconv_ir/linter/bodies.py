"""The bodies of If, Loop and TensorIterator: graphs of their own, joined to a layer by a port map.

Source: OpenVINO operation specifications, If-8, Loop-5, TensorIterator-1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.formats.openvino_xml.document import Document
from deconv_ir.formats.openvino_xml.locations import Locator
from deconv_ir.formats.openvino_xml.port_maps import PORT_MAPS
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.graph import GraphLocation
from deconv_ir.ir.infer import declared, infer
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, format_shape
from deconv_ir.linter.report import Report

if TYPE_CHECKING:
    from deconv_ir.formats.openvino_xml.scanner import Element
    from deconv_ir.linter.context import LintContext


def _element(context: LintContext, index: int) -> Element:
    """Return the element of a layer; only an IR has bodies."""
    assert isinstance(context.locator, Locator)
    return context.locator.layer(index)


class Body:
    """One body of a layer.

    Attributes
    ----------
    owner : int
        Index of the layer.
    tag : str
        ``body``, ``then_body`` or ``else_body``.
    context : LintContext
        The body, as the rules see it.
    """

    def __init__(self, owner: int, tag: str, context: LintContext) -> None:
        self.owner = owner
        self.tag = tag
        self.context = context


def read_bodies(context: LintContext) -> Iterator[Body]:
    """Connect and infer the bodies of a graph's layers, with the shapes that they are given."""
    from deconv_ir.linter.context import LintContext

    document = context.document
    for owner, tag, inner in document.bodies if isinstance(document, Document) else ():
        assert inner.graph is not None, "a body has a graph"
        given = _given(context, owner, tag)
        inference = infer(inner.graph, context.inference_context, given, collect=True)
        found = LintContext(inner, context.inference_context, inference, context.weights)
        found.is_body = True
        found.bodies = tuple(read_bodies(found))
        yield Body(owner, tag, found)


def _given(context: LintContext, owner: int, tag: str) -> dict[int, TensorInfo]:
    """Return what a layer knows of the Parameters of one of its bodies."""
    operation = context.graph.layers[owner].operation
    if tag not in operation.body_names:
        return {}
    given = operation.infer_parameters(context.inputs(owner), context.inference_context)
    return given[operation.body_names.index(tag)]


def all_contexts(context: LintContext) -> Iterator[LintContext]:
    """Iterate over a graph and all bodies within it."""
    yield context
    for body in context.bodies:
        yield from all_contexts(body.context)


def check_body(context: LintContext, body: Body) -> Iterator[Report]:
    """Compare a body with its port map and with the ports of its layer."""
    element = _element(context, body.owner)
    port_map = element.first(PORT_MAPS[body.tag])
    inner = body.context.graph
    by_id = {layer.id: index for index, layer in enumerate(inner.layers)}
    mapped: set[int] = set()
    for entry in port_map.children if port_map is not None else ():
        attributes = entry.attributes()
        index = by_id.get(_number(attributes.get("internal_layer_id")))
        wanted = "Parameter" if entry.tag == "input" else "Result"
        if index is None or inner.layers[index].type != wanted:
            yield Report(
                f"the port map names layer {attributes.get('internal_layer_id')!r} of the "
                f"{body.tag}, which is not a {wanted}",
                entry.head,
                actual=attributes.get("internal_layer_id"),
            )
            continue
        mapped.add(index)
        yield from _check_entry(context, body, entry, attributes, index)
    for index, layer in enumerate(inner.layers):
        if layer.type == "Parameter" and index not in mapped:
            yield Report(
                f"no port map brings data to the Parameter {layer.name!r} of the {body.tag}",
                _element(body.context, index).head,
            )
    yield from _check_back_edges(body, element, by_id)


def _check_entry(
    context: LintContext, body: Body, entry: Element, attributes: dict[str, str], index: int
) -> Iterator[Report]:
    """Compare one tensor inside a body with the one outside that the port map joins to it."""
    layer = context.graph.layers[body.owner]
    purpose = attributes.get("purpose")
    inside = _inside(body.context, entry.tag, index)
    if inside is None:
        return
    if purpose == "execution_condition" and inside.element_type is not None:
        if inside.element_type.name != "boolean":
            yield Report(
                f"the execution condition of a Loop is boolean, found {inside.element_type}",
                entry.head,
                expected="boolean",
                actual=str(inside.element_type),
            )
        return
    if attributes.get("external_port_id") == "-1":
        return
    ports = layer.inputs if entry.tag == "input" else layer.outputs
    number = _number(attributes.get("external_port_id"))
    place = next((i for i, port in enumerate(ports) if port.id == number), None)
    if place is None:
        yield Report(
            f"{layer.type} has no {entry.tag} port {attributes.get('external_port_id')!r}, "
            "which the port map names",
            entry.head,
        )
        return
    if entry.tag == "input":
        outside = context.inputs(body.owner)[place]
    else:
        outside = TensorInfo(ports[place].shape, ports[place].element_type)
    axis = _number(attributes.get("axis")) if "axis" in attributes else None
    if axis is not None and outside.shape:
        axis %= len(outside.shape)
    if not _fit(outside.shape, inside.shape, axis) or (
        outside.element_type is not None
        and inside.element_type is not None
        and outside.element_type is not inside.element_type
    ):
        along = "" if axis is None else f", sliced along axis {axis}"
        yield Report(
            f"{entry.tag} port {number} is {outside}, and {body.context.graph.layers[index].name!r}"
            f" in the {body.tag} is {inside}{along}",
            GraphLocation(layer=body.owner, side=entry.tag, port=place),
            expected=format_shape(inside.shape),
            actual=format_shape(outside.shape),
        )


def _check_back_edges(body: Body, element: Element, by_id: dict[int, int]) -> Iterator[Report]:
    """A tensor that goes into the next iteration is what that iteration expects."""
    back_edges = element.first("back_edges")
    for edge in back_edges.children if back_edges is not None else ():
        ends = edge.attributes()
        start, end = (by_id.get(_number(ends.get(name))) for name in ("from-layer", "to-layer"))
        if start is None or end is None:
            yield Report("a back edge names a layer that the body does not have", edge.head)
            continue
        given = _inside(body.context, "output", start)
        taken = _inside(body.context, "input", end)
        if given is None or taken is None:
            yield Report("a back edge leads from a Result to a Parameter", edge.head)
        elif not compatible(given.shape, taken.shape) or (
            None not in (given.element_type, taken.element_type)
            and given.element_type is not taken.element_type
        ):
            yield Report(
                f"an iteration gives {given}, and the next one takes {taken}",
                edge.head,
                expected=str(taken),
                actual=str(given),
            )


def _inside(context: LintContext, side: str, index: int) -> TensorInfo | None:
    """Return what a Parameter declares, or what is known of what a Result is given."""
    layer = context.graph.layers[index]
    if side == "input":
        is_parameter = layer.type == "Parameter" and layer.outputs
        return declared(layer.outputs[0]) if is_parameter else None
    inputs = context.inputs(index)
    return inputs[0] if layer.type == "Result" and inputs else None


def _fit(outside: Shape, inside: Shape, axis: int | None) -> bool:
    """Compare shapes; along the axis that is cut in slices, extents differ."""
    if axis is None or outside is None or inside is None or len(outside) != len(inside):
        return compatible(outside, inside)
    free = Interval(0, None)
    cut = [(*shape[:axis], free, *shape[axis + 1 :]) for shape in (outside, inside)]
    return compatible(cut[0], cut[1])


def _number(text: str | None) -> int:
    try:
        return int(text or "")
    except ValueError:
        return -1
