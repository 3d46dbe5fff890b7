"""A model on the workers of a Dask cluster, and the tasks that they run."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.errors import InputError, UnsupportedError
from deconv_ir.formats import npy
from deconv_ir.formats.images import read_input
from deconv_ir.formats.volumes import Journal, Volume, open_volume
from deconv_ir.hints import Hint
from deconv_ir.ir.boxes import Box
from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels import set_threads
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
        Dask is not installed.
    """
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        message = "Dask arrays and clusters require the extra 'cluster'"
        raise UnsupportedError(message, hint=Hint.INSTALL_EXTRA("cluster")) from None


class WorkerMemory(NamedTuple):
    """The bytes that tiles may use on a worker, and on its machine."""

    of_worker: int
    of_host: int


def memory_of_worker(dask_worker: Any) -> WorkerMemory:
    """Return, on a worker, the memory for tiles; Dask provides the worker."""
    limit = dask_worker.memory_manager.memory_limit
    return WorkerMemory(default_budget() if limit is None else limit // 4, default_budget())


class ModelFile(NamedTuple):
    """A model given by its files, which workers read themselves.

    Attributes
    ----------
    path, weights : str or None
    options : dict
        Keyword arguments of `load`.
    digest : str
        Digest of both files; a worker with other files raises an error.
    loader : callable
        Loads a model from both paths and the options, as `load` does; pickled by its name.
    """

    path: str
    weights: str | None
    options: dict[str, Any]
    digest: str
    loader: Callable[..., Any]

    @classmethod
    def of(
        cls, path: str, weights: str | None, options: dict[str, Any], loader: Callable[..., Any]
    ) -> ModelFile:
        """Refer to the current contents of files."""
        return cls(path, weights, options, _digest(path, weights), loader)

    def load(self) -> Any:
        """Load the model.

        Raises
        ------
        InputError
            The files differ from those of the client.
        """
        if _digest(self.path, self.weights) != self.digest:
            raise InputError("the worker finds another model than the client", file=self.path)
        return self.loader(self.path, self.weights, warn=False, **self.options)


def _digest(path: str, weights: str | None) -> str:
    found = hashlib.sha256()
    for name in (path, weights):
        if name is not None:
            with Path(name).open("rb") as stream:
                found.update(hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()


class RemoteModel:
    """A model that is loaded once in each process that computes tiles with it.

    Parameters
    ----------
    model : TiledModel or ModelFile
        A TiledModel is pickled as a whole.
    """

    def __init__(self, model: TiledModel | ModelFile) -> None:
        self._given = model
        self._lock = threading.Lock()
        self._loaded: Any = None
        self._run: tuple[Any, TiledRun] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteModel, (self._given,)

    def __dask_tokenize__(self) -> Any:
        return id(self)  # models are compared by identity

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
        """Return the TiledRun for arrays of these shapes, made once.

        `results` are those of earlier passes.  With `before`, the run computes the input of that
        layer.
        """
        model, key = self.model, (tuple(shapes.items()), output, tuple(results), before)
        with self._lock:
            if self._run is None or self._run[0] != key:
                run = with_results(model.tiled(shapes, output=output), results)
                self._run = key, run if before is None else run_before(run, before)
            return self._run[1]


class RemoteRun(NamedTuple):
    """The run whose boxes tasks on arrays compute.

    Attributes
    ----------
    shapes : dict
        Name of an input -> shape of the whole array.
    output : str or None
        Name of the tensor to compute.
    before : int or None
        Index of the layer whose first input is measured instead.
    """

    shapes: dict[str, tuple[int, ...]]
    output: str | None
    before: int | None = None


def compute_box(
    remote: RemoteModel,
    job: RemoteRun,
    results: Sequence[Precomputed],
    box: Box,
    arrays: Mapping[str, Array],
) -> Array:
    """Compute a box from the boxes of the inputs that it needs."""
    run = remote.tiled(job.shapes, job.output, results, job.before)
    return run.run(run.tile(box), _reader(run, arrays))


def measure_part(
    remote: RemoteModel,
    job: RemoteRun,
    results: Sequence[Precomputed],
    box: Box,
    arrays: Mapping[str, Array],
) -> Any:
    """Return the contribution of a box of a layer's first input to its statistic."""
    run = remote.tiled(job.shapes, job.output, results, job.before)
    assert job.before is not None, "the layer is given"
    ((_, measured),) = measure_here(_reader(run, arrays))(run, results, job.before, [box])
    return measured


def precomputed(
    remote: RemoteModel,
    job: RemoteRun,
    results: Sequence[Precomputed],
    boxes: Sequence[Box],
    measured: Sequence[Any],
) -> Precomputed:
    """Return the result of a layer's statistic."""
    run = remote.tiled(job.shapes, job.output, results, job.before)
    assert job.before is not None, "the layer is given"
    return add_up(run, job.before, zip(boxes, measured, strict=True))


def _reader(run: TiledRun, arrays: Mapping[str, Array]) -> Read:
    """Return a reader of a tile's boxes, which are in memory."""

    def read(name: str, box: Box) -> Array:
        return np.ascontiguousarray(arrays[name]).astype(run.dtype_of(name), copy=False)

    return read


class TiledFiles(NamedTuple):
    """The input and output files of tiles.

    Attributes
    ----------
    inputs : dict
        Name of an input -> path.
    output : str
        Path of the partial result.
    name : str or None
        Name of the tensor that is computed.
    journal : Journal
        The journal of complete tiles.
    threads : int or None
        Threads of a worker's kernels.
    """

    inputs: dict[str, str]
    output: str
    name: str | None
    journal: Journal
    threads: int | None

    def open(self) -> tuple[dict[str, Volume], dict[str, tuple[int, ...]]]:
        """Open the inputs; return the volumes and their shapes."""
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

    A tile that a worker has written before it died is in the journal, so that the repeated task
    does not write it again.

    Raises
    ------
    InputError
        The run was abandoned: the journal is missing, or belongs to another run.
    """
    if files.journal.has(number):
        return number
    inputs, shapes = files.open()
    output = open_volume(files.output, "r+")
    stream = Stream(remote.tiled(shapes, files.name, results), inputs, output)
    found = stream.result(box)
    files.journal.has(number)  # raises if the run was abandoned
    output.write(box, found)
    files.journal.add(number)
    return number


def measure_box(
    remote: RemoteModel, files: TiledFiles, results: Sequence[Precomputed], layer: int, box: Box
) -> Any:
    """Return the contribution of a box of a layer's first input to its statistic."""
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

    Outputs written after `since`, in nanoseconds, come from a worker that died before it could
    report them: they are kept.

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
    model = remote.model
    read = {name: read_input(model.graph, model.inputs, name, path) for name, path in files.items()}
    results = model.run({**fixed, **read}, **options)
    written = {}
    for name, target in targets.items():
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        written[name] = npy.write(results[name], path)
    return written


def _set_threads(threads: int | None) -> None:
    if threads is not None:
        set_threads(threads)
