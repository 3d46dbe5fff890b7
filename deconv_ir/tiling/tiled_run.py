"""A network that is computed box by box of its output."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from deconv_ir.errors import UnsupportedError
from deconv_ir.execute.executor import Executor
from deconv_ir.execute.lru_cache import LRUCache
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.execute.plan import Plan
from deconv_ir.execute.scratchpad import Grant
from deconv_ir.hints import Hint
from deconv_ir.ir.boxes import Box, Statistic, box_shape
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.regions import Blocker, Walk, find_blockers, required_regions
from deconv_ir.ir.shapes import element_count, format_shape, is_static, static
from deconv_ir.tiling.tile_plan import TileGraph, plan_tile, tile_graph

_PLANS_KEPT = 128

Read = Callable[[str, Box], "Array"]
"""A function from the name of an input and a box to the elements."""


class Tile(NamedTuple):
    """A box of the output that is ready to be computed.

    Attributes
    ----------
    box : tuple of (int, int)
        Box of the output: the first index and the one after the last, on each axis.
    inputs : dict
        Name of an input -> the box of it that is read.
    plan : Plan

    Examples
    --------
    >>> import deconv_ir
    >>> tiles = deconv_ir.load("samples/block/block.xml").tiled()
    >>> tile = tiles.tile(((0, 1), (0, 4), (8, 16), (0, 32)))
    >>> isinstance(tile, deconv_ir.Tile), tile.inputs
    (True, {'x': ((0, 1), (0, 8), (3, 9), (0, 16))})
    """

    box: Box
    inputs: dict[str, Box]
    plan: Plan


class TiledRun:
    """Computes boxes of one output, bitwise equal to a run of the whole; see `Model.tiled`.

    Safe to use from several threads at once.

    Parameters
    ----------
    graph : Graph
    context : Context
    names : mapping
        Index of a Parameter -> name of the input.
    infos : sequence
        For each layer, the TensorInfo of each of its outputs.
    output : Source
        The tensor that is computed.
    memory_limit : int or None
        Maximum bytes of the constants; None: the available memory.

    Raises
    ------
    UnsupportedError
        A shape of the network is not known before it runs.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> tiles = model.tiled()
    >>> isinstance(tiles, deconv_ir.TiledRun), tiles.shape
    (True, (1, 4, 32, 32))
    >>> x = np.ones((1, 8, 16, 16), np.float32)
    >>> read = lambda name, box: x[tuple(slice(*span) for span in box)]
    >>> found = tiles.run(tiles.tile(((0, 1), (0, 4), (8, 16), (0, 32))), read)
    >>> np.array_equal(found, model.run(x)["y"][:, :, 8:16])
    True
    """

    def __init__(
        self,
        graph: Graph,
        context: Context,
        names: Mapping[int, str],
        infos: Sequence[Sequence[TensorInfo]],
        output: Source,
        memory_limit: int | None = None,
    ) -> None:
        self.graph, self.context, self.output = graph, context, output
        self.names = dict(names)
        self._infos, self._memory_limit = infos, memory_limit
        # The inputs of a layer's tile are those of the layer; the bits are the same.
        executor = Executor(graph, context, (output,), memory_limit, add_tensors=False)
        _require_static(graph, executor.order, infos)
        self._executor = executor
        self._prepared = executor.prepare(infos)
        self._grants = executor.judge_whole(infos)
        self._walk = Walk(
            self._prepared.graph,
            self._prepared.steps,
            infos,
            context,
            executor.constant,
            self._prepared.fused,
            {grant.layer: _steps(grant, infos) for grant in self._grants},
        )
        self._plans: LRUCache[Hashable, Plan] = LRUCache(_PLANS_KEPT)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the whole output."""
        return static(self._walk.info(self.output).shape)

    @property
    def info(self) -> TensorInfo:
        """Shape and element type of the whole output."""
        return self._walk.info(self.output)

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the output."""
        return _dtype(self.info)

    def dtype_of(self, name: str) -> Any:
        """Return NumPy's dtype of an input."""
        index = next(i for i, known in self.names.items() if known == name)
        return _dtype(self._walk.info((index, 0)))

    @functools.cached_property
    def _blockers(self) -> list[Blocker | None]:
        return find_blockers(self._walk, self.output)

    @property
    def tileable_axes(self) -> tuple[int, ...]:
        """The axes of the output on which a tile may be smaller than the whole."""
        return tuple(axis for axis, blocker in enumerate(self._blockers) if blocker is None)

    def require_tileable(self, tile: Sequence[int]) -> None:
        """Require that every axis on which the output is larger than a tile can be tiled.

        Raises
        ------
        UnsupportedError
            An axis cannot be tiled; the error names the layer that needs it whole, and the tileable
            axes.
        """
        cut = [a for a, (n, extent) in enumerate(zip(tile, self.shape, strict=True)) if n < extent]
        if not cut:
            return
        found = self._blockers
        wrong = [axis for axis in cut if found[axis] is not None]
        if not wrong:
            return
        first = found[wrong[0]]
        assert first is not None, "it is wrong"
        layer = self._walk.graph.layers[first.layer]
        free = self.tileable_axes
        can = f"{_listed(free)} can be" if free else "no axis can be"
        passes = self.statistic(first.layer) is not None
        raise UnsupportedError(
            f"sees the whole of {_listed(first.axes)}, so {_listed(wrong)} of the output "
            f"{format_shape(self.shape)} cannot be tiled; {can}",
            file=self.graph.file,
            line=layer.line,
            layer=layer.label,
            hint=Hint.TWO_PASSES() if passes else None,
            rule="tiling",
        )

    def blockers_of(self, tile: Sequence[int]) -> list[Blocker]:
        """Return the layers that prevent this tiling of the output, in execution order."""
        cut = [a for a, (n, extent) in enumerate(zip(tile, self.shape, strict=True)) if n < extent]
        found = [blocker for a in cut if (blocker := self._blockers[a]) is not None]
        return sorted(found, key=lambda b: self._walk.order.index(b.layer))

    def statistic(self, layer: int) -> Statistic | None:
        """Return a layer's statistic over whole axes; None if that is not sufficient."""
        sources = [s for s in self.graph.topology.sources[layer] if s is not None]
        inputs = [self._walk.info(source) for source in sources]
        return self.graph.layers[layer].operation.statistic(inputs, self._infos[layer])

    def with_output(self, output: Source) -> TiledRun:
        """Return a TiledRun for another tensor of the same network."""
        return TiledRun(
            self.graph, self.context, self.names, self._infos, output, self._memory_limit
        )

    def with_graph(self, graph: Graph) -> TiledRun:
        """Return a TiledRun for the output with other layers, of the same indices and shapes."""
        return TiledRun(
            graph, self.context, self.names, self._infos, self.output, self._memory_limit
        )

    def tile(self, box: Box) -> Tile:
        """Find the inputs of a box, and plan it; tiles of equal geometry share plans."""
        wanted = {self.output: box}
        regions = required_regions(self._walk, wanted)
        part = tile_graph(self._prepared, self._walk, regions, wanted)
        plan = self._plans.get(part.key, lambda: self._plan(part))
        return Tile(box, {self.names[i]: found for i, found in part.inputs.items()}, plan)

    def _plan(self, part: TileGraph) -> Plan:
        bodies = self._executor.plan_bodies
        return plan_tile(self._prepared, part, self._walk, self._grants, bodies)

    def bytes_of(self, tile: Tile) -> int:
        """Return the bytes of memory for computing a tile.

        Its inputs and its result count twice: as arrays, and as pages of mapped files.
        """
        box = TensorInfo(box_shape(tile.box), self.info.element_type)
        taken = tile.plan.peak_bytes + (tensor_bytes(box) or 0)
        for index, name in self.names.items():
            if name in tile.inputs:
                info = self._walk.info((index, 0))
                shape = box_shape(tile.inputs[name])
                taken += 2 * (tensor_bytes(TensorInfo(shape, info.element_type)) or 0)
        return taken

    def work_of(self, tile: Tile) -> int:
        """Return the number of elements that all layers of a tile compute, without crops."""
        infos, own = tile.plan.infos, len(self._walk.graph.layers)
        made = [step.made for step in tile.plan.steps if step.layer < own]
        return sum(element_count(static(infos[index][0].shape)) for index in made)

    def run(self, tile: Tile, read: Read) -> Array:
        """Compute a tile.

        Raises
        ------
        ResourceError
            The tile does not fit into memory.
        """
        arrays = {
            index: read(name, tile.inputs[name])
            for index, name in self.names.items()
            if name in tile.inputs
        }
        (result,) = self._executor.run(tile.plan, arrays)
        return result


