"""A run in tiles: arrays that are read and written box by box."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.execute.memory import format_bytes
from deconv_ir.formats.volumes import (
    SUFFIXES,
    Journal,
    Volume,
    create_volume,
    is_array,
    open_volume,
    remove_fragments,
    remove_volume,
    replace_volume,
)
from deconv_ir.ir.boxes import Box, box_shape
from deconv_ir.ir.shapes import element_count
from deconv_ir.kernels import kernel_info, set_memory_pool_limit
from deconv_ir.tiling.grid import Grid, fit_tile
from deconv_ir.tiling.remote import TiledFiles, compute_tile, measure_box
from deconv_ir.tiling.stream import (
    FileReader,
    Stream,
    check_types,
    choose_tile,
    default_budget,
    parse_tile,
    spare_bytes,
)
from deconv_ir.tiling.two_pass import Precomputed, measure_here, precompute

from ..shared.common import EXIT_OK, Mistake, print_json
from ..shared.inputs import pair
from .cluster import (
    completed,
    connect,
    is_local,
    result_of,
    send_model,
    submit,
    tile_budget,
    wants_cluster,
    worker_threads,
)
from .manifest import Manifest, Stamp, describe_run
from .models import guard_run
from .resources import hand_back, limit_threads

if TYPE_CHECKING:
    from deconv_ir import Model, TiledRun

    from .request import RunRequest

NOT_IN_TILES = (
    *("no_output", "expect", "random_inputs", "save_inputs", "batch", "fail_fast"),
    *("repeat", "warmup", "profile", "explain_plan", "cast", "physical"),
)


def run_tiled(model: Model, request: RunRequest) -> int:
    """Compute the output tile by tile; it gets its final name when it is complete."""
    request.require_none_of(NOT_IN_TILES, "cannot be combined with --tile")
    assert request.tile is not None, "the caller has seen it"
    given = pair("--input", request.inputs, list(model.inputs))
    target = _target(request)
    inputs = {name: open_volume(path) for name, path in given.items()}
    guard = guard_run(model, request, [(f"the array of input {n!r}", p) for n, p in given.items()])
    guard.allow("--output", target)
    for name, path in given.items():
        _require_apart(target, name, path)
    names = request.wanted or []
    if len(names) > 1:
        raise Mistake("--tile computes one output, --output-layer names several")
    record = _ResumeRecord(model, request, inputs, target)
    if record.is_complete():
        return record.report()
    shapes = {name: volume.shape for name, volume in inputs.items()}
    run = model.tiled(shapes, output=names[0] if names else None)
    with limit_threads(request.threads):
        hand_back()
        journal = Journal(_beside(target, ".partial.tiles"), {})
        check_types(run, inputs)
        earlier = (journal.read() or ({}, 0))[0] if request.resume else {}
        tile = _given_tile(run, request)
        _require_fresh(_beside(target, ".partial"), request)
        where = connect(request) if wants_cluster(request) else contextlib.nullcontext()
        with where as client:
            budget = _budget(request, client)
            place = _OnCluster(client, model, request, inputs) if client else _Here(inputs, budget)
            passes = _Passes(budget, earlier)
            results: Sequence[Precomputed] = ()
            if request.two_pass:
                run, results = precompute(run, tile, place.measure, passes.choose)
            grid = Grid(run.shape, tile or _recorded(earlier.get("tile"), run, budget))
            result = _PartialResult(request, run, grid, inputs, record, passes.tiles)
            return result.run(place, results)


def _require_apart(target: Path, name: str, path: str) -> None:
    """Require that the written store is not a read one, nor inside or around it."""
    written, read = (Path(os.path.realpath(p)) for p in (target, path))
    if written == read or written in read.parents or read in written.parents:
        raise Mistake(
            f"--output {target} would overwrite the array of input {name!r} (choose another name)"
        )


def _target(request: RunRequest) -> Path:
    if request.output is None or not request.output.rstrip("/").endswith(SUFFIXES):
        raise Mistake("--tile requires --output FILE.npy or FILE.zarr")
    target = Path(request.output.rstrip("/"))
    if target.suffix != ".zarr" and wants_cluster(request) and not is_local(request):
        raise Mistake(
            f"--output {target}: tiles of several machines go to a .zarr array, whose chunks are "
            "files of their own"
        )
    if target.exists() and not (request.force or request.resume):
        raise Mistake(f"{target} already exists (use --force to overwrite)")
    if target.is_dir() and (target.suffix != ".zarr" or not is_array(target)):
        raise Mistake(f"{target} is a folder, not an array: --force does not replace it")
    return target


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(target.name + suffix)


def _given_tile(run: TiledRun, request: RunRequest) -> tuple[int, ...] | None:
    """Return the requested tile, after checking that it can be computed.

    None: the tile is chosen automatically.
    """
    assert request.tile is not None, "the caller has seen it"
    try:
        asked = parse_tile(request.tile)
    except ValueError as error:
        raise Mistake(str(error)) from None
    if asked is None:
        return None
    try:
        tile = fit_tile(run.shape, asked)
    except ValueError as error:
        raise Mistake(f"--tile {request.tile}: {error}") from None
    if not request.two_pass:
        run.require_tileable(tile)
    return tile


def _recorded(found: Any, run: TiledRun, budget: int) -> tuple[int, ...]:
    """Return the tile of an interrupted run, regardless of memory; otherwise choose one."""
    good = isinstance(found, list) and len(found) == len(run.shape)
    if good and all(isinstance(extent, int) and extent > 0 for extent in found):
        return tuple(found)
    return choose_tile(run, budget)


class _Passes:
    """The tiles of first passes; sums have the same order as in an interrupted run."""

    def __init__(self, budget: int, earlier: Mapping[str, Any]) -> None:
        found = earlier.get("passes")
        self._budget, self._earlier = budget, found if isinstance(found, list) else []
        self.tiles: list[tuple[int, ...]] = []

    def choose(self, run: TiledRun) -> tuple[int, ...]:
        """Return the tile of the next pass."""
        count = len(self.tiles)
        found = self._earlier[count] if count < len(self._earlier) else None
        self.tiles.append(_recorded(found, run, self._budget))
        return self.tiles[-1]


def _require_fresh(partial: Path, request: RunRequest) -> None:
    """Require that a partial result of an interrupted run is to be continued or replaced."""
    if partial.exists() and not (request.force or request.resume):
        raise Mistake(
            f"{partial} is left of an interrupted run "
            "(use --resume to continue it, --force to start again)"
        )


def _budget(request: RunRequest, client: Any) -> int:
    """Return the bytes that a tile may use in any process."""
    if request.memory_limit is None:
        return default_budget() if client is None else tile_budget(client)
    import psutil

    taken = int(psutil.Process().memory_info().rss)
    if taken >= request.memory_limit:
        raise Mistake(
            f"--memory-limit {format_bytes(request.memory_limit)}: with --tile the limit is that "
            f"of the process, which takes {format_bytes(taken)} before the first tile"
        )
    at_once = 1 if client is None else max(client.nthreads().values(), default=1)
    return (request.memory_limit - taken) // at_once


class _Here:
    """Computes tiles in this process."""

    def __init__(self, inputs: Mapping[str, Volume], budget: int) -> None:
        self._inputs, self._budget = inputs, budget

    def measure(
        self, run: TiledRun, results: Sequence[Precomputed], layer: int, boxes: Iterable[Box]
    ) -> Iterable[tuple[Box, Any]]:
        """Measure boxes of the input of a layer."""
        return measure_here(FileReader(run, self._inputs))(run, results, layer, boxes)

    def compute(
        self, result: _PartialResult, results: Sequence[Precomputed], left: Mapping[int, Box]
    ) -> Iterator[int]:
        """Compute tiles; yield the number of each."""
        stream = Stream(result.run_, self._inputs, open_volume(str(result.partial), "r+"))
        if kernel_info().available:  # NumPy uses more memory than is counted
            set_memory_pool_limit(spare_bytes(result.run_, result.grid.tile, self._budget))
        for number, box in left.items():
            stream.compute(box)
            result.journal.add(number)
            yield number


class _OnCluster:
    """Computes tiles on a cluster, whose workers read, write and record them themselves."""

    def __init__(
        self, client: Any, model: Model, request: RunRequest, inputs: Mapping[str, Volume]
    ) -> None:
        self._client, self._remote = client, send_model(client, model, request)
        wanted = request.wanted
        self._name, self._threads = wanted[0] if wanted else None, worker_threads(request)
        self._inputs = {name: os.path.realpath(volume.path) for name, volume in inputs.items()}

    def measure(
        self, run: TiledRun, results: Sequence[Precomputed], layer: int, boxes: Iterable[Box]
    ) -> Iterable[tuple[Box, Any]]:
        """Measure boxes of the input of a layer."""
        files, all_boxes = self._files("", Journal(Path(), {})), list(boxes)
        arguments = self._remote, files, self._send(results), layer
        tasks = [submit(self._client, measure_box, *arguments, box) for box in all_boxes]
        # In order, since sums depend on the order.
        found = completed(self._client, tasks, in_order=True)
        yield from zip(all_boxes, map(result_of, found), strict=True)

    def compute(
        self, result: _PartialResult, results: Sequence[Precomputed], left: Mapping[int, Box]
    ) -> Iterator[int]:
        """Compute tiles; yield the number of each."""
        journal = Journal(result.journal.path.resolve(), result.journal.header)
        arguments = self._remote, self._files(str(result.partial), journal), self._send(results)
        tasks = [submit(self._client, compute_tile, *arguments, *one) for one in left.items()]
        yield from map(result_of, completed(self._client, tasks))

    def _files(self, output: str, journal: Journal) -> TiledFiles:
        return TiledFiles(
            self._inputs, os.path.realpath(output), self._name, journal, self._threads
        )

    def _send(self, results: Sequence[Precomputed]) -> Any:
        """Return a future of results, which may be large."""
        return submit(self._client, tuple, results)


class _ResumeRecord:
    """The record of complete results in the folder of the result, which --resume keeps."""

    def __init__(
        self, model: Model, request: RunRequest, inputs: Mapping[str, Volume], target: Path
    ) -> None:
        self.request, self.target = request, target
        self.partial = _beside(target, ".partial")
        self.run = describe_run(model, request, {})
        self.inputs = {name: _stamped(Path(volume.path)) for name, volume in inputs.items()}
        self._manifest = Manifest(target.parent, self.run)

    def is_complete(self) -> bool:
        """Whether the result exists, and is to be kept.

        Raises
        ------
        Mistake
            Another result exists.
        """
        exists, request = self.target.exists(), self.request
        if not (request.resume and exists) or (request.force and self.partial.exists()):
            return False
        reason = self._manifest.why_stale(self.inputs, {"": _metadata(self.target)})
        if reason is not None and not request.force:
            raise Mistake(f"{self.target} already exists, and {reason} (use --force to overwrite)")
        return reason is None

    def add(self) -> None:
        """Record the result, which has its final name next."""
        stamp = Stamp.of(_metadata(self.partial))
        assert stamp is not None, "it was written"
        self._manifest.add(self.inputs, _metadata(self.partial, self.target), stamp)
        self._manifest.save()

    def report(self) -> int:
        """Report a result that an earlier run has completed."""
        if not self.partial.exists():  # a killed run may have left its journal
            Journal(_beside(self.target, ".partial.tiles"), {}).remove()
            remove_volume(_beside(self.target, ".partial.old"))
        if self.request.as_json:
            shape = list(open_volume(str(self.target)).shape)
            document = {"output": str(self.target), "shape": shape, "tile": None, "tiles": 0}
            print_json(document | {"skipped": 0, "seconds": 0.0})
        elif not self.request.quiet:
            click.echo(f"{self.target}: complete since an earlier run")
        return EXIT_OK


class _PartialResult:
    """A partial result next to its final path, and the journal of its tiles."""

    def __init__(
        self,
        request: RunRequest,
        run: TiledRun,
        grid: Grid,
        inputs: dict[str, Volume],
        record: _ResumeRecord,
        passes: Sequence[tuple[int, ...]],
    ) -> None:
        self.request, self.run_, self.grid = request, run, grid
        self.record, self.target, self.partial = record, record.target, record.partial
        self.inputs = inputs
        header: dict[str, Any] = dict(record.run)
        header["inputs"] = {
            name: [os.path.realpath(inputs[name].path), stamp]
            for name, (_, stamp) in record.inputs.items()
        }
        header |= {"shape": grid.shape, "tile": grid.tile, "passes": passes}
        self.journal = Journal(_beside(self.target, ".partial.tiles"), header)

    def run(self, place: _Here | _OnCluster, results: Sequence[Precomputed]) -> int:
        """Compute the missing tiles."""
        began = time.perf_counter()
        done = self._begin()
        skipped = len(done)
        elements = 0
        left = {n: box for n, box in enumerate(self.grid.boxes()) if n not in done}
        with _progress(len(self.grid), self.request) as advance:
            advance(skipped, 0.0)
            for number in place.compute(self, results, left):
                elements += element_count(box_shape(left[number]))
                advance(1, elements / (time.perf_counter() - began))
        self._finish()
        self._report(skipped, time.perf_counter() - began, elements)
        return EXIT_OK

    def _begin(self) -> set[int]:
        """Create the partial result, or continue that of an interrupted run."""
        earlier = self.journal.read() if self.partial.exists() else None
        if earlier is not None and self.request.resume:
            header, done = earlier
            done &= set(range(len(self.grid)))
            if header == self.journal.header:
                remove_fragments(self.partial)
                self.journal.start(done, len(self.grid))
                return done
            changed = [
                key for key, value in self.journal.header.items() if header.get(key) != value
            ]
            raise Mistake(
                f"{self.partial} cannot be resumed: {', '.join(changed)} changed "
                "(use --force to start again)"
            )
        # A journal next to a new array would say that its tiles are complete.
        self.journal.remove()
        dtype = self.run_.dtype
        create_volume(self.partial, self.grid.shape, dtype, self.grid.tile)
        self.journal.start((), len(self.grid))
        return set()

    def _finish(self) -> None:
        self.record.add()
        replace_volume(self.partial, self.target)
        self.journal.remove()

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


def _metadata(path: Path, named: Path | None = None) -> Path:
    """Return the file that changes with an array: itself, or the metadata of a store.

    With `named`, the path is that of the array under this name.
    """
    name = next((n for n in ("zarr.json", ".zarray") if (path / n).exists()), "")
    return (named or path) / name


def _stamped(path: Path) -> tuple[Path, Stamp | None]:
    """Return an array of which a version is recorded."""
    return path, Stamp.of(_metadata(path))


@contextlib.contextmanager
def _progress(count: int, request: RunRequest) -> Iterator[Any]:
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
