"""A backward walk over a graph: the box of each tensor that a box of an output depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deconv_ir.ir.boxes import Box, Boxes, LayerTile, hull, in_steps, whole_box
from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.shapes import static


class Walk(NamedTuple):
    """The graph that a walk visits, and its settings."""

    graph: Graph
    order: tuple[int, ...]
    """Layers in topological order, those fused into another left out."""
    infos: Sequence[Infos]
    """For each layer, the TensorInfo of each of its outputs; all shapes are static."""
    context: Context
    ends: frozenset[int] = frozenset()
    """Layers whose outputs are available: constants, and others that are given."""
    fused: Mapping[int, tuple[int, ...]] = {}
    """Layer -> the following layers that are fused with it."""
    steps: Mapping[int, tuple[tuple[int, int], ...]] = {}
    """Layer -> step and margin of each axis, see `boxes.in_steps`, of boxes whose bits are those of
    the whole.
    """

    def info(self, source: Source) -> TensorInfo:
        """Return the inferred info of a tensor."""
        return self.infos[source[0]][source[1]]

    def whole(self, source: Source) -> Box | None:
        """Return the whole box of a tensor that is available without computing; None for others."""
        info = self.info(source)
        if source[0] not in self.ends and not info.is_known:
            return None
        return whole_box(static(info.shape))

    def computed(self, index: int, source: Source, demands: Sequence[Box]) -> Box:
        """Return the box of a layer's output that is computed for the needed boxes."""
        box = hull(demands)
        if index in self.steps:
            return in_steps(box, static(self.info(source).shape), self.steps[index])
        return box

    def with_ends(
        self, index: int, tile: LayerTile, box: Box | None, data: TensorInfo
    ) -> LayerTile:
        """Return a tile at the end of the output, with the data that its last whole step reads."""
        needed = tile.inputs[0]
        if index not in self.steps or needed is None or box is None:
            return tile
        ends = static(self.info(self.made(index)[0]).shape)
        seen = tuple(
            (start, min(stop + step, extent) if step > 1 and last == end else stop)
            for (start, stop), extent, (step, _), (_, last), end in zip(
                needed, static(data.shape), self.steps[index], box, ends, strict=True
            )
        )
        return tile._replace(inputs=(seen, *tile.inputs[1:]))

    def made(self, index: int) -> tuple[Source, ...]:
        """Return the tensors that a layer and the layers fused into it compute."""
        fused = self.fused.get(index)
        if fused:
            return ((fused[-1], 0),)
        return tuple((index, output) for output in range(len(self.infos[index])))


class Regions(NamedTuple):
    """The regions that boxes of some tensors need."""

    boxes: dict[Source, Box]
    """Tensor -> its box that is computed, which contains the needed one."""
    tiles: dict[int, LayerTile]
    """Layer -> the computation of the boxes of its outputs."""
    blocked: dict[int, Boxes]
    """Layer that must compute whole axes -> the needed box of each output."""


class Blocker(NamedTuple):
    """A layer that prevents tiling of an axis of the output, and the axes that it needs whole.

    Attributes
    ----------
    layer : int
        Its index in the graph.
    axes : tuple of int
        Axes of its input that it needs whole.

    Examples
    --------
    >>> import deconv_ir
    >>> deconv_ir.Blocker(layer=3, axes=(2, 3)).axes
    (2, 3)
    """

    layer: int
    axes: tuple[int, ...]


def required_regions(walk: Walk, wanted: Mapping[Source, Box], *, local: bool = False) -> Regions:
    """Find the box of each tensor that the wanted boxes of some tensors need.

    With `local`, elements that are needed only because a layer reduces a whole axis are left out.
    """
    demands: dict[Source, list[Box]] = {source: [box] for source, box in wanted.items()}
    found = Regions({}, {}, {})
    for index in reversed(walk.order):
        made = walk.made(index)
        needed: Boxes = [
            walk.computed(index, s, demands[s]) if s in demands else None for s in made
        ]
        sources = [s for s in walk.graph.topology.sources[index] if s is not None]
        made_here = sources and index not in walk.ends
        if made_here and any(
            b is not None and walk.whole(s) is None for s, b in zip(made, needed, strict=True)
        ):
            tile, needed = _layer_tile(walk, index, sources, needed, found.blocked)
            found.tiles[index] = tile
            for source, box in zip(sources, tile.inputs, strict=True):
                if box is not None and not (local and tile.seen):
                    demands.setdefault(source, []).append(box)
        for source, box in zip(made, needed, strict=True):
            if box is not None:
                found.boxes[source] = walk.whole(source) or box
    for source, several in demands.items():
        found.boxes.setdefault(source, walk.whole(source) or hull(several))
    return found


