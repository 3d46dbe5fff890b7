"""Rules about the graph: layers, ports and edges."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.hints import Advice
from deconv_ir.ir.graph import Port, Source
from deconv_ir.ir.shapes import Shape, compatible, declared_form, format_shape, intersect
from deconv_ir.linter.context import SINKS, LintContext
from deconv_ir.linter.edits import dims_fix, type_fix
from deconv_ir.linter.rule import ERROR, WARNING, rule
from deconv_ir.ops import find_operation, opset_number

if TYPE_CHECKING:
    from deconv_ir.linter.rule import Check


@rule("IR202", "duplicate-layer-name", WARNING, when="has_repeated_names")
def repeated_names(context: LintContext) -> Iterator[Finding]:
    """Two layers have the same name.

    Tools that find layers by name get either of them, or neither.  OpenVINO makes names
    unique when it saves a model.  Operations of oneDNN Graph files are exempt: their ids
    tell them apart.

        <layer id="4" name="add"/>
        <layer id="5" name="add"/>
    """
    layers = context.graph.layers
    if context.graph.bare:  # the other layers are generated
        return
    first: dict[str, int] = {}
    for index, layer in enumerate(layers):
        before = first.setdefault(layer.name, index)
        if before != index and layer.name:
            yield Finding(
                f"name {layer.name!r} is already taken by layer {layers[before].id} "
                f"in line {layers[before].line}",
                GraphLocation(layer=index, attribute="name", own=True),
            )


@rule("IR208", "unneeded-layer", WARNING, when="unneeded")
def unneeded_layers(context: LintContext) -> Iterator[Finding]:
    """No Result depends on a layer.

    The layer costs time and memory, and often shows that an edge ends at the wrong layer.
    Parameters are exempt, since they are the model's interface, and so are layers that an
    Assign depends on.  Of a chain of such layers the last one is reported, with their number.

        <layer id="7" name="unused" type="ShapeOf" version="opset3">
            <output><port id="1"/></output>
        </layer>
        <edge from-layer="0" from-port="0" to-layer="7" to-port="0"/>
    """
    unneeded = set(context.unneeded)
    sources = context.topology.sources
    used = {s[0] for i in unneeded for s in sources[i] if s is not None and s[0] in unneeded}
    counted: set[int] = set()
    # Each group of layers on a cycle is reported at its first layer.
    for index in [*sorted(unneeded - used), *sorted(used)]:
        if index in counted:
            continue
        before = len(counted)
        ends = [index]
        while ends:
            at = ends.pop()
            if at not in counted:
                counted.add(at)
                ends += [s[0] for s in sources[at] if s is not None and s[0] in unneeded]
        others = len(counted) - before - 1
        more = f", nor that of {others} other{'s' * (others > 1)} before it" if others else ""
        yield Finding(
            f"no Result needs what this layer computes{more}",
            GraphLocation(layer=index),
            actual=others + 1,
        )


def on_unequal_edges(
    check: Callable[[LintContext, int, int, Source], Iterator[Finding]],
) -> Check:
    """Convert a check of edges with different declarations to a check of files."""

    @functools.wraps(check)
    def check_file(context: LintContext) -> Iterator[Finding]:
        for index, port, source in context.unequal_edges:
            yield from check(context, index, port, source)

    return check_file


def _is_state(context: LintContext, index: int, end: Port) -> bool:
    """Whether a body's Parameter declares its first shape, and its user that of all iterations."""
    from deconv_ir.linter.bodies import brought_back

    (port,) = context.graph.layers[index].outputs[:1]
    later = brought_back(context, index)
    return (
        later is not None
        and _contains(end.shape, port.shape)
        and _contains(end.shape, later.shape)
        and not _contains(port.shape, later.shape)
    )


def _contains(outer: Shape, inner: Shape) -> bool:
    """Whether a shape allows all that another one does."""
    return outer is None or (
        inner is not None and compatible(outer, inner) and intersect(outer, inner) == inner
    )


@rule(
    "IR209",
    "edge-dims-differ",
    ERROR,
    when="unequal_edges",
    fix="declares the computed dims at the wrong end",
)
@on_unequal_edges
def unequal_dims(context: LintContext, index: int, port: int, source: Source) -> Iterator[Finding]:
    """The two ends of an edge declare different dims.

    They are one tensor.  OpenVINO ignores declared dims, so the mistake shows only when a
    tool that trusts them fails.  The end that contradicts the computed shape is reported.

        <layer id="6">
            <input>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>6</dim> <dim>9</dim> <dim>12</dim>
                </port>
            </input>
        </layer>
    """
    layers = context.graph.layers
    producer, consumer = layers[source[0]], layers[index]
    start, end = producer.outputs[source[1]], consumer.inputs[port]
    computed = context.outputs(source[0])[source[1]].shape
    form = declared_form(computed)
    start_form, end_form = declared_form(start.shape), declared_form(end.shape)
    if start_form == end_form:
        return  # the same, written in two ways
    if producer.type == "Parameter" and context.is_body and _is_state(context, source[0], end):
        return
    if end_form == form:
        if not compatible(start.shape, computed) or producer.type == "Parameter":
            return  # declared-dims-differ reports it, at the wrong end
        location = GraphLocation(layer=source[0], side="output", port=source[1])
        stated, other, other_line = start, end, consumer.line_of(end)
        other_name = f"{consumer.name!r}, which it feeds,"
    else:
        location = GraphLocation(layer=index, side="input", port=port)
        stated, other, other_line = end, start, producer.line_of(start)
        other_name = f"{producer.name!r}, which feeds it,"
    known = producer.operation.implemented
    wanted = computed if known else other.shape
    yield Finding(
        f"declares {format_shape(stated.shape)}, but {other_name} declares "
        f"{format_shape(other.shape)} in line {other_line}",
        location._replace(axis=_first_difference(stated.shape, wanted)),
        expected=format_shape(wanted),
        actual=format_shape(stated.shape),
        fix=dims_fix(context, location.layer or 0, location.side or "", location.port or 0, wanted)
        if known
        else None,
    )


