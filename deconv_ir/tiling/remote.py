"""A model on the workers of a Dask cluster, and the tasks that they run."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deconv_ir.errors import InputError, UnsupportedError, extra_hint
from deconv_ir.formats import npy
from deconv_ir.formats.volumes import Journal, Volume, open_volume
from deconv_ir.ir.boxes import Box
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.record import NamedTuple
from deconv_ir.tiling.stream import FileReader, Stream, default_budget
from deconv_ir.tiling.tiled_run import Read, TiledModel, TiledRun
from deconv_ir.tiling.two_pass import (
    Precomputed,
    add_up,
    measure_here,
    run_before,
    with_results,
)


def import_dask(name: str = "dask") -> Any:
    """Import a module of Dask.

    Raises
    ------
    UnsupportedError
        It is not installed.
    """
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        message = "Dask arrays and clusters require the extra 'cluster'"
        raise UnsupportedError(message, hint=extra_hint("cluster")) from None


class WorkerMemory(NamedTuple):
    """The bytes that tiles may take on a worker, and on its machine."""

    of_worker: int
    of_host: int


def memory_of_worker(dask_worker: Any) -> WorkerMemory:
    """Tell, on a worker, what tiles may take at a time; Dask gives the worker."""
    limit = dask_worker.memory_manager.memory_limit
    return WorkerMemory(default_budget() if limit is None else limit // 4, default_budget())


class ModelFile(NamedTuple):
    """A model by its files, which workers read themselves.

    Attributes
    ----------
    path, weights : str or None
    options : dict
        Keyword arguments of `load`.
    digest : str
        Of both files; a worker that finds others stops.
    """

    path: str
    weights: str | None
    options: dict[str, Any]
    digest: str

    @classmethod
    def of(cls, path: str, weights: str | None, options: dict[str, Any]) -> ModelFile:
        """Refer to files as they are now."""
        return cls(path, weights, options, _digest(path, weights))

    def load(self) -> Any:
        """Load the model.

        Raises
        ------
        InputError
            The files are others than those of the client.
        """
        import importlib

        if _digest(self.path, self.weights) != self.digest:
            raise InputError("the worker finds another model than the client", file=self.path)
        # The façade is above this package; a worker imports it by name.
        load = importlib.import_module("deconv_ir.loading").load
        return load(self.path, self.weights, warn=False, **self.options)


def _digest(path: str, weights: str | None) -> str:
    found = hashlib.sha256()
    for name in (path, weights):
        if name is not None:
            with Path(name).open("rb") as stream:
                found.update(hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()


class RemoteModel:
    """A model that is made once in each process that computes tiles with it.

    Parameters
    ----------
    model : TiledModel or ModelFile
        A model is pickled whole.
    """

    def __init__(self, model: TiledModel | ModelFile) -> None:
        self._given = model
        self._lock = threading.Lock()
        self._loaded: Any = None
        self._run: tuple[Any, TiledRun] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteModel, (self._given,)

    def __dask_tokenize__(self) -> Any:
        return id(self)  # another model may have equal arrays

    @property
    def model(self) -> Any:
        """The model."""
        with self._lock:
            if self._loaded is None:
                given = self._given
                self._loaded = given.load() if isinstance(given, ModelFile) else given
            return self._loaded

    def tiled(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        output: str | None,
        results: Sequence[Precomputed] = (),
        before: int | None = None,
    ) -> TiledRun:
        """Return what computes tiles, made once for arrays of these shapes.

        `results` are those of earlier passes.  Of the input of the layer `before`, if that is
        given.
        """
        model, key = self.model, (tuple(shapes.items()), output, tuple(results), before)
        with self._lock:
            if self._run is None or self._run[0] != key:
                run = with_results(model.tiled(shapes, output=output), results)
                self._run = key, run if before is None else run_before(run, before)
            return self._run[1]


class Job(NamedTuple):
    """What tasks on arrays compute boxes of.

    Attributes
    ----------
    shapes : dict
        Name of an input -> shape of the whole array.
    output : str or None
        The tensor that the model computes.
    before : int or None
        The layer whose first input is measured instead.
    """

    shapes: dict[str, tuple[int, ...]]
    output: str | None
    before: int | None = None


def compute_box(
    remote: RemoteModel,
    job: Job,
    results: Sequence[Precomputed],
    box: Box,
    arrays: Mapping[str, Array],
) -> Array:
    """Compute a box from the boxes of the inputs that it needs."""
    run = remote.tiled(job.shapes, job.output, results, job.before)
    return run.run(run.tile(box), _reader(run, arrays))


def measure_part(
    remote: RemoteModel,
    job: Job,
    results: Sequence[Precomputed],
    box: Box,
    arrays: Mapping[str, Array],
) -> Any:
    """Return what the statistic of a layer measures of a box of its first input."""
    run = remote.tiled(job.shapes, job.output, results, job.before)
    assert job.before is not None, "the layer is given"
    ((_, measured),) = measure_here(_reader(run, arrays))(run, results, job.before, [box])
    return measured


def precomputed(
    remote: RemoteModel,
    job: Job,
    results: Sequence[Precomputed],
    boxes: Sequence[Box],
    measured: Sequence[Any],
) -> Precomputed:
    """Return the result of a layer's statistic."""
    run = remote.tiled(job.shapes, job.output, results, job.before)
    assert job.before is not None, "the layer is given"
    return add_up(run, job.before, zip(boxes, measured, strict=True))