def _steps(grant: Grant, infos: Sequence[Sequence[TensorInfo]]) -> tuple[tuple[int, int], ...]:
    """Return the step and the margin of each axis of a layer's output."""
    assert grant.whole is not None, "it was chosen for a whole layer"
    found = [(1, 0)] * len(static(infos[grant.layer][0].shape))
    spatial = tuple(zip(grant.whole.steps, grant.whole.margins, strict=True))
    found[grant.spatial : grant.spatial + len(spatial)] = spatial
    return tuple(found)


def _dtype(info: TensorInfo) -> Any:
    assert info.element_type is not None, "the model is static"
    return info.element_type.numpy()


def _listed(axes: Sequence[int]) -> str:
    return f"{'axis' if len(axes) == 1 else 'axes'} {', '.join(map(str, axes))}"


def _require_static(
    graph: Graph, order: Sequence[int], infos: Sequence[Sequence[TensorInfo]]
) -> None:
    for index in order:
        if not all(is_static(info.shape) for info in infos[index]):
            layer = graph.layers[index]
            raise UnsupportedError(
                "the shape depends on input values, so the network cannot be tiled",
                file=graph.file,
                line=layer.line,
                layer=layer.label,
                rule="tiling",
            )


class TiledModel(Protocol):
    """The interface of a model for tasks, which `Model` implements."""

    def tiled(
        self, shapes: Mapping[str, Any] | None = None, *, output: str | None = None
    ) -> TiledRun:
        """Return a TiledRun of one output."""