def _first_difference(stated: Shape, wanted: Shape) -> int | None:
    """Return the first axis on which two shapes differ; None if only the ranks differ."""
    pairs = zip(declared_form(stated), declared_form(wanted), strict=False)
    return next((axis for axis, (a, b) in enumerate(pairs) if a != b), None)


@rule(
    "IR210",
    "edge-precision-differs",
    ERROR,
    when="unequal_edges",
    fix="declares the precision that the tensor has",
)
@on_unequal_edges
def unequal_precisions(
    context: LintContext, index: int, port: int, source: Source
) -> Iterator[Finding]:
    """The two ends of an edge declare different precisions.

    They are one tensor, with one element type.  A conversion is a layer of its own, a
    Convert.

        <layer id="6">
            <input>
                <port id="0" precision="FP16">
                    <dim>1</dim> <dim>6</dim> <dim>9</dim> <dim>11</dim>
                </port>
            </input>
        </layer>
    """
    layers = context.graph.layers
    producer, consumer = layers[source[0]], layers[index]
    start, end = producer.outputs[source[1]], consumer.inputs[port]
    if start.element_type is end.element_type:
        return
    computed = context.outputs(source[0])[source[1]].element_type or start.element_type
    if computed is end.element_type or computed is None or end.element_type is None:
        return  # declared-precision-differs reports it, at the wrong end
    yield Finding(
        f"declares precision {end.element_type.ir_name}, but {producer.name!r}, which feeds "
        f"it, gives {computed.ir_name} in line {producer.line_of(start)}",
        GraphLocation(layer=index, side="input", port=port, attribute="precision"),
        expected=computed.ir_name,
        actual=end.element_type.ir_name,
        fix=type_fix(context, index, "input", port, computed)
        if producer.operation.implemented
        else None,
    )


@rule("IR211", "no-result", WARNING, when="has_no_result")
def no_result(context: LintContext) -> Iterator[Finding]:
    """The network has no Result.

    A runtime can load it, but it has no output.

        <layer id="6" type="ReLU"/>
    """
    if context.has_no_result:
        yield Finding("the network has no Result", context.parsed.root)


@rule("IR212", "duplicate-port-id", ERROR, when="repeated_port_ids")
def repeated_port_ids(context: LintContext) -> Iterator[Finding]:
    """Two inputs, or two outputs, of a layer have the same id.

    Edges name ports by id, so no edge can reach the second one.  An output may have the id
    of an input.

        <input>
            <port id="0"><dim>1</dim><dim>4</dim><dim>5</dim><dim>6</dim></port>
            <port id="0"><dim>4</dim><dim>6</dim><dim>3</dim><dim>3</dim></port>
        </input>
    """
    for index, side, i in context.repeated_port_ids:
        layer = context.graph.layers[index]
        port = (layer.inputs if side == "input" else layer.outputs)[i]
        yield Finding(
            f"duplicate {side} port id {port.id}",
            GraphLocation(layer=index, side=side, port=i, attribute="id"),
            actual=port.id,
        )


def at_the_surplus_output(found: Finding, context: LintContext) -> Finding:
    """Locate the finding at the first surplus output."""
    is_output = found.rule == "output-count"
    return found.moved(side="output", port=found.expected) if is_output else found


@rule(
    "IR213",
    "wrong-number-of-ports",
    ERROR,
    takes="input-count output-count",
    when="oddly_ported",
    present=at_the_surplus_output,
)
def numbers_of_outputs(context: LintContext) -> Iterator[Finding]:
    """A layer has more or fewer ports than its operation.

    Inputs are identified by their order, so a missing one shifts all that follow.

        <input>
            <port id="0"><dim>1</dim><dim>4</dim><dim>5</dim><dim>6</dim></port>
        </input>
    """
    for index in context.oddly_ported:
        layer = context.graph.layers[index]
        if layer.outputs:
            yield Finding(
                "a Result has no outputs in an IR",
                GraphLocation(layer=index, side="output", port=0),
                expected=0,
                actual=len(layer.outputs),
            )
        elif layer.type not in SINKS and layer.operation.implemented:
            yield Finding(
                f"{layer.type} declares no output, so nothing can use what it computes",
                GraphLocation(layer=index),
                expected="1 or more",
                actual=0,
            )


