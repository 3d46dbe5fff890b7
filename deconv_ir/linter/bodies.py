"""The bodies of If, Loop and TensorIterator: graphs that a port map connects to a layer.

Declared dims are evidence in a body as they are elsewhere, those of its Parameters too: OpenVINO
declares a dim that changes from iteration to iteration as unknown.

Source: OpenVINO operation specifications, If-8, Loop-5, TensorIterator-1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.formats.openvino_xml.locations import XMLLocator, attribute_span
from deconv_ir.formats.openvino_xml.port_maps import PORT_MAPS
from deconv_ir.ir.body import Slices
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.infer import declared
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, declared_form, format_shape, intersect
from deconv_ir.linter.context import BodyContext, LintContext, infer_with_evidence
from deconv_ir.suggestions import nearest

if TYPE_CHECKING:
    from deconv_ir.formats.openvino_xml.scanner import Element


OWN_INPUTS: Final = {"If": 1, "Loop": 2}
"""Type -> number of inputs that the layer reads itself."""


def _element(context: LintContext, index: int) -> Element:
    """Return the element of a layer; only an IR has bodies."""
    assert isinstance(context.locator, XMLLocator)
    return context.locator.layer(index)


def read_bodies(context: LintContext) -> Iterator[BodyContext]:
    """Connect and infer the bodies of a graph's layers, with the shapes of their inputs."""
    parsed = context.parsed
    for owner, tag, inner in parsed.bodies:
        assert inner.graph is not None, "a body has a graph"
        given = _given(context, owner, tag)
        errors: list[DeconvError] = []
        inference, evidence = infer_with_evidence(
            inner.graph, context.inference_context, given, errors, resume=context.resumes
        )
        found = LintContext(
            inner, context.inference_context, inference, context.weights, errors, evidence
        )
        found.around = context
        found.deep = context.deep
        found.targets = context.targets
        found.tables = context.tables
        found.resumes = context.resumes
        found.bodies = tuple(read_bodies(found))
        yield BodyContext(owner, tag, found)


def _given(context: LintContext, owner: int, tag: str) -> dict[int, TensorInfo]:
    """Return the infos of the Parameters of a layer's body, within their declared dims."""
    operation = context.graph.layers[owner].operation
    if tag not in operation.body_names:
        return {}
    number = operation.body_names.index(tag)
    given = operation.infer_parameters(context.inputs(owner), context.inference_context)[number]
    layers = operation.bodies[number].graph.layers
    for index, info in given.items():
        stated = layers[index].outputs[0].shape if layers[index].outputs else None
        if info.shape != stated and compatible(info.shape, stated):
            given[index] = info._replace(shape=intersect(info.shape, stated))
    return given


def check_inputs(context: LintContext, body: BodyContext) -> Iterator[Finding]:
    """Compare the dims that the inputs of a body declare with those that they get."""
    for index, info in _given(context, body.owner, body.tag).items():
        layer = body.context.graph.layers[index]
        stated = layer.outputs[0].shape if layer.outputs else None
        if not compatible(info.shape, stated):
            # A location would be one of the graph around the body.
            start, _ = body.context.locator.span(GraphLocation(layer=index))
            text = body.context.parsed.file_text
            line, column = (None, None) if text is None else text.position(start)
            yield Finding(
                f"the port map brings {format_shape(info.shape)} to the input {layer.name!r} of "
                f"the {body.tag}, which declares {format_shape(stated)}",
                expected=format_shape(info.shape),
                actual=format_shape(stated),
                line=line,
                column=column,
                layer=body.context.parsed.label(index),
            )