def _reader(run: TiledRun, arrays: Mapping[str, Array]) -> Read:
    """Return what reads the boxes of a tile, which are there."""
    import numpy as np

    def read(name: str, box: Box) -> Array:
        return np.ascontiguousarray(arrays[name]).astype(run.dtype_of(name), copy=False)

    return read


class TiledFiles(NamedTuple):
    """Arrays in files that tiles are computed from and written to.

    Attributes
    ----------
    inputs : dict
        Name of an input -> path.
    output : str
        Path of the partial result.
    name : str or None
        The tensor that is computed.
    journal : Journal
        Of the tiles that are complete.
    threads : int or None
        Threads of a worker's kernels.
    """

    inputs: dict[str, str]
    output: str
    name: str | None
    journal: Journal
    threads: int | None

    def open(self) -> tuple[dict[str, Volume], dict[str, tuple[int, ...]]]:
        """Open the inputs; return them, and their shapes."""
        _set_threads(self.threads)
        inputs = {name: open_volume(path) for name, path in self.inputs.items()}
        return inputs, {name: volume.shape for name, volume in inputs.items()}


def compute_tile(
    remote: RemoteModel,
    files: TiledFiles,
    results: Sequence[Precomputed],
    number: int,
    box: Box,
) -> int:
    """Compute a tile from files to a file, unless it already exists; return its number.

    A worker that dies after it has written a tile leaves it in the journal, so that the task
    that is run in its place does not write it again.

    Raises
    ------
    InputError
        The run was given up: there is no journal, or that of another run.
    """
    if files.journal.has(number):
        return number
    inputs, shapes = files.open()
    output = open_volume(files.output, "r+")
    stream = Stream(remote.tiled(shapes, files.name, results), inputs, output)
    found = stream.result(box)
    files.journal.has(number)  # or it is given up
    output.write(box, found)
    files.journal.add(number)
    return number


def measure_box(
    remote: RemoteModel, files: TiledFiles, results: Sequence[Precomputed], layer: int, box: Box
) -> Any:
    """Return what the statistic of a layer measures of a box of its first input."""
    inputs, shapes = files.open()
    run = remote.tiled(shapes, files.name, results, layer)
    ((_, measured),) = measure_here(FileReader(run, inputs))(run, results, layer, [box])
    return measured


def compute_file(
    remote: RemoteModel,
    files: Mapping[str, str],
    fixed: Mapping[str, Array],
    targets: Mapping[str, str],
    options: Mapping[str, Any],
    threads: int | None,
    since: int | None = None,
) -> dict[str, tuple[int, int]]:
    """Run a model on the arrays of some files, and write its outputs.

    Outputs that were written after `since`, in nanoseconds, are those of a worker that died
    before it could say so: they are kept.

    Returns
    -------
    dict
        Output -> size and time of the file that was written.
    """
    found = {name: Path(path).stat() for name, path in targets.items() if Path(path).exists()}
    if since is not None and len(found) == len(targets):
        stamps = {name: (file.st_size, file.st_mtime_ns) for name, file in found.items()}
        if all(time >= since for _, time in stamps.values()):
            return stamps
    _set_threads(threads)
    arrays = {**fixed, **{name: npy.read(path) for name, path in files.items()}}
    results = remote.model.run(arrays, **options)
    written = {}
    for name, target in targets.items():
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        written[name] = npy.write(results[name], path)
    return written


def _set_threads(threads: int | None) -> None:
    from deconv_ir.kernels import set_threads

    if threads is not None:
        set_threads(threads)
