"""Tensors of bodies as outputs of the layers that run them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deconv_ir.changes.editor import Editor
from deconv_ir.errors import IRError
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.ir.body import Body, Joint, Slices
from deconv_ir.ir.dtypes import F32, I64, ElementType
from deconv_ir.ir.graph import Edge, Graph, Layer, Port, Source
from deconv_ir.ir.operation import ConstantSource, Context, TensorInfo
from deconv_ir.ir.tensor_names import find_tensors, tensor_name
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.constants.parameter import Result
from deconv_ir.ops.control_flow.bodies import WithBodies
from deconv_ir.ops.shape.squeeze import Unsqueeze


class InnerTensor(NamedTuple):
    """A tensor of a body.

    Attributes
    ----------
    name : str
        With the layers and bodies around it: ``rows/body/scaled``.
    path : tuple of (int, int)
        From the outermost, the index of each layer around it, and of its body.
    source : tuple of int
        The tensor in its body.
    """

    name: str
    path: tuple[tuple[int, int], ...]
    source: Source


def body_at(graph: Graph, path: Sequence[tuple[int, int]]) -> Graph:
    """Return the graph at the end of a path."""
    for index, number in path:
        graph = graph.layers[index].operation.bodies[number].graph
    return graph


def names_at(graph: Graph, path: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the names of the layers and bodies on a path: ``("rows", "body")``."""
    names: list[str] = []
    for index, number in path:
        layer = graph.layers[index]
        body = layer.operation.bodies[number]
        names += (layer.name, body.name)
        graph = body.graph
    return tuple(names)


def find_inner(
    graph: Graph, name: str, path: tuple[tuple[int, int], ...] = (), prefix: str = ""
) -> list[InnerTensor]:
    """Find the tensors of a body by ``LAYER/BODY/NAME``; empty if no body has the name.

    A layer with several outputs refers to all of them, as in the network itself.
    """
    for index, layer in enumerate(graph.layers):
        for number, body in enumerate(layer.operation.bodies):
            around = f"{layer.name}/{body.name}/"
            if not name.startswith(around):
                continue
            rest, own = name.removeprefix(around), (*path, (index, number))
            if found := find_inner(body.graph, rest, own, prefix + around):
                return found
            try:
                tensors = find_tensors(body.graph, [rest])
            except IRError:
                continue
            return [InnerTensor(prefix + around + n, own, s) for n, s in tensors.items()]
    return []


def inner_tensors(
    graph: Graph,
    infos: Sequence[Sequence[TensorInfo]],
    context: Context,
    path: tuple[tuple[int, int], ...] = (),
    prefix: str = "",
) -> Iterator[tuple[InnerTensor, TensorInfo]]:
    """Iterate over the tensors of all bodies that layers compute, in the order of the files.

    `infos` are the inferred outputs of all layers.
    """
    for index, layer in enumerate(graph.layers):
        operation = layer.operation
        if not isinstance(operation, WithBodies):
            continue
        given = [infos[s[0]][s[1]] for s in graph.topology.sources[index] if s is not None]
        for number, (body, inference) in enumerate(operation.infer_bodies(given, context)):
            own, around = (*path, (index, number)), f"{prefix}{layer.name}/{body.name}/"
            for at, inner in enumerate(body.graph.layers):
                if inner.type not in ("Const", "Result", "Assign"):
                    for output, info in enumerate(inference.outputs[at]):
                        name = tensor_name(body.graph, (at, output))
                        yield InnerTensor(around + name, own, (at, output)), info
            yield from inner_tensors(body.graph, inference.outputs, context, own, around)


def expose(
    graph: Graph, weights: ConstantSource | None, tensors: Sequence[InnerTensor]
) -> tuple[Graph, Weights | None, list[Source]]:
    """Make tensors of bodies outputs of the outermost layers that run them.

    An output has one axis more for each body around the tensor, in front, with an element for each
    run of the body: an iteration, or the branch of an If (none if the other one runs).  The graph
    can be run, and not be written.
    """
    editor = Editor(graph, weights)
    sources = []
    for tensor in tensors:
        graph, source = _expose(editor, graph, tensor.path, tensor)
        sources.append(source)
    editor.layers = list(graph.layers)
    return editor.graph(), editor.weights, sources