def check_body(context: LintContext, body: BodyContext) -> Iterator[Finding]:
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
            yield Finding(
                f"the port map names layer {attributes.get('internal_layer_id')!r} of the "
                f"{body.tag}, which is not a {wanted}",
                entry.head,
                actual=attributes.get("internal_layer_id"),
            )
            continue
        mapped.add(index)
        yield from _check_entry(context, body, entry, attributes, index)
    if context.graph.layers[body.owner].type == "Loop":
        yield from _check_loop(context, body, [] if port_map is None else port_map.children)
    later = {end: given for _, end, given, _ in _back_edges(body, element, by_id)}
    for index, layer in enumerate(inner.layers):
        if layer.type != "Parameter":
            continue
        if index not in mapped:
            yield Finding(
                f"no port map brings data to the Parameter {layer.name!r} of the {body.tag}",
                _element(body.context, index).head,
            )
        # In inference, the layer's inputs replace the Parameter's attributes.
        if layer.operation.implemented and layer.outputs:
            (said,) = layer.operation.infer((), context.inference_context)
            stated = declared(layer.outputs[0])
            same = declared_form(stated.shape) == declared_form(said.shape)
            if _is_widened(stated, said, later.get(index)):
                continue
            if not _agree(stated, said) or (stated.shape is not None and not same):
                yield Finding(
                    f"the attributes of {layer.name!r} in the {body.tag} say {said}, its port "
                    f"declares {stated}",
                    _element(body.context, index).head,
                    expected=str(said),
                    actual=str(stated),
                )
    yield from _check_back_edges(body, element, by_id)


def check_ports(context: LintContext, bodies: Sequence[BodyContext]) -> Iterator[Finding]:
    """Report ports of a layer that the port maps of its bodies do not name.

    The first inputs are the layer's own: the condition of an If, trip count and condition of a
    Loop.
    """
    index = bodies[0].owner
    layer = context.graph.layers[index]
    element = _element(context, index)
    taken: set[int] = set()
    for body in bodies:
        port_map = element.first(PORT_MAPS[body.tag])
        entries = [] if port_map is None else [(e, e.attributes()) for e in port_map.children]
        given = {
            side: {_number(a.get("external_port_id")) for e, a in entries if e.tag == side}
            for side in ("input", "output")
        }
        taken |= given["input"]
        for place, port in enumerate(layer.outputs):
            if port.id not in given["output"]:
                yield Finding(
                    f"no port map says which Result of the {body.tag} output port {port.id} is",
                    GraphLocation(layer=index, side="output", port=place),
                )
        if layer.type == "Loop" and not any(
            a.get("purpose") == "execution_condition" for _, a in entries
        ):
            yield Finding(
                "no Result of the body has the purpose execution_condition",
                GraphLocation(layer=index),
                expected="execution_condition",
            )
    for place, port in enumerate(layer.inputs[OWN_INPUTS.get(layer.type, 0) :]):
        if port.id not in taken:
            yield Finding(
                f"no port map brings input port {port.id} into a body",
                GraphLocation(
                    layer=index, side="input", port=place + OWN_INPUTS.get(layer.type, 0)
                ),
            )