def _layer_tile(
    walk: Walk,
    index: int,
    sources: Sequence[Source],
    needed: Boxes,
    blocked: dict[int, Boxes],
) -> tuple[LayerTile, Boxes]:
    """Return how a layer computes boxes of its outputs, and the boxes that it computes.

    A layer that must compute whole axes is added to `blocked`.
    """
    operation = walk.graph.layers[index].operation
    inputs = [walk.info(source) for source in sources]
    outputs = [walk.info(source) for source in walk.made(index)]
    tile = operation.tile(needed, inputs, outputs, walk.context)
    if tile.blocked:
        blocked[index] = needed
        needed = [
            None
            if box is None
            else tuple(
                (0, extent) if axis in tile.blocked else span
                for axis, (span, extent) in enumerate(zip(box, static(info.shape), strict=True))
            )
            for box, info in zip(needed, outputs, strict=True)
        ]
        axes = tile.blocked
        tile = operation.tile(needed, inputs, outputs, walk.context)._replace(blocked=axes)
    return walk.with_ends(index, tile, needed[0], inputs[0]), needed


def find_blockers(walk: Walk, wanted: Source) -> list[Blocker | None]:
    """Return, for each axis of a tensor, the layer that prevents tiling; None: it can be tiled."""
    whole = whole_box(static(walk.info(wanted).shape))
    everything = [required_regions(walk, {wanted: whole}, local=local) for local in (False, True)]
    return [_blocker(walk, wanted, whole, axis, everything) for axis in range(len(whole))]


def _blocker(
    walk: Walk, wanted: Source, whole: Box, axis: int, everything: Sequence[Regions]
) -> Blocker | None:
    extent = whole[axis][1]
    if extent < 2:
        return None
    at = extent // 2
    unit = {wanted: (*whole[:axis], (at, at + 1), *whole[axis + 1 :])}
    # A reduction that needs the whole output of a blocked layer hides it: also walk without it.
    regions, near = (required_regions(walk, unit, local=local) for local in (False, True))
    blocked = _cut(walk, regions, everything[0]) | _cut(walk, near, everything[1])
    for index in sorted(blocked, key=walk.order.index):
        return Blocker(index, blocked[index])
    # A layer that reduces a whole axis may need all of an input, while the rest of the network
    # needs a small part of it.
    reducing = [i for i in walk.order if i in regions.tiles and regions.tiles[i].seen]
    if not reducing:
        return None
    for source, box in near.boxes.items():
        if walk.graph.layers[source[0]].type != "Parameter":
            continue
        for a, span in enumerate(box):
            if span != everything[1].boxes[source][a] and span != regions.boxes[source][a]:
                return Blocker(reducing[0], regions.tiles[reducing[0]].seen)
    return None


def _cut(walk: Walk, regions: Regions, everything: Regions) -> dict[int, tuple[int, ...]]:
    """Return the blocked layers that compute as much for a tile as for the whole output.

    Layers from which each tile needs the same part, such as before a slice, are not counted, nor
    are layers that compute all channels, but only of the tile's positions.
    """
    found = {}
    for index, needed in regions.blocked.items():
        axes = regions.tiles[index].blocked
        if any(regions.boxes.get(s) != everything.boxes.get(s) for s in walk.made(index)):
            continue
        if _along(needed, axes) != _along(everything.blocked.get(index, ()), axes):
            found[index] = axes
    return found


def _along(boxes: Boxes, axes: Sequence[int]) -> list[list[tuple[int, int]] | None]:
    """Return the spans of boxes along some axes, skipping axes that a box does not have."""
    return [None if box is None else [box[a] for a in axes if a < len(box)] for box in boxes]
