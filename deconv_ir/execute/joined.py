"""Layers that are computed as one step, represented by the last one."""

from collections.abc import Iterable
from typing import NamedTuple

from deconv_ir.execute.prepare import PreparedModel
from deconv_ir.ir.boxes import Box, Boxes, LayerTile, hull
from deconv_ir.ir.graph import Layer, Source, rewire
from deconv_ir.ir.operation import Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import field


class Member(NamedTuple):
    """A layer of a step."""

    name: str
    type: str
    """Name and type of the layer."""
    operation: Operation
    operands: tuple[int, ...]
    """Inputs of the step, counted from 0, then its earlier members."""


class Joined(Operation):
    """Layers that are computed as one; the last one's output is its output."""

    checks_values = False

    members: tuple[Member, ...] = field()

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Infer each layer in turn."""
        return (self.infer_all(inputs, context)[-1],)

    def infer_all(self, inputs: Infos, context: Context) -> list[TensorInfo]:
        """Return the inputs, and the output of each layer."""
        infos = list(inputs)
        for member in self.members:
            infos += member.operation.infer([infos[i] for i in member.operands], context)
        return infos

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        """Find the boxes of the inputs by the layers, last to first."""
        infos = self.infer_all(inputs, context)
        needed: list[list[Box]] = [[] for _ in infos]
        needed[-1] = [box for box in boxes if box is not None]
        blocked: tuple[int, ...] | None = None
        for at, member in reversed(list(enumerate(self.members, len(inputs)))):
            given = [infos[i] for i in member.operands]
            tile = member.operation.tile([hull(needed[at])], given, [infos[at]], context)
            blocked = tile.blocked if blocked is None else blocked
            for i, box in zip(member.operands, tile.inputs, strict=True):
                if box is not None:
                    needed[i].append(box)
        return LayerTile(tuple(map(hull, needed[: len(inputs)])), self, blocked or ())


class LayerGroup(NamedTuple):
    """Layers that are computed as one, in order; the last one makes the output."""

    layers: tuple[int, ...]
    inputs: tuple[Source, ...]
    operation: Joined


def with_groups(prepared: PreparedModel, groups: Iterable[LayerGroup]) -> PreparedModel:
    """Replace each group by its last layer."""
    graph = prepared.graph
    layers, sources = list(graph.layers), list(graph.topology.sources)
    reasons = dict(prepared.reasons)
    inner: set[int] = set()
    for group in groups:
        root = group.layers[-1]
        type_names = "+".join(member.type for member in group.operation.members)
        layers[root] = layers[root]._replace(operation=group.operation, type=type_names)
        sources[root] = group.inputs
        inner.update(group.layers[:-1])
        for index in group.layers[:-1]:
            if index in reasons:
                reasons.setdefault(root, reasons[index])
    steps = tuple(index for index in prepared.steps if index not in inner)
    joined = rewire(graph, layers, sources)
    return prepared._replace(graph=joined, steps=steps, reasons=reasons)


def users_of(prepared: PreparedModel) -> dict[Source, set[int]]:
    """Return the steps that use each tensor."""
    users: dict[Source, set[int]] = {}
    for index in prepared.steps:
        for source in prepared.graph.topology.sources[index]:
            if source is not None:
                users.setdefault(source, set()).add(index)
    return users


def joined_layers(layer: Layer) -> tuple[str, ...]:
    """Return the names of the other layers that a layer computes."""
    members: tuple[Member, ...] = getattr(layer.operation, "members", ())
    return tuple(member.name for member in members[:-1])