def _check_entry(
    context: LintContext, body: BodyContext, entry: Element, attributes: dict[str, str], index: int
) -> Iterator[Finding]:
    """Compare a tensor inside a body with the connected one outside."""
    layer = context.graph.layers[body.owner]
    purpose = attributes.get("purpose")
    inside = _inside(body.context, entry.tag, index)
    if inside is None:
        return
    if purpose == "execution_condition" and inside.element_type is not None:
        if inside.element_type.name != "boolean":
            yield Finding(
                f"the execution condition of a Loop is boolean, found {inside.element_type}",
                entry.head,
                expected="boolean",
                actual=str(inside.element_type),
            )
        return
    if purpose == "current_iteration" or (purpose and attributes.get("external_port_id") == "-1"):
        return
    ports = layer.inputs if entry.tag == "input" else layer.outputs
    number = _number(attributes.get("external_port_id"))
    place = next((i for i, port in enumerate(ports) if port.id == number), None)
    if place is None:
        yield Finding(
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
        yield from _check_slices(entry, attributes, inside, axis)
    if not _agree(outside, inside, axis):
        along = "" if axis is None else f", sliced along axis {axis}"
        yield Finding(
            f"{entry.tag} port {number} is {outside}, and {body.context.graph.layers[index].name!r}"
            f" in the {body.tag} is {inside}{along}",
            GraphLocation(layer=body.owner, side=entry.tag, port=place),
            expected=format_shape(inside.shape),
            actual=format_shape(outside.shape),
        )


PURPOSES: Final = ("current_iteration", "execution_condition")


def _check_loop(
    context: LintContext, body: BodyContext, entries: Sequence[Element]
) -> Iterator[Finding]:
    """Check the purposes of a Loop's port map, and that its inputs have a slice per iteration."""
    trips = context.inputs(body.owner)[0].value if context.inputs(body.owner) else None
    count = trips[0] if trips and isinstance(trips[0], int) and trips[0] > 0 else None
    for entry in entries:
        attributes = entry.attributes()
        purpose = attributes.get("purpose", "")
        if purpose and purpose not in PURPOSES:
            yield Finding(
                f"a Loop has no purpose {purpose!r}",
                attribute_span(entry, "purpose"),
                expected=" or ".join(PURPOSES),
                actual=purpose,
                hint=nearest(purpose, PURPOSES),
            )
        elif purpose and "axis" in attributes:
            yield Finding(
                f"{purpose} is not sliced, but the port map has an axis for it",
                attribute_span(entry, "axis"),
                actual=attributes["axis"],
            )
        elif purpose == PURPOSES[0] and attributes.get("external_port_id") != "-1":
            yield Finding(
                f"{purpose} comes from no port of the Loop: external_port_id must be -1",
                attribute_span(entry, "external_port_id"),
                expected="-1",
                actual=attributes.get("external_port_id"),
            )
        elif entry.tag == "input" and "axis" in attributes:
            yield from _check_parts(context, body, entry, attributes, count)


def _check_parts(
    context: LintContext,
    body: BodyContext,
    entry: Element,
    attributes: dict[str, str],
    count: int | None,
) -> Iterator[Finding]:
    """Check that an input has as many slices as the Loop has iterations."""
    layer = context.graph.layers[body.owner]
    number = _number(attributes.get("external_port_id"))
    place = next((i for i, port in enumerate(layer.inputs) if port.id == number), None)
    shape = None if place is None else context.inputs(body.owner)[place].shape
    names = {"start": "0", "end": "-1", "stride": "1", "part_size": "1"}
    slices = Slices(
        _number(attributes["axis"]),
        *(_number(attributes.get(name, default)) for name, default in names.items()),
    )
    if shape is None or not -len(shape) <= slices.axis < len(shape):
        return
    extent = shape[slices.axis]
    parts = slices.parts(extent) if isinstance(extent, int) else None
    if not slices.stride or (isinstance(extent, int) and parts is None):
        yield Finding(
            f"input port {number} {format_shape(shape)} cannot be cut along axis {slices.axis} "
            f"from {slices.start} to {slices.end} by {slices.stride}",
            attribute_span(entry, "stride"),
            actual=slices.stride,
        )
    elif parts is not None and count is not None and parts < count and _goes_on(context, body):
        yield Finding(
            f"input port {number} has {parts} slices along axis {slices.axis}, the Loop has "
            f"{count} iterations",
            entry.head,
            expected=count,
            actual=parts,
        )


def _goes_on(context: LintContext, body: BodyContext) -> bool:
    """Whether the execution condition of a Loop is always true."""
    bodies = context.graph.layers[body.owner].operation.bodies
    for inner in bodies:
        condition = inner.purpose(PURPOSES[1])
        if condition >= 0:
            return any(info.value == (1,) for info in body.context.inputs(condition))
    return False


def _check_slices(
    entry: Element, attributes: dict[str, str], inside: TensorInfo, axis: int
) -> Iterator[Finding]:
    """Check that a slice is as long as its tensor in the body; outputs are concatenated."""
    size = _number(attributes.get("part_size", "1"))
    stride = _number(attributes.get("stride", "1"))
    extent = inside.shape[axis] if inside.shape is not None and axis < len(inside.shape) else size
    if extent != size and isinstance(extent, int):
        yield Finding(
            f"slices are {extent} long along axis {axis} in the body, part_size is {size}",
            entry.head,
            expected=extent,
            actual=size,
        )
    if entry.tag == "output" and abs(stride) != size:
        yield Finding(
            f"stride is {stride}, but part_size is {size}",
            entry.head,
            expected=f"{size} or -{size}",
            actual=stride,
        )


def _back_edges(
    body: BodyContext, element: Element, by_id: dict[int, int]
) -> Iterator[tuple[Element, int, TensorInfo | None, TensorInfo | None]]:
    """Iterate over the back edges between layers of a body.

    The element, the index of the layer at its end, what an iteration gives, and what the next one
    takes.
    """
    back_edges = element.first("back_edges")
    for edge in back_edges.children if back_edges is not None else ():
        ends = edge.attributes()
        start, end = (by_id.get(_number(ends.get(name))) for name in ("from-layer", "to-layer"))
        if start is not None and end is not None:
            given = _inside(body.context, "output", start)
            yield edge, end, given, _inside(body.context, "input", end)


def _check_back_edges(
    body: BodyContext, element: Element, by_id: dict[int, int]
) -> Iterator[Finding]:
    """Check that tensors for the next iteration have the expected shape and type."""
    known = set()
    for edge, _, given, taken in _back_edges(body, element, by_id):
        known.add(edge.start)
        if given is None or taken is None:
            yield Finding("a back edge leads from a Result to a Parameter", edge.head)
        elif not _agree(given, taken):
            yield Finding(
                f"an iteration gives {given}, and the next one takes {taken}",
                edge.head,
                expected=str(taken),
                actual=str(given),
            )
    back_edges = element.first("back_edges")
    for edge in back_edges.children if back_edges is not None else ():
        if edge.start not in known:
            yield Finding("a back edge names a layer that the body does not have", edge.head)


def brought_back(context: LintContext, index: int) -> TensorInfo | None:
    """Return what a back edge brings to a Parameter of this body; None if there is none."""
    around = context.around
    if around is None:
        return None
    body = next((b for b in around.bodies if b.context is context), None)
    if body is None:
        return None
    by_id = {layer.id: i for i, layer in enumerate(context.graph.layers)}
    edges = _back_edges(body, _element(around, body.owner), by_id)
    return next((given for _, end, given, _ in edges if end == index), None)


def _is_widened(stated: TensorInfo, said: TensorInfo, later: TensorInfo | None) -> bool:
    """Whether a Parameter's port allows more than its attributes, as a back edge brings more.

    OpenVINO widens the port for what later iterations bring, and may keep the attribute.
    """
    if later is None or stated.element_type not in (None, said.element_type):
        return False
    if said.shape is None or stated.shape is None or not compatible(stated.shape, said.shape):
        return False
    is_wider = intersect(stated.shape, said.shape) == said.shape
    return is_wider and not (
        compatible(later.shape, said.shape) and intersect(later.shape, said.shape) == later.shape
    )


def _inside(context: LintContext, side: str, index: int) -> TensorInfo | None:
    """Return the declared info of a Parameter, or the inferred one of a Result's input."""
    layer = context.graph.layers[index]
    if side == "input":
        is_parameter = layer.type == "Parameter" and layer.outputs
        return declared(layer.outputs[0]) if is_parameter else None
    inputs = context.inputs(index)
    return inputs[0] if layer.type == "Result" and inputs else None


def _agree(a: TensorInfo, b: TensorInfo, axis: int | None = None) -> bool:
    """Whether two infos may be those of one tensor, except for the extent along an axis."""
    types = {a.element_type, b.element_type} - {None}
    return len(types) < 2 and _fit(a.shape, b.shape, axis)


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
