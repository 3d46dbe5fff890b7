"""Variables of a graph, which ReadValue reads and Assign writes, kept between runs."""

from __future__ import annotations

from collections.abc import Mapping

from deconv_ir.arrays.fitting import fit
from deconv_ir.errors import IRError, UnsupportedError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.graph import Graph, Layer, Source, walk_graphs
from deconv_ir.ops.constants.parameter import Parameter


class Variables:
    """The variables of a graph.

    A graph reads its variables when it begins, and writes them when it ends; bodies have separate
    variables, which each iteration reads and writes.  A variable that is assigned twice is an
    `IRError`; a variable of both a graph and its body is an `UnsupportedError`.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers: dict[str, list[int]] = {}
        self.assigned: dict[str, Source] = {}
        self.inner: list[Source] = []
        for index, layer in enumerate(graph.layers):
            name = layer.operation.assigned_variable
            if layer.operation.read_variable is not None:
                self.readers.setdefault(layer.operation.read_variable, []).append(index)
            elif name is not None:
                (source,) = graph.topology.sources[index]
                assert source is not None, "a graph with loose inputs does not load"
                if name in self.assigned:
                    raise _located(IRError(f"variable {name!r} is assigned twice"), graph, layer)
                self.assigned[name] = source
        own = self.readers.keys() | self.assigned.keys()
        for index, layer in enumerate(graph.layers):
            parts = (part for body in layer.operation.bodies for part in walk_graphs(body.graph))
            within = [(part, x) for part in parts for x in part.layers if _variable(x) is not None]
            if within:
                self.inner.append((index, 0))
            for part, x in within:
                if _variable(x) in own:
                    message = f"variable {_variable(x)!r} is also used outside of this body"
                    raise _located(UnsupportedError(message), part, x)

    def known(self, values: Mapping[str, Array]) -> frozenset[str]:
        """Return the variables that are read and have values."""
        return frozenset(self.readers.keys() & values.keys())

    def with_parameters(self, known: frozenset[str]) -> Graph:
        """Return the graph with Parameters in place of the layers that read these variables."""
        if not known:
            return self.graph
        layers = list(self.graph.layers)
        for index in (index for name in known for index in self.readers[name]):
            stated = layers[index].operation.variable_info.shape
            parameter = Parameter(shape=stated, element_type=self._type(index))
            layers[index] = layers[index]._replace(type="Parameter", operation=parameter, inputs=())
        ids = {layers[index].id for name in known for index in self.readers[name]}
        edges = tuple(edge for edge in self.graph.edges if edge.to_layer not in ids)
        return self.graph.replace(layers=tuple(layers), edges=edges)

    def read(self, values: Mapping[str, Array]) -> dict[int, Array]:
        """Return the values that are read, by the indices of the reading layers."""
        arrays = {}
        for name in sorted(self.known(values)):
            for index in self.readers[name]:
                stated = self.graph.layers[index].operation.variable_info.shape
                arrays[index] = fit(values[name], name, stated, self._type(index), cast=False)
        return arrays

    def _type(self, index: int) -> ElementType | None:
        layer = self.graph.layers[index]
        return layer.operation.variable_info.element_type or layer.outputs[0].element_type


def _variable(layer: Layer) -> str | None:
    operation = layer.operation
    name = operation.read_variable
    return operation.assigned_variable if name is None else name


def _located(error: IRError | UnsupportedError, graph: Graph, layer: Layer) -> Exception:
    return error.locate(file=graph.file, line=layer.line, layer=layer.label)
