"""Lazy Dask arrays of a model's output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.errors import InputError
from deconv_ir.hints import Hint
from deconv_ir.ir.boxes import Box, as_slices, box_shape
from deconv_ir.tiling.grid import Grid, fit_tile
from deconv_ir.tiling.remote import (
    RemoteModel,
    RemoteRun,
    compute_box,
    import_dask,
    measure_part,
    precomputed,
)
from deconv_ir.tiling.stream import choose_tile, default_budget
from deconv_ir.tiling.tiled_run import TiledModel, TiledRun
from deconv_ir.tiling.two_pass import add_up, next_pass, with_results


def map_dask(
    model: TiledModel,
    arrays: Mapping[str, Any],
    tile: str | Sequence[int],
    output: str | None,
    *,
    two_pass: bool,
) -> Any:
    """Return the output as a Dask array with a chunk for each tile; see `Model.map_dask`."""
    dask, array = import_dask(), import_dask("dask.array")
    given = {name: array.asanyarray(one) for name, one in arrays.items()}
    shapes = {name: tuple(map(int, one.shape)) for name, one in given.items()}
    run = model.tiled(shapes, output=output)
    asked = _asked(run, tile)
    for name, one in given.items():
        if one.dtype.newbyteorder("=") != run.dtype_of(name):
            raise InputError(
                f"input {name!r} takes {run.dtype_of(name).name}, found {one.dtype.name}",
                file=run.graph.file,
                hint=Hint.ASTYPE(),
            )
    # A single node holds the model, so that it is sent to a worker once.
    tasks = _Tasks(dask, dask.delayed(RemoteModel(model), pure=True), given)
    results: list[Any] = []  # delayed, too
    while two_pass and (found := next_pass(run, asked)) is not None:
        layer, before = found
        job, boxes = RemoteRun(shapes, output, layer), list(_grid(before, None).boxes())
        measured = [tasks.of_box(measure_part, before, job, results, box) for box in boxes]
        results = [*results, tasks.call(precomputed, job, results, boxes, measured)]
        # Boxes depend only on shapes: the other values may be any numbers.
        with np.errstate(all="ignore"):
            run = with_results(run, [add_up(run, layer, ())])
    grid = _grid(run, asked)
    run.require_tileable(grid.tile)
    job = RemoteRun(shapes, output)
    blocks = [
        array.from_delayed(
            tasks.of_box(compute_box, run, job, results, box), box_shape(box), dtype=run.dtype
        )
        for box in grid.boxes()
    ]
    return array.block(_nested(blocks, grid.counts))


def _asked(run: TiledRun, tile: str | Sequence[int]) -> tuple[int, ...] | None:
    """Return the requested tile; None: it is chosen automatically."""
    if isinstance(tile, str):
        if tile != "auto":
            raise InputError(f"tile must be 'auto' or extents, found {tile!r}")
        return None
    try:
        return fit_tile(run.shape, tile)
    except ValueError as error:
        raise InputError(str(error)) from None


def _grid(run: TiledRun, tile: tuple[int, ...] | None) -> Grid:
    return Grid(run.shape, tile or choose_tile(run, default_budget()))


class _Tasks(NamedTuple):
    """Makes tasks on a model and parts of the inputs."""

    dask: Any
    remote: Any
    given: Mapping[str, Any]

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a task."""
        return self.dask.delayed(function, pure=False)(self.remote, *arguments)

    def of_box(
        self,
        function: Callable[..., Any],
        run: TiledRun,
        job: RemoteRun,
        results: Sequence[Any],
        box: Box,
    ) -> Any:
        """Return a task on the parts of the inputs that a box needs."""
        needed = run.tile(box).inputs
        parts = {name: self.given[name][as_slices(needed[name])] for name in needed}
        return self.call(function, job, results, box, parts)


def _nested(blocks: list[Any], counts: Sequence[int]) -> Any:
    """Return blocks in their order as lists of lists, one level for each axis."""
    if not counts:
        return blocks[0]
    size = len(blocks) // counts[0]
    return [
        _nested(blocks[i * size : (i + 1) * size], counts[1:]) if len(counts) > 1 else blocks[i]
        for i in range(counts[0])
    ]