@rule(
    "IR214",
    "unknown-operation",
    ERROR,
    when="unusual_operations",
    takes="legacy-layer legacy-form",
)
def unknown_operations(context: LintContext) -> Iterator[Finding]:
    """The type of a layer is in no opset, or its version does not have it.

    OpenVINO cannot read such a file.  Layers of an extension are skipped, and so are types
    of an opset without a shape rule here: their declared dims are trusted, and the summary
    counts them.  In an IR of version 2 to 7, no operation of an opset computes what the layer
    does.

        <layer id="5" type="Relu6"/>
    """
    verdicts = {pair: _judge_operation(*pair) for pair in context.unusual_operations}
    for index, layer in enumerate(context.graph.layers):
        verdict = verdicts.get((layer.type, layer.version or ""))
        if verdict is not None:
            attribute, message, hint = verdict
            location = GraphLocation(layer=index, attribute=attribute, own=True)
            yield Finding(message, location, actual=getattr(layer, attribute), hint=hint)


@rule("IR215", "body-does-not-fit", ERROR, when="bodies")
def bodies(context: LintContext) -> Iterator[Finding]:
    """A body of an If, Loop or TensorIterator does not fit its layer or its port map.

    The port map joins Parameters and Results of the body to ports of the layer; a back edge
    leads from a Result to the Parameter of the next iteration.  Both ends have one shape,
    except along an axis that is cut in slices, and one element type.

        <layer id="5" name="act" type="TensorIterator" version="opset1">
            <port_map>
                <input external_port_id="0" internal_layer_id="9"/>
            </port_map>
            <body>
                <layers/>
                <edges/>
            </body>
        </layer>
    """
    from deconv_ir.linter.bodies import check_body, check_inputs, check_ports

    if not context.parsed.has_opsets:
        # The port map of an old IR names ports of layers, and was checked when it was read.
        for body in context.bodies:
            yield from check_inputs(context, body)
        return
    for _, group in itertools.groupby(context.bodies, key=lambda body: body.owner):
        found = list(group)
        yield from check_ports(context, found)
        for body in found:
            yield from check_body(context, body)


def _judge_operation(type_name: str, version: str) -> tuple[str, str, Advice | None] | None:
    """Return the wrong attribute, the problem, and a hint; None if the operation is valid."""
    from deconv_ir.ops.opsets import EXTENSIONS, LAST_OPSET, OPERATIONS, nearest_operation

    newest = find_operation(type_name)
    if newest is None and type_name not in OPERATIONS:
        if version and not version.startswith("opset"):
            return None  # of an extension
        return (
            "type",
            f"no opset has an operation {type_name!r}",
            nearest_operation(type_name, version),
        )
    if version in EXTENSIONS or (newest is not None and version in newest.versions):
        return None
    if not 1 <= opset_number(version) <= LAST_OPSET:
        return "version", f"there is no {version!r}: opset1 to opset{LAST_OPSET} are known", None
    if newest is not None and find_operation(type_name, version) is None:
        return (
            "version",
            f"{type_name} is not in {version}; it came with {newest.versions[0]}",
            None,
        )
    return None


@rule("IR201", "duplicate-layer-id", ERROR, takes="duplicate-layer-id")
def duplicate_layer_id() -> None:
    """Two layers have the same id.

    Edges name layers by id, so they are ambiguous.

        <net name="example" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1"/>
            <layer id="0" name="y" type="Result" version="opset1"/>
        </layers></net>
    """


@rule("IR203", "edge-to-missing-layer", ERROR, takes="edge-to-missing-layer")
def edge_to_missing_layer() -> None:
    """An edge names a layer that does not exist.

    The tensor that it carries has no source, or no destination.

        <edge from-layer="7" from-port="0" to-layer="2" to-port="0"/>
    """


@rule("IR204", "edge-to-missing-port", ERROR, takes="edge-to-missing-port")
def edge_to_missing_port() -> None:
    """An edge names a port that its layer does not have.

    The numbers of output ports continue those of the input ports, which is easy to miss
    when counting by hand.

        <edge from-layer="0" from-port="1" to-layer="2" to-port="0"/>
    """


@rule("IR205", "two-edges-into-port", ERROR, takes="two-edges-into-port")
def two_edges_into_port() -> None:
    """Two edges end at the same input port.

    An input takes one tensor, and the file does not say which.  Often one of the edges was
    meant for the next port.

        <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
        <edge from-layer="1" from-port="0" to-layer="2" to-port="0"/>
    """


@rule("IR206", "input-without-edge", ERROR, takes="input-without-edge")
def input_without_edge() -> None:
    """No edge ends at an input port.

    The layer has no data for that input, so neither it nor the layers that follow can be
    computed.

        <edges/>
    """


@rule("IR207", "cycle", ERROR, takes="cycle")
def cycle() -> None:
    """Layers form a cycle.

    Each of them waits for another one, so none can be computed.

        <edge from-layer="5" from-port="1" to-layer="2" to-port="0"/>
    """
