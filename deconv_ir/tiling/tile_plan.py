"""The plan of a tile: the layers that a box of an output needs, each with its own box."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from deconv_ir.execute.plan import Plan
from deconv_ir.execute.planner import PlanBodies, make_plan
from deconv_ir.execute.prepare import PreparedModel
from deconv_ir.execute.scratchpad import Grant
from deconv_ir.ir.boxes import Box, box_shape, inside
from deconv_ir.ir.graph import Layer, Source, rewire
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.regions import Regions, Walk
from deconv_ir.ops.tile_rules import Crop

_Step = tuple[Layer, tuple[Source, ...]]


class TileGraph(NamedTuple):
    """The layers of a tile, which replace those of the network, followed by crops.

    Attributes
    ----------
    layers : dict
        Layer -> the layer with the operation of the tile, and its inputs.
    steps : tuple of int
        The layers that run, in order.
    infos : dict
        Layer -> the infos of its outputs that differ from those of the network.
    wanted : tuple of Source
        The requested boxes.
    inputs : dict
        Parameter -> the box of it that the tile reads.
    """

    layers: dict[int, _Step]
    steps: tuple[int, ...]
    infos: dict[int, tuple[TensorInfo, ...]]
    wanted: tuple[Source, ...]
    inputs: dict[int, Box]

    @property
    def key(self) -> Hashable:
        """Everything that a plan depends on; tiles of equal geometry have the same key."""
        return (
            tuple((index, step[0].operation, step[1]) for index, step in self.layers.items()),
            tuple((index, *(info.shape for info in infos)) for index, infos in self.infos.items()),
            self.wanted,
        )


def tile_graph(
    prepared: PreparedModel, walk: Walk, regions: Regions, wanted: Mapping[Source, Box]
) -> TileGraph:
    """Make the graph of a tile of the regions that it needs."""
    making = _Making(prepared, walk, regions)
    for index in walk.order:
        making.add(index)
    found = tuple(making.boxed(source, box) for source, box in wanted.items())
    inputs = {i: regions.boxes[i, 0] for i in making.steps if making.is_input(i)}
    return TileGraph(making.layers, tuple(making.steps), making.infos, found, inputs)


class _Making:
    def __init__(self, prepared: PreparedModel, walk: Walk, regions: Regions) -> None:
        self.graph, self.walk, self.regions = prepared.graph, walk, regions
        self.kernels = prepared.kernels
        self.layers: dict[int, _Step] = {}
        self.steps: list[int] = []
        self.infos: dict[int, tuple[TensorInfo, ...]] = {}
        self._crops: dict[tuple[Source, Box], Source] = {}

    def is_input(self, index: int) -> bool:
        return index < len(self.graph.layers) and self.graph.layers[index].type == "Parameter"

    def add(self, index: int) -> None:
        """Add a layer, if the tile needs it, after the crops of its inputs."""
        made = self.walk.made(index)
        if not any(source in self.regions.boxes for source in made):
            return
        tile = self.regions.tiles.get(index)
        layer = self.graph.layers[index]
        if tile is not None:
            sources = [s for s in self.graph.topology.sources[index] if s is not None]
            row = [
                source if self._is_absorbed(index, source) else self.boxed(source, box)
                for source, box in zip(sources, tile.inputs, strict=True)
                if box is not None
            ]
            self.layers[index] = (layer._replace(operation=tile.operation), tuple(row))
        self.steps.append(index)
        for at in {index, *(source[0] for source in made)}:
            self.infos[at] = tuple(
                self._info((at, output), made) for output in range(len(self.walk.infos[at]))
            )

    def _is_absorbed(self, index: int, source: Source) -> bool:
        """Whether a constant is packed in the kernel of a layer, and so in that of its tile."""
        return index in self.kernels and source[0] in self.walk.ends

    def _info(self, source: Source, made: Sequence[Source]) -> TensorInfo:
        info = self.walk.info(source)
        # A tensor between two fused layers has the box of the second.
        box = self.regions.boxes.get(source, self.regions.boxes.get(made[0]))
        if box is None:
            return info
        shape = box_shape(box)
        return info if shape == info.shape else TensorInfo(shape, info.element_type)

    def boxed(self, source: Source, box: Box) -> Source:
        """Return the tensor with a box of another one, cropped if necessary."""
        have = self.regions.boxes[source]
        if have == box:
            return source
        found = self._crops.get((source, box))
        if found is None:
            index = len(self.graph.layers) + len(self._crops)
            producer = self.graph.layers[source[0]]
            spans = tuple((s.start, s.stop) for s in inside(box, have))
            layer = Layer(-1 - index, f"{producer.name}/box", Crop(box=spans), "Crop")
            self.layers[index] = (layer, (source,))
            self.steps.append(index)
            self.infos[index] = (TensorInfo(box_shape(box), self.walk.info(source).element_type),)
            found = self._crops[source, box] = (index, 0)
        return found


def plan_tile(
    prepared: PreparedModel,
    tile: TileGraph,
    walk: Walk,
    grants: Sequence[Grant],
    plan_bodies: PlanBodies,
) -> Plan:
    """Plan the run of a tile; algorithms and packed weights are those of the network."""
    graph = prepared.graph
    count = max([len(graph.layers) - 1, *tile.layers]) + 1
    layers = list(graph.layers)
    sources = list(graph.topology.sources)
    infos = [*walk.infos]
    kernels = dict(prepared.kernels)
    for index in range(len(layers), count):
        layers.append(tile.layers[index][0])
        sources.append(tile.layers[index][1])
        infos.append(())
    for index, (layer, row) in tile.layers.items():
        layers[index], sources[index] = layer, row
        if index in kernels:
            kernels[index] = kernels[index].tiled(layer.operation)
    for index, known in tile.infos.items():
        infos[index] = known
    for index in tile.inputs:  # of the network, or a precomputed statistic
        sources[index] = ()
    part = prepared._replace(
        graph=rewire(graph, layers, sources), steps=tile.steps, kernels=kernels
    )
    return make_plan(part, tile.wanted, infos, walk.context, plan_bodies=plan_bodies, grants=grants)
