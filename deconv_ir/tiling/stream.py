"""Computation of tiles from files to a file, and the choice of the tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from deconv_ir.arrays.fitting import narrows, to_storable
from deconv_ir.errors import InputError, ResourceError
from deconv_ir.execute.memory import available_bytes, format_bytes
from deconv_ir.formats.volumes import Volume
from deconv_ir.hints import Hint
from deconv_ir.ir.boxes import Box, whole_box
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.shapes import element_count
from deconv_ir.tiling.grid import Grid
from deconv_ir.tiling.tiled_run import TiledRun

_MOST_BYTES = 4 << 30
_WORTH = 1.1
"""Clearing memory for each tile costs about as much as a tenth of extra work."""


def default_budget() -> int:
    """Return the default memory of a tile in bytes: a quarter of the available memory."""
    return min(available_bytes() // 4, _MOST_BYTES)


class _Candidate(NamedTuple):
    """A tile and its cost: elements computed per output element, and bytes."""

    cost: float
    shape: tuple[int, ...]
    taken: int


def choose_tile(run: TiledRun, budget: int) -> tuple[int, ...]:
    """Return a large tile within a number of bytes.

    Halves the axis with the least cost of halos until the tile fits; once more if that costs
    little, so that the next tile reuses the memory of the last one (see `spare_bytes`).

    Parameters
    ----------
    run : TiledRun
    budget : int
        Bytes.

    Raises
    ------
    ResourceError
        The smallest tile does not fit.
    """
    best = _candidate(run, tuple(max(1, extent) for extent in run.shape))
    while best.taken > budget:
        half = _half(run, best.shape)
        if half is None:
            raise ResourceError(
                f"a tile of {','.join(map(str, best.shape))} needs {format_bytes(best.taken)} of "
                f"memory, more than the limit of {format_bytes(budget)}",
                file=run.graph.file,
                expected=budget,
                actual=best.taken,
                rule="memory",
            )
        best = half
    if best.shape != run.shape and 2 * best.taken > budget:
        half = _half(run, best.shape)
        if half is not None and 2 * half.taken <= budget and half.cost <= _WORTH * best.cost:
            return half.shape
    return best.shape


def spare_bytes(run: TiledRun, tile: Sequence[int], budget: int) -> int:
    """Return the bytes that may be kept between tiles; 0 if they are too few for a tile."""
    taken = _candidate(run, tuple(tile)).taken
    return budget - taken if 2 * taken <= budget else 0


def _half(run: TiledRun, shape: tuple[int, ...]) -> _Candidate | None:
    """Return the half of a tile with the least cost of halos; None for a single element."""
    halves = [
        _candidate(run, (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :]))
        for axis in run.tileable_axes
        if shape[axis] > 1
    ]
    return min(halves, default=None)


def _candidate(run: TiledRun, shape: tuple[int, ...]) -> _Candidate:
    grid = Grid(run.shape, shape)
    middle = [n // 2 * extent for n, extent in zip(grid.counts, shape, strict=True)]
    box = tuple(
        (start, min(start + extent, whole))
        for start, extent, whole in zip(middle, shape, run.shape, strict=True)
    )
    tile = run.tile(box)
    elements = element_count([stop - start for start, stop in box])
    return _Candidate(run.work_of(tile) / max(1, elements), shape, run.bytes_of(tile))


class FileReader:
    """Reads boxes of inputs, in the element types of the model."""

    def __init__(self, run: TiledRun, inputs: Mapping[str, Volume]) -> None:
        self._dtypes = {name: run.dtype_of(name) for name in inputs}
        self._inputs = inputs

    def __call__(self, name: str, box: Box) -> Array:
        """Read a box."""
        data = self._inputs[name].read(box)
        native = data.astype(data.dtype.newbyteorder("="), copy=False)
        if narrows(native.dtype, self._dtypes[name]):
            with np.errstate(over="ignore"):
                return native.astype(self._dtypes[name])
        return native.view(self._dtypes[name])


class Stream:
    """Computes tiles of an output from input files, and writes them to an output file.

    Parameters
    ----------
    run : TiledRun
    inputs : mapping
        Name of an input -> its array.
    output : Volume
        An array with the shape of the output.

    Raises
    ------
    InputError
        An array is missing, or of another element type.
    """

    def __init__(self, run: TiledRun, inputs: Mapping[str, Volume], output: Volume) -> None:
        self.run, self.output = run, output
        check_types(run, inputs)
        self.read = FileReader(run, inputs)

    def result(self, box: Box) -> Array:
        """Compute one tile, in its stored form."""
        return to_storable(self.run.run(self.run.tile(box), self.read))

    def compute(self, box: Box) -> None:
        """Compute and write one tile."""
        self.output.write(box, self.result(box))


def check_types(run: TiledRun, inputs: Mapping[str, Volume]) -> None:
    """Require an array of the right element type for each input that the output needs."""
    needed = run.tile(whole_box(run.shape)).inputs
    missing = [name for name in needed if name not in inputs]
    if missing:
        names = ", ".join(map(repr, missing))
        raise InputError(f"no array for input {names}", file=run.graph.file)
    narrow = run.graph.ir_version == 10  # as in `Model.run`
    for name in needed:
        dtype, found = run.dtype_of(name), inputs[name].dtype.newbyteorder("=")
        raw = found.kind == "V" and found.itemsize == dtype.itemsize
        if found != dtype and not raw and not (narrow and narrows(found, dtype)):
            raise InputError(
                f"input {name!r} takes {dtype.name}, found {found.name}",
                file=inputs[name].path,
                expected=dtype.name,
                actual=found.name,
                hint=Hint.TILES_ARE_NOT_CONVERTED(),
                rule="input-type",
            )


def parse_tile(text: str) -> Sequence[int] | None:
    """Parse a tile, such as ``64,256,256``; None for ``auto``.

    Raises
    ------
    ValueError
        The text is neither.
    """
    if text == "auto":
        return None
    words = text.split(",")
    if not all(word.strip().isdecimal() and len(word) < 12 for word in words):
        raise ValueError(f"invalid tile {text!r} (expected auto, or extents as in 64,256,256)")
    return tuple(map(int, words))
