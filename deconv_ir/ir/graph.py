"""The graph of a network: frozen ports, layers and edges.

This module knows neither file formats nor particular operations: a layer refers to its operation
through the `Operation` interface.
"""

import contextlib
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

from deconv_ir.errors import DeconvError, IRError, one_line
from deconv_ir.findings import GraphLocation
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.operation import Operation
from deconv_ir.ir.shapes import Shape

_Operation = TypeVar("_Operation", bound=Operation)
_TYPES_SHOWN = 8


class Info(NamedTuple):
    """An element of the file that the graph keeps and does not interpret, such as `rt_info`.

    Attributes
    ----------
    tag : str
        Name of the element.
    attributes : tuple of (str, str)
        In the order of the file.
    children : tuple of Info
        Child elements.
    text : str
        Text of the element.

    Examples
    --------
    >>> import deconv_ir
    >>> with open("samples/documents/convolution_backprop_data_1.xml", "rb") as file:
    ...     xml = file.read().replace(b"</layer>", b'<rt_info><note value="1"/></rt_info></layer>')
    >>> (extra,) = deconv_ir.load(xml).graph.find("upsampling_node").extras
    >>> isinstance(extra, deconv_ir.Info), extra.tag, extra.children[0].attributes
    (True, 'rt_info', (('value', '1'),))
    """

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: "tuple[Info, ...]" = ()
    text: str = ""


class Port(NamedTuple):
    """One input or output of a layer, as declared.

    Attributes
    ----------
    id : int
        Unique among the inputs, or among the outputs, of its layer.
    shape : tuple of int or Interval, or None
        Declared dims; None if the port has no dims.  The IR writes a scalar and a dynamic rank
        alike: without dims.
    element_type : ElementType or None
        Declared `precision`; None if it is missing.
    names : tuple of str
        Tensor names (outputs only).
    line_offset : int
        Lines below the start of its layer, so that layers with equal ports can
        share them; see `Layer.line_of`.
    extras : tuple of Info
        Child elements that are not interpreted.

    Examples
    --------
    >>> import deconv_ir
    >>> port = deconv_ir.load("samples/block/block.xml").inputs["x"]
    >>> isinstance(port, deconv_ir.Port), port.shape, port.element_type
    (True, (1, 8, 16, 16), f32)
    """

    id: int
    shape: Shape
    element_type: ElementType | None = None
    names: tuple[str, ...] = ()
    line_offset: int = 0
    extras: tuple[Info, ...] = ()


class Layer(NamedTuple):
    """One layer: its identity, its typed operation, its ports.

    Attributes
    ----------
    id : int
        Unique in the graph.
    name, type : str
        As in the file.
    version : str or None
        Opset, such as ``opset1``.
    operation : deconv_ir.operations.Operation
        The attributes as typed fields; `Graph.operation` returns it by its class.
    inputs, outputs : tuple of Port
        In the order of the file.
    attributes : tuple of (str, str)
        The attributes of the operation as written, in the order of the file.
    line : int or None
        Line of the file, from 1.
    extra_attributes : tuple of (str, str)
        Attributes of the ``<layer>`` other than id, name, type and version.
    extras : tuple of Info
        Uninterpreted child elements, such as `rt_info`.

    Examples
    --------
    >>> import deconv_ir
    >>> layer = deconv_ir.load("samples/block/block.xml").graph.find("up")
    >>> isinstance(layer, deconv_ir.Layer), layer.label, layer.line
    (True, "'up' (ConvolutionBackpropData, id 3)", 48)
    >>> dict(layer.attributes)["strides"]
    '2, 2'
    """

    id: int
    name: str
    operation: Operation
    type: str
    version: str | None = None
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    line: int | None = None
    extra_attributes: tuple[tuple[str, str], ...] = ()
    extras: tuple[Info, ...] = ()

    @property
    def label(self) -> str:
        """The name that messages use."""
        return f"{self.name!r} ({self.type}, id {self.id})"

    def line_of(self, port: Port) -> int | None:
        """Return the line of a port in the file, from 1; None: unknown."""
        return None if self.line is None else self.line + port.line_offset


