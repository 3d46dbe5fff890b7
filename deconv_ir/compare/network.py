"""One of the two compared models, with the facts that matching needs."""

from __future__ import annotations

import functools
import os
from collections.abc import Hashable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from deconv_ir.arrays.model_inputs import ModelInputs
from deconv_ir.formats.openvino_xml.weights import Weights, WeightsInMemory
from deconv_ir.formats.reading import read_model, with_weights
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.graph import Graph, Layer, Source, constant_layers
from deconv_ir.ir.operation import Context
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.tensor_names import input_ports, tensor_name
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.windows import without_void

if TYPE_CHECKING:
    from deconv_ir.model import Model

_CHUNK = 1 << 20


Comparable: TypeAlias = "Model | str | os.PathLike[str]"


class StoredConstant(NamedTuple):
    """A constant from the viewpoint of the layers that use it."""

    layer: int
    """Index of the layer whose output they use: the Const, or a Convert of it."""
    const: int
    """Index of the Const."""
    stored: ElementType
    """Type of the elements in the weights file."""
    operation: Const


class Network:
    """A model with the properties and connections of its layers, by index.

    A constant that is stored in another type, as compression to f16 writes it (a Const
    and a Convert), is one constant: its Const is in `absorbed`.
    """

    def __init__(self, graph: Graph, context: Context) -> None:
        self.graph = graph
        self.context = context
        layers = self.graph.layers
        self.sources: list[list[Source | None]] = [list(r) for r in self.graph.topology.sources]
        self.consumers: list[list[tuple[int, int]]] = [[] for _ in layers]
        for index, row in enumerate(self.sources):
            for port, source in enumerate(row):
                if source is not None:
                    self.consumers[source[0]].append((index, port))
        self.constant_layers = constant_layers(self.graph, range(len(layers)))
        self.constants: dict[int, StoredConstant] = {}
        self.absorbed: set[int] = set()
        for index, layer in enumerate(layers):
            operation = layer.operation
            if isinstance(operation, Const) and operation.element_type is not None:
                self.constants[index] = StoredConstant(
                    index, index, operation.element_type, operation
                )
        for index in list(self.constants):
            users = {user for user, _ in self.consumers[index]}
            if len(users) == 1 and layers[user := users.pop()].type == "Convert":
                self.absorbed.add(index)
                self.constants[user] = self.constants.pop(index)._replace(layer=user)
                self.sources[user] = []
        if not any(layer.type == "Parameter" for layer in layers):
            # Without inputs, the layers that compute would be constants, too.
            self.constant_layers = frozenset({*self.constants, *self.absorbed})

    @functools.cached_property
    def inputs(self) -> ModelInputs:
        """The inputs; later layers need not fit."""
        layers = self.graph.layers
        own = [i for i, layer in enumerate(layers) if layer.type == "Parameter"]
        infos = {i: layers[i].operation.infer([], self.context) for i in own}
        return ModelInputs(self.graph, own, input_ports(self.graph, own, infos))

    @property
    def weights_file(self) -> str | None:
        """Path of the weights file; None without one."""
        weights = self.context.weights
        if isinstance(weights, Weights) and not isinstance(weights, WeightsInMemory):
            return weights.path
        return None

    @property
    def nodes(self) -> Iterator[int]:
        """Indices of the layers that take part, in topological order."""
        return (i for i in self.graph.topology.order if i not in self.absorbed)

    def layer(self, index: int) -> Layer:
        """Return a layer by its index."""
        return self.graph.layers[index]

    def type_name(self, index: int) -> str:
        """Return the type of a layer; ``Const`` for a constant in any form."""
        return "Const" if index in self.constants else self.graph.layers[index].type

    def signature(self, index: int) -> Hashable:
        """Return all properties of a layer except its name, its id and its place in the graph."""
        constant = self.constants.get(index)
        if constant is not None:
            return "Const", constant.operation.shape, self.digest(constant.const)
        layer = self.graph.layers[index]
        if bodies := self.bodies(index):
            content = tuple(body.signature(i) for body in bodies for i in body.nodes)
            return layer.type, layer.version, content
        if not layer.operation.fields:
            return layer.type, layer.version, layer.attributes
        return layer.type, layer.version, without_void(layer.operation)

    def bodies(self, index: int) -> tuple[Network, ...]:
        """Return the graphs that a layer runs."""
        if index not in self._bodies:
            found = self.graph.layers[index].operation.bodies
            self._bodies[index] = tuple(Network(body.graph, self.context) for body in found)
        return self._bodies[index]

    @functools.cached_property
    def _bodies(self) -> dict[int, tuple[Network, ...]]:
        return {}

    @functools.cached_property
    def _digests(self) -> dict[tuple[int, int], bytes]:
        return {}

    def digest(self, const: int) -> bytes:
        """Return a digest of the bytes of a Const layer."""
        operation = self.graph.layers[const].operation
        assert isinstance(operation, Const)
        assert operation.element_type is not None
        size = operation.element_type.size_of(operation.check())
        key = (operation.offset, size)
        if key not in self._digests:
            found = blake2b(operation.element_type.name.encode(), digest_size=16)
            if self.context.weights is not None:
                for start in range(0, size, _CHUNK):
                    count = min(_CHUNK, size - start)
                    found.update(self.context.weights.read(operation.offset + start, count))
            self._digests[key] = found.digest()
        return self._digests[key]

    def tensor_name(self, source: Source) -> str:
        """Return the name of a tensor."""
        return tensor_name(self.graph, source)

    def value(self, constant: StoredConstant) -> Array:
        """Read a constant in its stored type."""
        return constant.operation.execute([], self.context)[0]


def open_network(given: Comparable, semantics: Semantics | str = Semantics.SPEC) -> Network:
    """Open a model; shapes that do not fit are accepted."""
    from deconv_ir.model import Model

    if isinstance(given, Model):
        return Network(given.graph, given.context)
    graph, errors = read_model(given, DEFAULT_LIMITS)
    for error in (*errors, *(graph.topology.errors if graph else ())):
        raise error
    assert graph is not None, "no graph without a problem"
    graph, weights = with_weights(graph, None, Semantics.of(semantics))
    return Network(graph, Context(Semantics.of(semantics), weights))


def open_stored(given: Comparable) -> Network:
    """Open a model as files hold it, to write parts of it."""
    network = open_network(given)
    stored = network.graph.stored
    return network if stored is None else Network(stored, network.context)
