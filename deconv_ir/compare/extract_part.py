"""Extraction of the layers between tensors from a graph, with their constants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from deconv_ir.errors import IRError
from deconv_ir.ir.graph import Edge, Graph, Layer, Port, Source
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import format_shape
from deconv_ir.ir.tensor_names import tensor_name
from deconv_ir.ops.base import format_attributes
from deconv_ir.ops.constants.parameter import Parameter, Result


def extract_part(
    graph: Graph,
    infos: Sequence[Sequence[TensorInfo]],
    starts: Sequence[Source],
    ends: Sequence[Source],
) -> Graph:
    """Make a graph of the layers that lie between tensors.

    The `starts` become inputs, the `ends` outputs.  An input of the model on a path to the ends
    that does not contain a start stays an input.  `infos` has the infos of all outputs of all
    layers.  Tensors of inputs and outputs without a name get one, by which other tools find them.

    Raises
    ------
    IRError
        An end is a start, or no end depends on any start.
    """
    sources = graph.topology.sources
    given = dict.fromkeys(starts)
    if both := [end for end in ends if end in given]:
        raise IRError(
            f"tensor {tensor_name(graph, both[0])!r} is both an input and an output of the part",
            file=graph.file,
        )
    needed: set[int] = set()
    reached: set[Source] = set()
    stack = [end[0] for end in ends]
    while stack:
        index = stack.pop()
        if index in needed:
            continue
        needed.add(index)
        for source in sources[index]:
            if source in given:
                reached.add(source)
            elif source is not None:
                stack.append(source[0])
    if unused := [start for start in starts if start not in reached]:
        raise IRError(
            f"no output of the part depends on {tensor_name(graph, unused[0])!r}",
            file=graph.file,
            line=graph.layers[unused[0][0]].line,
        )
    free = 1 + max(layer.id for layer in graph.layers)
    inputs: dict[Source, Layer] = {}
    for start in given:
        inputs[start] = _parameter(graph, start, infos[start[0]][start[1]], free + len(inputs))
    kept = [graph.layers[i] for i in sorted(needed) if graph.layers[i].type != "Result"]
    kept = _named(graph, kept, needed, ends, inputs.values())
    edges = []
    for index in sorted(needed):
        layer = graph.layers[index]
        for port, source in zip(layer.inputs, sources[index], strict=True):
            if source is None or layer.type == "Result":
                continue
            maker = inputs.get(source) or graph.layers[source[0]]
            output = 0 if source in inputs else source[1]
            edges.append(Edge(maker.id, maker.outputs[output].id, layer.id, port.id))
    results: list[Layer] = []
    for end in ends:
        maker = graph.layers[end[0]]
        port = maker.outputs[end[1]]
        own = free + len(inputs) + len(results)
        name = f"{tensor_name(graph, end)}/result"
        results.append(
            Layer(own, name, Result(), "Result", "opset1", (port._replace(id=0, names=()),))
        )
        edges.append(Edge(maker.id, port.id, own, 0))
    return Graph(
        name=f"{graph.name} (part)",
        layers=(*inputs.values(), *kept, *results),
        edges=tuple(edges),
        ir_version=graph.ir_version or 11,
        file=graph.file,
        format=graph.format,
    )


def output_names(part: Graph) -> list[str]:
    """Return the names of the output tensors of a part."""
    rows = zip(part.layers, part.topology.sources, strict=True)
    return [tensor_name(part, r[0]) for layer, r in rows if layer.type == "Result" and r[0]]


def _named(
    graph: Graph,
    kept: Sequence[Layer],
    needed: Collection[int],
    ends: Sequence[Source],
    inputs: Iterable[Layer],
) -> list[Layer]:
    """Name the tensors of inputs and outputs that have no name; names are unique."""
    taken = {name for layer in (*kept, *inputs) for port in layer.outputs for name in port.names}
    numbers: dict[str, int] = {}
    wanted = {(graph.layers[index].id, output) for index, output in ends}
    wanted |= {(layer.id, 0) for layer in kept if layer.type == "Parameter" and layer.outputs}
    place = {graph.layers[index].id: index for index in needed}
    named = []
    for layer in kept:
        ports = list(layer.outputs)
        for output, port in enumerate(ports):
            if port.names or (layer.id, output) not in wanted:
                continue
            base = name = tensor_name(graph, (place[layer.id], output))
            while name in taken:
                numbers[base] = numbers.get(base, 1) + 1
                name = f"{base}.{numbers[base]}"
            taken.add(name)
            ports[output] = port._replace(names=(name,))
        layer = layer._replace(outputs=tuple(ports))
        if not layer.attributes and layer.type == "Parameter":  # an input of a bare <layer>
            layer = layer._replace(attributes=tuple(format_attributes(layer.operation).items()))
        named.append(layer)
    return named


def _parameter(graph: Graph, source: Source, info: TensorInfo, own: int) -> Layer:
    """Make an input that replaces a tensor, with its name, type and shape."""
    port = graph.layers[source[0]].outputs[source[1]]
    element_type = info.element_type or port.element_type
    shape = info.shape if info.shape is not None else port.shape
    name = tensor_name(graph, source)
    attributes = [("shape", "..." if shape is None else format_shape(shape)[1:-1])]
    if element_type is not None:
        attributes.append(("element_type", element_type.name))
    return Layer(
        own,
        name,
        Parameter(shape=shape, element_type=element_type),
        "Parameter",
        "opset1",
        (),
        (Port(0, shape, element_type, port.names or (name,)),),
        tuple(attributes),
    )