def inner_named(graph: Graph, names: Sequence[str]) -> list[InnerTensor]:
    """Return the tensors of bodies among those with the names; the others are not looked for."""
    inner = []
    for name in names:
        try:
            find_tensors(graph, [name])
        except IRError:
            inner += find_inner(graph, name)
    return list(dict.fromkeys(inner))


def _expose(
    editor: Editor, graph: Graph, path: Sequence[tuple[int, int]], tensor: InnerTensor
) -> tuple[Graph, Source]:
    if not path:
        return graph, tensor.source
    (index, number), *rest = path
    layer = graph.layers[index]
    bodies = list(layer.operation.bodies)
    body = bodies[number]
    inner, source = _expose(editor, body.graph, rest, tensor)
    port = inner.layers[source[0]].outputs[source[1]]
    element_type = port.element_type or F32
    position = len(layer.outputs)
    loops = len(bodies) == 1
    slices = Slices(axis=0) if loops else None
    axis = _constant(editor, bytes(8), I64, (1,))
    bodies[number] = _with_result(body, inner, source, axis, Joint(position, 0, slices))
    if not loops:  # the other branch of an If has no element
        empty = _constant(editor, b"", element_type, (0,))
        bodies[1 - number] = _with_constant(bodies[1 - number], empty, Joint(position, 0))
    own = 1 + max((p.id for p in (*layer.inputs, *layer.outputs)), default=-1)
    names = (tensor.name,) if len(path) == len(tensor.path) else ()
    made = Port(own, None, element_type, names)
    changes = {b.name: b for b in bodies}
    changed = layer._replace(
        operation=layer.operation.replace(**changes), outputs=(*layer.outputs, made)
    )
    layers = (*graph.layers[:index], changed, *graph.layers[index + 1 :])
    return graph.replace(layers=layers), (index, position)


def _constant(
    editor: Editor, data: bytes, element_type: ElementType, shape: tuple[int, ...]
) -> Const:
    return editor.store(data, element_type, shape)


def _with_result(body: Body, graph: Graph, source: Source, axis: Const, joint: Joint) -> Body:
    """Return a body with a tensor as an output, with one axis more in front."""
    free = 1 + max(layer.id for layer in graph.layers)
    maker = graph.layers[source[0]]
    port = maker.outputs[source[1]]
    at = Layer(free, f"axis {free}", axis, "Const", "opset1", (), (Port(0, (1,), I64),))
    ports = (port._replace(id=0, names=()), Port(1, (1,), I64))
    own = Port(2, None, port.element_type)
    longer = Layer(free + 1, f"iteration {free}", Unsqueeze(), "Unsqueeze", "opset1", ports, (own,))
    edges = (
        Edge(maker.id, port.id, free + 1, 0),
        Edge(free, 0, free + 1, 1),
    )
    return _ending(body, graph, (at, longer), edges, joint)


def _with_constant(body: Body, constant: Const, joint: Joint) -> Body:
    """Return a body with a constant as an output."""
    free = 1 + max((layer.id for layer in body.graph.layers), default=-1)
    port = Port(0, constant.shape, constant.element_type)
    made = Layer(free, f"none {free}", constant, "Const", "opset1", (), (port,))
    return _ending(body, body.graph, (made,), (), joint)


def _ending(
    body: Body, graph: Graph, layers: tuple[Layer, ...], edges: tuple[Edge, ...], joint: Joint
) -> Body:
    """Add layers to a body, and a Result of the last one."""
    last = layers[-1]
    port = last.outputs[0]
    end = Layer(
        last.id + 1, f"result {last.id}", Result(), "Result", "opset1", (port._replace(id=0),)
    )
    whole = graph.replace(
        layers=(*graph.layers, *layers, end),
        edges=(*graph.edges, *edges, Edge(last.id, port.id, end.id, 0)),
    )
    joint = joint._replace(inner=len(whole.layers) - 1)
    return body.replace(graph=whole, outputs=(*body.outputs, joint))
