"""Replacement of layers that need a whole axis by statistics from a first pass over the tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from deconv_ir.ir.boxes import Box
from deconv_ir.ir.graph import Graph, rewire
from deconv_ir.ir.operation import Operation
from deconv_ir.ir.regions import Blocker
from deconv_ir.tiling.grid import Grid
from deconv_ir.tiling.tiled_run import Read, TiledRun


class Precomputed(NamedTuple):
    """The replacement of a layer, and the number of its inputs that remain."""

    layer: int
    operation: Operation
    inputs: int


Measure = Callable[[TiledRun, Sequence[Precomputed], int, Iterable[Box]], Iterable[tuple[Box, Any]]]
"""A function from the TiledRun of a layer's input, earlier results, the layer, and boxes of that
input to the contribution of each box to the layer's statistic."""


def measure_here(read: Read) -> Measure:
    """Measure in this process; `read` returns a box of an input."""

    def measure(
        run: TiledRun, found: Sequence[Precomputed], layer: int, boxes: Iterable[Box]
    ) -> Iterable[tuple[Box, Any]]:
        statistic = run.statistic(layer)
        assert statistic is not None, "the layer was chosen for it"
        for box in boxes:
            yield box, statistic.measure(run.run(run.tile(box), read))

    return measure


Choose = Callable[[TiledRun], Sequence[int]]
"""A function from the TiledRun of a layer's input to the tile that is measured at a time."""


def precompute(
    run: TiledRun, tile: Sequence[int] | None, measure: Measure, choose: Choose
) -> tuple[TiledRun, tuple[Precomputed, ...]]:
    """Compute the statistics without which an output cannot be tiled.

    Each statistic requires a pass over the part of the network before its layer.

    Parameters
    ----------
    run : TiledRun
    tile : sequence of int or None
        Tile of the output; None: all statistics that any tile requires.
    measure : callable
    choose : callable

    Returns
    -------
    TiledRun, tuple of Precomputed
        The TiledRun of the output, and its new results.

    Raises
    ------
    UnsupportedError
        A layer needs more than one statistic of the whole axis.
    """
    results: tuple[Precomputed, ...] = ()
    while (found := next_pass(run, tile)) is not None:
        layer, before = found
        boxes = Grid(before.shape, tuple(choose(before))).boxes()
        results += (add_up(run, layer, measure(before, results, layer, boxes)),)
        run = with_results(run, results[-1:])
    return run, results


def next_pass(run: TiledRun, tile: Sequence[int] | None) -> tuple[int, TiledRun] | None:
    """Return the layer whose statistic is computed next, and the TiledRun of its input.

    None if the output can be tiled.  Parameters are those of `precompute`.

    Raises
    ------
    UnsupportedError
        A layer needs more than one statistic of the whole axis.
    """
    smallest = (1,) * len(run.shape)
    blockers = run.blockers_of(smallest if tile is None else tile)
    blocker = next((b for b in blockers if run.statistic(b.layer) is not None), None)
    if blocker is None:
        if tile is not None:
            run.require_tileable(tile)
        return None
    before = run_before(run, blocker.layer)
    # Earlier layers may need a statistic themselves.
    while inner := _waiting(before, blocker):
        blocker, before = inner[0], run_before(run, inner[0].layer)
    return blocker.layer, before


def add_up(run: TiledRun, layer: int, parts: Iterable[tuple[Box, Any]]) -> Precomputed:
    """Return the result of a layer's statistic from the contributions of boxes of its input."""
    statistic = run.statistic(layer)
    assert statistic is not None, "the layer was chosen for it"
    for box, measured in parts:
        statistic.add(box, measured)
    return Precomputed(layer, statistic.result(), statistic.inputs)


def run_before(run: TiledRun, layer: int) -> TiledRun:
    """Return the TiledRun of the first input of a layer."""
    source = run.graph.topology.sources[layer][0]
    assert source is not None, "a graph with loose inputs does not load"
    return run.with_output(source)


def _waiting(run: TiledRun, blocker: Blocker) -> list[Blocker]:
    """Return the blockers of tiling a layer's input along its axes, except statistics."""
    cut = [1 if axis in blocker.axes else extent for axis, extent in enumerate(run.shape)]
    return [b for b in run.blockers_of(cut) if run.statistic(b.layer) is not None]


def with_results(run: TiledRun, results: Iterable[Precomputed]) -> TiledRun:
    """Return the TiledRun of the same output with results in place of their layers."""
    graph = run.graph
    for result in results:
        graph = _replace_layer(graph, *result)
    return run if graph is run.graph else run.with_graph(graph)


def _replace_layer(graph: Graph, index: int, operation: Operation, kept: int) -> Graph:
    layers, sources = list(graph.layers), list(graph.topology.sources)
    layer = layers[index]
    layers[index] = layer._replace(
        operation=operation, type="Const" if not kept else layer.type, inputs=layer.inputs[:kept]
    )
    sources[index] = sources[index][:kept]
    return rewire(graph, layers, sources)
