"""A graph of a lint run with its shapes: layers by type, the infos of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from deconv_ir.formats.format import ParsedFile
from deconv_ir.ir.graph import Graph, Layer, Topology
from deconv_ir.ir.infer import Inference
from deconv_ir.ir.operation import Context, TensorInfo

if TYPE_CHECKING:
    from deconv_ir.linter.weights import RecordedWeights
    from deconv_ir.ops.constants.constant import Const


class InferredGraph:
    """One graph, read, connected and inferred.

    Attributes
    ----------
    parsed : ParsedFile
    inference_context : Context
        Context of the inference: semantics and weights.
    inference : Inference or None
        None if the file is not an IR.
    weights : RecordedWeights or None
        The .bin; None if it is missing or not needed.
    deep : bool
        Whether rules may read all weights.
    """

    deep: bool = False

    def __init__(
        self,
        parsed: ParsedFile,
        context: Context,
        inference: Inference | None,
        weights: RecordedWeights | None,
    ) -> None:
        self.parsed = parsed
        self.inference_context = context
        self.inference = inference
        self.weights = weights
        self._groups: dict[str, list[list[int]]] = {}

    @cached_property
    def graph(self) -> Graph:
        """The network."""
        assert self.parsed.graph is not None
        return self.parsed.graph

    @cached_property
    def topology(self) -> Topology:
        """The connections of the layers."""
        return self.graph.topology

    @cached_property
    def by_type(self) -> dict[str, list[int]]:
        """Type -> indices of the layers of that type."""
        found: dict[str, list[int]] = {}
        for index, layer in enumerate(self.graph.layers):
            found.setdefault(layer.type, []).append(index)
        return found

    def layers(self, *types: str) -> Iterator[tuple[int, Layer]]:
        """Iterate over the layers of some types whose attributes could be read."""
        for type_name in types:
            for index in self.by_type.get(type_name, ()):
                layer = self.graph.layers[index]
                if layer.operation.implemented:
                    yield index, layer

    def valid_layers(self, *types: str) -> Iterator[tuple[int, Layer]]:
        """Iterate over the layers of some types whose attributes and inputs are valid."""
        return (found for found in self.layers(*types) if found[0] not in self.unfit)

    def outputs(self, index: int) -> tuple[TensorInfo, ...]:
        """Return the infos of a layer's outputs; on a cycle, the declared ones."""
        assert self.inference is not None
        found = self.inference.outputs[index]
        if found:
            return found
        declared = self.graph.layers[index].outputs
        return tuple(TensorInfo(port.shape, port.element_type) for port in declared)

    def inputs(self, index: int) -> list[TensorInfo]:
        """Return the infos of a layer's inputs."""
        layer = self.graph.layers[index]
        return [
            self.outputs(source[0])[source[1]]
            if source is not None
            else TensorInfo(port.shape, port.element_type)
            for port, source in zip(layer.inputs, self.topology.sources[index], strict=True)
        ]

    def alike(self, *types: str) -> Iterator[list[int]]:
        """Iterate over the layers of some types, in groups that differ only in name and id.

        Layers of a group share operation, attributes, declared ports and the infos of the inputs.
        """
        for type_name in types:
            groups = self._groups.get(type_name)
            if groups is None:
                groups = self._groups[type_name] = self._group(type_name)
            yield from groups

    def _group(self, type_name: str) -> list[list[int]]:
        assert self.inference is not None
        layers, sources, outputs = self.graph.layers, self.topology.sources, self.inference.outputs
        groups: dict[tuple[object, ...], list[int]] = {}
        for index in self.by_type.get(type_name, ()):
            layer = layers[index]
            key = (
                layer.version,
                id(layer.operation),
                id(layer.attributes),
                id(layer.inputs),
                id(layer.outputs),
                *[
                    source and outputs[source[0]] and id(outputs[source[0]][source[1]])
                    for source in sources[index]
                ],
            )
            groups.setdefault(key, []).append(index)
        return list(groups.values())

    @cached_property
    def use_counts(self) -> list[int]:
        """Number of edges that begin at each layer."""
        counts = [0] * len(self.graph.layers)
        for sources in self.topology.sources:
            for source in sources:
                if source is not None:
                    counts[source[0]] += 1
        return counts

    @cached_property
    def unfit(self) -> frozenset[int]:
        """Indices of the layers whose inputs do not fit, or are not known: those on a cycle."""
        assert self.inference is not None
        wrong = {error.finding.part.layer for error in self.inference.errors} - {None}
        cyclic = set(range(len(self.graph.layers))).difference(self.topology.order)
        return frozenset(index for index in (*wrong, *cyclic) if index is not None)

    def constants(self) -> Iterator[tuple[int, Layer, Const]]:
        """Iterate over the constants."""
        from deconv_ir.ops.constants.constant import Const

        for index, layer in self.layers("Const"):
            if isinstance(layer.operation, Const):
                yield index, layer, layer.operation
