"""Layers that see a whole axis, replaced by what a first pass over the tiles computes."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.ir.boxes import Statistic
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.regions import Blocker
from deconv_ir.tiling.grid import Grid
from deconv_ir.tiling.stream import choose_tile
from deconv_ir.tiling.tiled_run import Read, TiledRun


def precompute(run: TiledRun, tile: Sequence[int] | None, read: Read, budget: int) -> TiledRun:
    """Compute the statistics that keep an output from being tiled.

    Each takes a pass over the part of the network before its layer.

    Parameters
    ----------
    run : TiledRun
    tile : sequence of int or None
        Of the output; None: all statistics that keep any tile from being computed.
    read : callable
        Reads a box of an input.
    budget : int
        Bytes that a tile of a pass may take.

    Raises
    ------
    UnsupportedError
        A layer needs more than one statistic of the whole axis.
    """
    smallest = (1,) * len(run.shape)
    while found := run.blockers_of(smallest if tile is None else tile):
        blocker = next((b for b in found if run.statistic(b.layer) is not None), None)
        if blocker is None:
            if tile is not None:
                run.require_tileable(tile)
            return run
        before = _before(run, blocker)
        # Layers before it may themselves have to wait for a statistic.
        while inner := _waiting(before, blocker):
            blocker, before = inner[0], _before(run, inner[0])
        statistic = run.statistic(blocker.layer)
        assert statistic is not None, "it was chosen for it"
        for box in Grid(before.shape, choose_tile(before, budget)).boxes():
            statistic.add(box, before.run(before.tile(box), read))
        run = run.with_graph(replace_layer(run.graph, blocker.layer, statistic))
    return run


def _before(run: TiledRun, blocker: Blocker) -> TiledRun:
    """Return what computes the first input of a layer."""
    source = run.graph.topology.sources[blocker.layer][0]
    assert source is not None, "a graph with loose inputs does not load"
    return run.with_output(source)


def _waiting(run: TiledRun, blocker: Blocker) -> list[Blocker]:
    """Return what keeps a layer's input from being tiled along its axes, but for statistics."""
    cut = [1 if axis in blocker.axes else extent for axis, extent in enumerate(run.shape)]
    return [b for b in run.blockers_of(cut) if run.statistic(b.layer) is not None]


def replace_layer(graph: Graph, index: int, statistic: Statistic) -> Graph:
    """Return a graph in which the result of a statistic stands in the place of a layer."""
    layers, sources = list(graph.layers), list(graph.topology.sources)
    operation, kept = statistic.result(), statistic.inputs
    layer = layers[index]
    layers[index] = layer._replace(
        operation=operation, type="Const" if not kept else layer.type, inputs=layer.inputs[:kept]
    )
    sources[index] = sources[index][:kept]
    replaced = graph.replace(layers=tuple(layers))
    # The edges are still those of the file.
    replaced.__dict__["topology"] = graph.topology._replace(sources=tuple(sources))
    return replaced