class Edge(NamedTuple):
    """Joins an output port of one layer to an input port of another.

    Attributes
    ----------
    from_layer, from_port : int
        Ids of the producer and of its output port.
    to_layer, to_port : int
        Ids of the consumer and of its input port.
    line : int or None
        Line of the file, from 1.

    Examples
    --------
    >>> import deconv_ir
    >>> edge = deconv_ir.load("samples/block/block.xml").graph.edges[0]
    >>> isinstance(edge, deconv_ir.Edge), edge.from_layer, edge.to_layer
    (True, 0, 3)
    """

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    line: int | None = None


Source = tuple[int, int]
"""Index of a layer in `Graph.layers`, index of one of its outputs."""


class Topology(NamedTuple):
    """The connections of the layers of a graph, by index.

    Attributes
    ----------
    sources : tuple
        For each layer, for each of its inputs: (index of the layer, index of its
        output) that it comes from, or None.
    order : tuple of int
        The layers so that each comes after its sources; layers on a cycle are
        left out.
    errors : tuple of IRError
        Edges and ports that do not fit together; empty for a graph that loads.

    Examples
    --------
    >>> import deconv_ir
    >>> topology = deconv_ir.load("samples/block/block.xml").graph.topology
    >>> isinstance(topology, deconv_ir.Topology), topology.order
    (True, (0, 1, 2, 3, 4, 5, 6, 7, 8))
    >>> topology.sources[3]
    ((0, 0), (2, 0))
    """

    sources: tuple[tuple[Source | None, ...], ...]
    order: tuple[int, ...]
    errors: tuple[IRError, ...] = ()


