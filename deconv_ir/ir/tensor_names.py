"""Names of the tensors of a graph, and of the inputs and outputs of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from deconv_ir.errors import InputError, IRError
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Graph, Layer, Port, Source
from deconv_ir.ir.operation import Infos, TensorInfo
from deconv_ir.suggestions import nearest


def tensor_name(graph: Graph, source: Source) -> str:
    """Return the name of a tensor: its own, else that of its layer."""
    layer = graph.layers[source[0]]
    names = layer.outputs[source[1]].names if source[1] < len(layer.outputs) else ()
    if names:
        return names[0]
    return layer.name if len(layer.outputs) < 2 else f"{layer.name}.{source[1]}"


def unique_names(graph: Graph, layers: Iterable[int]) -> dict[str, Source]:
    """Return the tensors of layers by name; where layers share one, later names have the id."""
    found: dict[str, Source] = {}
    for index in layers:
        layer = graph.layers[index]
        for output in range(len(layer.outputs)):
            name = tensor_name(graph, (index, output))
            if name in found:
                name = f"{layer.name}.{layer.id}.{output}"
            found[name] = (index, output)
    return found


def find_tensors(
    graph: Graph, names: Sequence[str], outputs: Mapping[str, Source] = MappingProxyType({})
) -> dict[str, Source]:
    """Find tensors by tensor name, layer name or layer id, in this order.

    If several layers have a name, it refers to the one among the model's `outputs`.

    A Result refers to its input.  A layer with several outputs refers to all of them, named
    ``name.0``, ``name.1`` and so on; these names can also be used.
    """
    tensors: dict[str, Source] = {}
    layers: dict[str, list[int]] = {}
    ids: dict[str, int] = {}
    for index, layer in enumerate(graph.layers):
        layers.setdefault(layer.name, []).append(index)
        ids.setdefault(str(layer.id), index)
        for output, port in enumerate(layer.outputs):
            for name in port.names:
                tensors.setdefault(name, (index, output))

    def layer_at(name: str) -> int | None:
        all_named = layers.get(name, [])
        # The Results of a tensor may have its name.
        named = [i for i in all_named if graph.layers[i].type != "Result"] or all_named[:1]
        if len(named) < 2:
            return named[0] if named else ids.get(name)
        options = ", ".join(str(graph.layers[i].id) for i in named)
        raise IRError(
            f"{len(named)} layers have the name {name!r}",
            file=graph.file,
            hint=Hint.LAYER_ID_IS(options),
        )

    found: dict[str, Source] = {}
    for name in names:
        if name in tensors:
            found[name] = tensors[name]
            continue
        if name in outputs and len(layers.get(name, ())) > 1:
            found[name] = outputs[name]
            continue
        at = layer_at(name)
        if at is None:
            base, dot, number = name.rpartition(".")
            at = layer_at(base)
            if not dot or at is None or not number.isdecimal():
                ports = [(layer.name, port) for layer in graph.layers for port in layer.outputs]
                known = [n for label, port in ports for n in (label, *port.names)]
                raise missing(graph, "tensor or layer", name, known)
            if int(number) >= len(graph.layers[at].outputs):
                raise IRError(
                    f"no output {name!r}: the layer has {len(graph.layers[at].outputs)} outputs",
                    file=graph.file,
                    line=graph.layers[at].line,
                    layer=graph.layers[at].label,
                )
            found[name] = (at, int(number))
            continue
        found |= _outputs(graph, name, at)
    return found


def _outputs(graph: Graph, name: str, index: int) -> dict[str, Source]:
    layer = graph.layers[index]
    if layer.type == "Result":
        source = graph.topology.sources[index][0]
        assert source is not None, "a graph with loose inputs does not load"
        return {name: source}
    count = len(layer.outputs)
    if count == 0:
        raise IRError(
            "the layer has no outputs", file=graph.file, line=layer.line, layer=layer.label
        )
    if count == 1:
        return {name: (index, 0)}
    return {f"{name}.{i}": (index, i) for i in range(count)}


def missing(graph: Graph, what: str, name: str, names: Sequence[str]) -> IRError:
    """Return the error for an unknown name of a layer or tensor; the hint is the nearest name."""
    for place, inner in _inside(graph):
        if name in _names_of(inner):
            return IRError(
                f"it is inside {'/'.join(place)!r}; only layers and tensors of the network itself "
                "can be named here",
                file=graph.file,
                line=inner.line,
                layer=inner.label,
                actual=name,
                hint=Hint.LAYER_AROUND(place[0]),
            )
    hint = nearest(name, names)
    return IRError(f"there is no {what} {name!r}", file=graph.file, actual=name, hint=hint)


def _inside(graph: Graph, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Layer]]:
    """Iterate over the layers of all bodies, with the names of the layers and bodies around."""
    for layer in graph.layers:
        for body in layer.operation.bodies:
            around = (*place, layer.name, body.name)
            for inner in body.graph.layers:
                yield around, inner
            yield from _inside(body.graph, around)


def _names_of(layer: Layer) -> Iterator[str]:
    yield layer.name
    for output, port in enumerate(layer.outputs):
        yield from port.names
        yield f"{layer.name}.{output}"


def input_ports(
    graph: Graph, parameters: Sequence[int], infos: Sequence[Infos] | Mapping[int, Infos]
) -> dict[str, Port]:
    """Return the inferred output of each Parameter by its name."""
    named = []
    for index in parameters:
        layer = graph.layers[index]
        port = layer.outputs[0] if layer.outputs else Port(0, None)
        named.append((layer.name, port, infos[index][0]))
    return _name_ports(named)


def output_ports(graph: Graph, results: Sequence[int], infos: Sequence[Infos]) -> dict[str, Port]:
    """Return the inferred input of each Result by the name of the tensor."""
    named = []
    for index in results:
        source = graph.topology.sources[index][0]
        assert source is not None, "a graph with loose inputs does not load"
        producer = graph.layers[source[0]]
        port = producer.outputs[source[1]]
        name = producer.name
        if len(producer.outputs) > 1 and not port.names:
            name = f"{producer.name}.{source[1]}"
        named.append((name, port, infos[index][0]))
    return _name_ports(named)


def _name_ports(named: Sequence[tuple[str, Port, TensorInfo]]) -> dict[str, Port]:
    """Key ports by tensor name, else by layer name; keys are unique."""
    ports: dict[str, Port] = {}
    numbers: dict[str, int] = {}
    for layer_name, port, info in named:
        candidates = [*port.names, layer_name]
        key = next((c for c in candidates if c and c not in ports), None)
        if key is None:
            base = candidates[0] or "output"
            number = numbers.get(base, 1)
            while f"{base}.{number}" in ports:
                number += 1
            numbers[base] = number + 1
            key = f"{base}.{number}"
        shape = info.shape if info.shape is not None else port.shape
        ports[key] = Port(
            port.id, shape, info.element_type or port.element_type, port.names, port.line_offset
        )
    return ports


def names_of(outputs: object) -> Sequence[str]:
    """Return the requested names of tensors as a sequence; a string is a single name."""
    if isinstance(outputs, str):
        return (outputs,)
    if not isinstance(outputs, Iterable) or isinstance(outputs, bytes):
        raise InputError(f"outputs must be names of tensors, found {outputs!r}")
    names = tuple(outputs)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"outputs must be names of tensors, found {name!r}")
    return names
