"""Finds layers that a kernel can fuse: a constant addition, then an activation."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.operation import Operation
from deconv_ir.ir.record import NamedTuple
from deconv_ir.ops.convolution.fusing import is_activation
from deconv_ir.ops.elementwise.broadcasting import Broadcast


class Followers(NamedTuple):
    """The layers that can be fused into a layer, its only consumers."""

    layers: tuple[int, ...]
    """The layers, in order."""
    addend: Source | None
    """The constant of the addition."""
    activation: int | None
    """The last layer, if it is an activation."""
    parameters: tuple[Source, ...]
    """The constant inputs of the activation."""

    def shortened(self) -> Followers | None:
        """Return the followers without the activation; None if none are left."""
        if self.activation is None or self.addend is None:
            return None
        return Followers(self.layers[:1], self.addend, None, ())

    @property
    def constants(self) -> tuple[Source, ...]:
        """All constants."""
        return self.parameters if self.addend is None else (self.addend, *self.parameters)


def find_followers(
    graph: Graph, order: Sequence[int], constant: frozenset[int], wanted: Sequence[Source]
) -> dict[int, Followers]:
    """Find the layers whose only consumer is an addition or an activation.

    The layer's operation decides whether its kernel can fuse them.
    """
    sources = graph.topology.sources
    consumers: dict[Source, list[int]] = {}
    for index in order:
        for source in sources[index]:
            if source is not None:
                consumers.setdefault(source, []).append(index)
    kept = set(wanted)

    def follower(index: int) -> tuple[int, tuple[Source, ...]] | None:
        """Return the only consumer of a layer and its other inputs, if those are constant."""
        found = consumers.get((index, 0), [])
        if len(found) != 1 or (index, 0) in kept:
            return None
        others = tuple(s for s in sources[found[0]] if s is not None and s != (index, 0))
        if len(others) + 1 != len(sources[found[0]]) or any(s[0] not in constant for s in others):
            return None
        return found[0], others

    chains: dict[int, Followers] = {}
    for index in order:
        operation = graph.layers[index].operation
        if index in constant or type(operation).prepare_fused is Operation.prepare_fused:
            continue
        layers: list[int] = []
        addend = None
        following = follower(index)
        if following is not None and _adds(graph, following[0]) and len(following[1]) == 1:
            layers.append(following[0])
            (addend,) = following[1]
            following = follower(following[0])
        activation: int | None = None
        parameters: tuple[Source, ...] = ()
        if following is not None and _activates(graph, layers[-1] if layers else index, following):
            activation, parameters = following
            layers.append(activation)
        if layers:
            chains[index] = Followers(tuple(layers), addend, activation, parameters)
    return chains


def _adds(graph: Graph, index: int) -> bool:
    layer = graph.layers[index]
    broadcast = getattr(layer.operation, "auto_broadcast", None)
    return layer.type == "Add" and broadcast is Broadcast.NUMPY


def _activates(graph: Graph, index: int, following: tuple[int, tuple[Source, ...]]) -> bool:
    """Whether a layer is an activation of another, which is its first input."""
    at, _ = following
    first = graph.topology.sources[at][0]
    return is_activation(graph.layers[at].operation) and first == (index, 0)
