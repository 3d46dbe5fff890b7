"""Lazy Dask arrays of a model's output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import InputError
from deconv_ir.ir.boxes import as_slices, box_shape
from deconv_ir.tiling.grid import Grid, fit_tile
from deconv_ir.tiling.remote import RemoteModel, compute_box, import_dask
from deconv_ir.tiling.stream import choose_tile, default_budget

if TYPE_CHECKING:
    from deconv_ir.tiling.tileable import Tileable


def map_dask(
    model: Tileable,
    arrays: Mapping[str, Any],
    tile: str | Sequence[int],
    output: str | None,
) -> Any:
    """Return the output as a Dask array with a chunk for each tile; see `Model.map_dask`."""
    dask, array = import_dask(), import_dask("dask.array")
    given = {name: array.asanyarray(one) for name, one in arrays.items()}
    shapes = {name: tuple(map(int, one.shape)) for name, one in given.items()}
    run = model.tiled(shapes, output=output)
    if isinstance(tile, str):
        if tile != "auto":
            raise InputError(f"tile must be 'auto' or extents, found {tile!r}")
        extents = choose_tile(run, default_budget())
    else:
        try:
            extents = fit_tile(run.shape, tile)
        except ValueError as error:
            raise InputError(str(error)) from None
    run.require_tileable(extents)
    for name, one in given.items():
        if one.dtype != run.dtype_of(name):
            raise InputError(
                f"input {name!r} takes {run.dtype_of(name).name}, found {one.dtype.name}",
                file=run.graph.file,
                hint="array.astype converts it",
            )
    # One node holds the model, so that it is sent to a worker once.
    remote = dask.delayed(RemoteModel(model), pure=True)
    task = dask.delayed(compute_box, pure=False)
    grid = Grid(run.shape, extents)
    blocks = []
    for box in grid.boxes():
        needed = run.tile(box).inputs
        parts = {name: given[name][as_slices(needed[name])] for name in needed}
        value = task(remote, shapes, output, box, parts)
        blocks.append(array.from_delayed(value, box_shape(box), dtype=run.dtype))
    return array.block(_nested(blocks, grid.counts))


def _nested(blocks: list[Any], counts: Sequence[int]) -> Any:
    """Return blocks in their order as lists of lists, one level for each axis."""
    if not counts:
        return blocks[0]
    size = len(blocks) // counts[0]
    return [
        _nested(blocks[i * size : (i + 1) * size], counts[1:]) if len(counts) > 1 else blocks[i]
        for i in range(counts[0])
    ]