class Graph:
    """A network as declared in its file: immutable, and equal to one with equal attributes.

    Attributes
    ----------
    name : str
        Name of the network.
    layers : tuple of Layer
        In the order of the file.
    edges : tuple of Edge
        In the order of the file.
    ir_version : int or None
        `net version`; None for a bare layer.
    extras : tuple of Info
        Child elements of `net` that are not interpreted, `rt_info` among them.
    file : str or None
        The file of the graph; messages name it.
    bare : bool
        The graph was read from a single `layer`; its Parameters and Results are made from that
        layer's ports.
    changed : bool
        The graph is no longer that of its file, as after `Model.reshape`.
    stored : Graph or None
        The network as files hold it, if `semantics` changed element types here; layers of it have
        the same indices.  None: the graph itself.
    format : str or None
        Name of the file format that the graph was read from; None: an IR, or made in memory.

    Examples
    --------
    >>> import deconv_ir
    >>> graph = deconv_ir.load("samples/block/block.xml").graph
    >>> isinstance(graph, deconv_ir.Graph), len(graph.layers), len(graph.edges)
    (True, 9, 8)
    >>> [layer.name for layer in graph.of_type("Const")]
    ['weights_compressed', 'bias_compressed']
    """

    name: str
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]
    ir_version: int | None
    extras: tuple[Info, ...]
    file: str | None
    bare: bool
    changed: bool
    stored: "Graph | None"
    format: str | None

    # A dataclass would compile these methods: 1.5 ms of the start of each command.
    def __init__(
        self,
        *,
        name: str,
        layers: tuple[Layer, ...],
        edges: tuple[Edge, ...],
        ir_version: int | None = None,
        extras: tuple[Info, ...] = (),
        file: str | None = None,
        bare: bool = False,
        changed: bool = False,
        stored: "Graph | None" = None,
        format: str | None = None,  # noqa: A002 - the name of the attribute
    ) -> None:
        vars(self).update(name=name, layers=layers, edges=edges, ir_version=ir_version)
        vars(self).update(extras=extras, file=file, bare=bare, changed=changed)
        vars(self).update(stored=stored, format=format)

    def _fields(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "topology"}

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Graph) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._fields().values()))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a graph is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a graph is immutable: cannot delete {name!r}")

    @functools.cached_property
    def topology(self) -> Topology:
        """The connections of the layers, by index."""
        return connect(self)

    def of_type(self, type_name: str) -> tuple[Layer, ...]:
        """Return the layers of one type, in the order of the file."""
        return tuple(layer for layer in self.layers if layer.type == type_name)

    def find(self, name: str) -> Layer | None:
        """Return the layer with this name or, failing that, with this id."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        return next((layer for layer in self.layers if str(layer.id) == name), None)

    def operation(self, name: str, cls: type[_Operation]) -> _Operation:
        """Return the operation of a layer as an instance of its class.

        Parameters
        ----------
        name : str
            Name or id of the layer.
        cls : type
            A class of `deconv_ir.operations`.

        Raises
        ------
        IRError
            There is no such layer, or its operation is of another class.

        Examples
        --------
        >>> import deconv_ir
        >>> from deconv_ir.operations import ConvolutionBackpropData
        >>> graph = deconv_ir.load("samples/block/block.xml").graph
        >>> graph.operation("up", ConvolutionBackpropData).strides
        (2, 2)
        """
        layer = self.find(name)
        if layer is None:
            raise IRError(f"there is no layer {name!r}", file=self.file, actual=name)
        if not isinstance(layer.operation, cls):
            raise IRError(
                f"not of type {cls.type or cls.__name__}",
                file=self.file,
                line=layer.line,
                layer=layer.label,
                expected=cls.type,
                actual=layer.type,
            )
        return layer.operation

    def replace(self, **changes: Any) -> "Graph":
        """Return a graph with other values in some fields."""
        return Graph(**(self._fields() | changes))

    def __getstate__(self) -> dict[str, Any]:
        # Without the topology, which is larger than the rest.
        return self._fields()

    def __deepcopy__(self, memo: object) -> "Graph":
        return self  # immutable

    def __repr__(self) -> str:
        types = Counter(layer.type for layer in self.layers).most_common()
        shown = ", ".join(f"{n} {one_line(type_name, 40)}" for type_name, n in types[:_TYPES_SHOWN])
        if len(types) > _TYPES_SHOWN:
            shown += f" and {len(types) - _TYPES_SHOWN} more types"
        name = one_line(repr(self.name), 80)
        return f"<Graph {name}: {len(self.layers)} layers ({shown}), {len(self.edges)} edges>"


def walk_graphs(graph: Graph) -> Iterator[Graph]:
    """Iterate over a graph and, recursively, the bodies of its layers."""
    yield graph
    for layer in graph.layers:
        for body in layer.operation.bodies:
            yield from walk_graphs(body.graph)


def connect(graph: Graph) -> Topology:
    """Resolve the edges of a graph, collecting problems."""
    errors: list[IRError] = []
    layers = graph.layers

    def error(
        rule: str, line: int | None, message: str, layer: Layer | None, location: GraphLocation
    ) -> None:
        label = None if layer is None else layer.label
        errors.append(
            IRError(message, file=graph.file, line=line, layer=label, rule=rule, location=location)
        )

    index: dict[int, int] = {}
    for i, layer in enumerate(layers):
        if index.setdefault(layer.id, i) != i:
            first = layers[index[layer.id]]
            message = f"id {layer.id} is already taken by layer {first.name!r} in line {first.line}"
            location = GraphLocation(layer=i, attribute="id", own=True)
            error("duplicate-layer-id", layer.line, message, layer, location)
    sources: list[list[Source | None]] = [[None] * len(layer.inputs) for layer in layers]
    numbered: dict[int, dict[int, int]] = {}
    for e, edge in enumerate(graph.edges):
        start, end = index.get(edge.from_layer), index.get(edge.to_layer)
        if start is None or end is None:
            missing, end_name = (
                (edge.from_layer, "from-layer") if start is None else (edge.to_layer, "to-layer")
            )
            message = f"edge names layer {missing}, which is not in the file"
            location = GraphLocation(edge=e, attribute=end_name)
            error("edge-to-missing-layer", edge.line, message, None, location)
            continue
        outputs, inputs = layers[start].outputs, layers[end].inputs
        output = _numbered(outputs, numbered).get(edge.from_port)
        input_ = _numbered(inputs, numbered).get(edge.to_port)
        if output is None or input_ is None:
            side, layer, ports, port_id, end_name = (
                ("output", layers[start], outputs, edge.from_port, "from-port")
                if output is None
                else ("input", layers[end], inputs, edge.to_port, "to-port")
            )
            have = ", ".join(str(p.id) for p in ports[:16]) or "none"
            message = f"edge names {side} port {port_id}, the layer has {have}"
            location = GraphLocation(edge=e, attribute=end_name)
            error("edge-to-missing-port", edge.line, message, layer, location)
            continue
        into = sources[end]
        if into[input_] is not None:
            message = f"input port {edge.to_port} already has an edge"
            location = GraphLocation(edge=e, attribute="to-port")
            error("two-edges-into-port", edge.line, message, layers[end], location)
            continue
        into[input_] = (start, output)
    for i, ends_in in enumerate(sources):
        if None not in ends_in:
            continue
        layer = layers[i]
        for k, source in enumerate(ends_in):
            if source is None:
                port = layer.inputs[k]
                message = f"input port {port.id} has no edge"
                location = GraphLocation(layer=i, side="input", port=k)
                error("input-without-edge", layer.line_of(port), message, layer, location)
    order = _sort(sources)
    if len(order) < len(layers):
        at, message = _find_cycle(graph, sources, order)
        error("cycle", layers[at].line, message, layers[at], GraphLocation(layer=at))
    return Topology(tuple(map(tuple, sources)), order, tuple(errors))


def _numbered(ports: tuple[Port, ...], memo: dict[int, dict[int, int]]) -> dict[int, int]:
    """Return the index of each port by its id; the first one if several have the same id.

    Layers share ports, so results are memoized by the identity of the tuple.
    """
    found = memo.get(id(ports))
    if found is None:
        found = memo[id(ports)] = {}
        for i, port in enumerate(ports):
            found.setdefault(port.id, i)
    return found


def _sort(sources: Sequence[Sequence[Source | None]]) -> tuple[int, ...]:
    """Sort topologically, keeping the order of the file where possible."""
    if all(s is None or s[0] < i for i, row in enumerate(sources) for s in row):
        return tuple(range(len(sources)))
    import heapq

    missing = [len({s[0] for s in row if s is not None}) for row in sources]
    consumers: list[set[int]] = [set() for _ in sources]
    for i, row in enumerate(sources):
        for s in row:
            if s is not None:
                consumers[s[0]].add(i)
    ready = [i for i, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for consumer in consumers[i]:
            missing[consumer] -= 1
            if missing[consumer] == 0:
                heapq.heappush(ready, consumer)
    return tuple(order)


def _find_cycle(
    graph: Graph, sources: Sequence[Sequence[Source | None]], order: Sequence[int]
) -> tuple[int, str]:
    """Return a layer of a cycle and a message, by walking backwards from an unsorted layer."""
    done = set(order)
    at = next(i for i in range(len(sources)) if i not in done)
    walk: dict[int, int] = {}
    while at not in walk:
        walk[at] = len(walk)
        at = next(s[0] for s in sources[at] if s is not None and s[0] not in done)
    path = [i for i, step in walk.items() if step >= walk[at]]
    names = [graph.layers[i].name for i in reversed(path)]
    shown = names if len(names) <= 8 else [*names[:4], "...", *names[-3:]]
    return at, f"layers form a cycle: {' -> '.join([*shown, shown[0]])}"


def rewire(
    graph: Graph, layers: Iterable[Layer], sources: Iterable[tuple[Source | None, ...]]
) -> Graph:
    """Return a graph with other layers, connected by `sources`; the edges of the file remain."""
    changed = graph.replace(layers=tuple(layers))
    changed.__dict__["topology"] = graph.topology._replace(sources=tuple(sources))
    return changed


@contextlib.contextmanager
def locating(graph: Graph, layer: Layer) -> Iterator[None]:
    """Add the file and the layer to an error of the block, unless it already has them."""
    try:
        yield
    except DeconvError as error:
        error.locate(file=graph.file, line=layer.line, layer=layer.label)
        raise


def ancestors(topology: Topology, ends: Iterable[int]) -> set[int]:
    """Return some layers and all layers that they depend on."""
    found: set[int] = set()
    stack = list(ends)
    while stack:
        index = stack.pop()
        if index not in found:
            found.add(index)
            stack += [s[0] for s in topology.sources[index] if s is not None]
    return found


def needed_layers(graph: Graph, wanted: Iterable[Source]) -> tuple[int, ...]:
    """Return the layers that the wanted tensors depend on, in topological order."""
    needed = ancestors(graph.topology, (source[0] for source in wanted))
    return tuple(i for i in graph.topology.order if i in needed)


def constant_layers(graph: Graph, order: Sequence[int]) -> frozenset[int]:
    """Return the layers in `order` that depend on no Parameter."""
    sources = graph.topology.sources
    constant: set[int] = set()
    for index in order:
        type_name = graph.layers[index].type
        if type_name == "Const" or (
            type_name not in ("Parameter", "Result")
            and graph.layers[index].operation.is_repeatable
            and sources[index]
            and all(s is not None and s[0] in constant for s in sources[index])
        ):
            constant.add(index)
    return frozenset(constant)
