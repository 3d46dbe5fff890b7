"""A run in tiles: arrays that are read and written a box at a time."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.formats.volumes import (
    SUFFIXES,
    Journal,
    Volume,
    create_volume,
    open_volume,
    remove_volume,
)
from deconv_ir.ir.boxes import Box, box_shape
from deconv_ir.ir.shapes import element_count
from deconv_ir.tiling.grid import Grid, fit_tile
from deconv_ir.tiling.stream import (
    FileReader,
    Stream,
    check_types,
    choose_tile,
    default_budget,
    parse_tile,
)
from deconv_ir.tiling.two_pass import precompute

from .cluster import completed, connect, is_local, send_model, submit, wants_cluster, worker_threads
from .common import EXIT_OK, Mistake, print_json
from .guard import guard_run
from .inputs import pair
from .manifest import Stamp, describe_run
from .resources import hand_back, limit_threads

if TYPE_CHECKING:
    from deconv_ir import Model, TiledRun

    from .request import Request

NOT_IN_TILES = (
    *("no_output", "expect", "random_inputs", "save_inputs", "batch", "fail_fast"),
    *("repeat", "warmup", "profile", "explain_plan", "shapes", "cast", "physical"),
)


def run_tiled(model: Model, request: Request) -> int:
    """Compute the output tile by tile; it appears under its name when it is complete."""
    request.require_none_of(NOT_IN_TILES, "cannot be combined with --tile")
    assert request.tile is not None, "the caller has seen it"
    if request.two_pass and wants_cluster(request):
        raise Mistake("--two-pass requires one process")
    given = pair("--input", request.inputs, list(model.inputs))
    target = _target(request)
    inputs = {name: open_volume(path) for name, path in given.items()}
    guard = guard_run(model, request, [(f"the array of input {n!r}", p) for n, p in given.items()])
    guard.allow("--output", target)
    names = request.wanted or []
    if len(names) > 1:
        raise Mistake("--tile computes one output, --output-layer names several")
    shapes = {name: volume.shape for name, volume in inputs.items()}
    run = model.tiled(shapes, output=names[0] if names else None)
    with limit_threads(request.threads):
        hand_back()
        journal = Journal(_beside(target, ".partial.tiles"), {})
        check_types(run, inputs)
        tile = _given_tile(run, request, journal)
        if request.two_pass:
            run = precompute(run, tile, FileReader(run, inputs), _budget(request))
        grid = Grid(run.shape, tile or choose_tile(run, _budget(request)))
        return _Job(model, request, run, grid, inputs, target).run()


def _target(request: Request) -> Path:
    if request.output is None or not request.output.rstrip("/").endswith(SUFFIXES):
        raise Mistake("--tile requires --output FILE.npy or FILE.zarr")
    target = Path(request.output.rstrip("/"))
    if target.suffix != ".zarr" and wants_cluster(request) and not is_local(request):
        raise Mistake(
            f"--output {target}: tiles of several machines go to a .zarr array, whose chunks are "
            "files of their own"
        )
    if target.exists() and not request.force:
        raise Mistake(f"{target} already exists (use --force to overwrite)")
    return target


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(target.name + suffix)


def _given_tile(run: TiledRun, request: Request, journal: Journal) -> tuple[int, ...] | None:
    """Return the tile that was asked for, required to be computable before anything is read.

    None: it is to be chosen.
    """
    assert request.tile is not None, "the caller has seen it"
    try:
        asked = parse_tile(request.tile)
    except ValueError as error:
        raise Mistake(str(error)) from None
    if asked is not None:
        try:
            tile = fit_tile(run.shape, asked)
        except ValueError as error:
            raise Mistake(f"--tile {request.tile}: {error}") from None
        if not request.two_pass:
            run.require_tileable(tile)
        return tile
    earlier = journal.read() if request.resume else None
    if earlier is not None:  # the tiles of the interrupted run, whatever memory there was
        tile = tuple(earlier[0].get("tile", ()))
        if len(tile) == len(run.shape):
            return tile
    return None


def _budget(request: Request) -> int:
    """Return the bytes that a tile may take."""
    if request.memory_limit is None:
        return default_budget()
    import psutil

    return request.memory_limit - int(psutil.Process().memory_info().rss)


class _Job:
    """A result that grows beside its name, and the journal of its tiles."""

    def __init__(
        self,
        model: Model,
        request: Request,
        run: TiledRun,
        grid: Grid,
        inputs: dict[str, Volume],
        target: Path,
    ) -> None:
        self.model, self.request, self.run_, self.grid, self.target = (
            model,
            request,
            run,
            grid,
            target,
        )
        self.inputs = inputs
        self.partial = _beside(target, ".partial")
        header: dict[str, Any] = describe_run(model, request, {})
        header["inputs"] = {name: _stamp(volume.path) for name, volume in inputs.items()}
        header["shape"], header["tile"] = grid.shape, grid.tile
        self.journal = Journal(_beside(target, ".partial.tiles"), header)

    def run(self) -> int:
        """Compute what is missing."""
        began = time.perf_counter()
        done = self._begin()
        skipped = len(done)
        elements = 0
        left = {n: box for n, box in enumerate(self.grid.boxes()) if n not in done}
        compute = self._on_cluster if wants_cluster(self.request) else self._here
        with _progress(len(self.grid), self.request) as advance:
            advance(skipped, 0.0)
            for number in compute(left):
                elements += element_count(box_shape(left[number]))
                advance(1, elements / (time.perf_counter() - began))
        self._finish()
        self._report(skipped, time.perf_counter() - began, elements)
        return EXIT_OK

    def _here(self, left: Mapping[int, Box]) -> Iterator[int]:
        """Compute tiles in this process; yield the number of each."""
        stream = Stream(self.run_, self.inputs, open_volume(str(self.partial), "r+"))
        for number, box in left.items():
            stream.compute(box)
            self.journal.add(number)
            yield number

    def _on_cluster(self, left: Mapping[int, Box]) -> Iterator[int]:
        """Compute tiles on a cluster; workers read, write and record them themselves."""
        from deconv_ir.tiling.remote import TiledFiles, compute_tile

        wanted = self.request.wanted
        files = TiledFiles(
            {name: os.path.realpath(volume.path) for name, volume in self.inputs.items()},
            os.path.realpath(self.partial),
            wanted[0] if wanted else None,
            os.path.realpath(self.journal.path),
            worker_threads(self.request),
        )
        with connect(self.request) as client:
            remote = send_model(client, self.model, self.request)
            tasks = [submit(client, compute_tile, remote, files, n, box) for n, box in left.items()]
            for future in completed(client, tasks):
                yield future.result()

    def _begin(self) -> set[int]:
        """Create the partial result, or take up that of an interrupted run."""
        earlier = self.journal.read() if self.partial.exists() else None
        if earlier is not None and self.request.resume:
            header, done = earlier
            if header == self.journal.header:
                self.journal.start(done)
                return done
            changed = [
                key for key, value in self.journal.header.items() if header.get(key) != value
            ]
            raise Mistake(
                f"{self.partial} cannot be resumed: {', '.join(changed)} changed "
                "(use --force to start again)"
            )
        if self.partial.exists() and not self.request.force:
            raise Mistake(
                f"{self.partial} is left of an interrupted run "
                "(use --resume to continue it, --force to start again)"
            )
        dtype = self.run_.dtype
        create_volume(self.partial, self.grid.shape, dtype, self.grid.tile)
        self.journal.start(set())
        return set()

    def _finish(self) -> None:
        if self.target.exists():
            remove_volume(self.target)
        self.partial.rename(self.target)
        self.journal.path.unlink(missing_ok=True)

    def _report(self, skipped: int, seconds: float, elements: int) -> None:
        if self.request.as_json:
            print_json(
                {
                    "output": str(self.target),
                    "shape": list(self.grid.shape),
                    "tile": list(self.grid.tile),
                    "tiles": len(self.grid),
                    "skipped": skipped,
                    "seconds": round(seconds, 6),
                }
            )
        elif not self.request.quiet:
            size = "x".join(map(str, self.grid.tile))
            kept = f", {skipped} of an earlier run" if skipped else ""
            rate = elements / seconds / 1e6 if seconds else 0.0
            click.echo(
                f"{self.target}: {len(self.grid)} tiles of {size}{kept}, "
                f"{seconds:.1f} s, {rate:.3g} M elements/s"
            )


def _stamp(path: str) -> list[Any]:
    """Return what tells one version of an array from another: for a store, its metadata's."""
    file = Path(path)
    if file.is_dir():
        file = next((file / n for n in ("zarr.json", ".zarray") if (file / n).exists()), file)
    return [os.path.realpath(path), Stamp.of(file)]


@contextlib.contextmanager
def _progress(count: int, request: Request) -> Iterator[Any]:
    """Show a bar with throughput and remaining time, on a terminal only."""
    if request.quiet or request.as_json or not sys.stderr.isatty():
        yield lambda steps, rate: None
        return
    rates = [0.0]
    bar: Any
    with click.progressbar(
        length=count,
        file=sys.stderr,
        show_pos=True,
        show_eta=True,
        item_show_func=lambda _: f"{rates[0] / 1e6:.3g} M elements/s",
    ) as bar:

        def advance(steps: int, rate: float) -> None:
            rates[0] = rate
            bar.update(steps, current_item=None)

        yield advance
