"""Runs on a Dask cluster: tiles of an array, or the files of a pattern."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections import Counter
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deconv_ir.errors import ResourceError
from deconv_ir.hints import Hint
from deconv_ir.tiling.remote import ModelFile, RemoteModel, import_dask, memory_of_worker

from ..shared.common import STREAM, Mistake, note, raise_again

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.tiling.remote import WorkerMemory

    from .request import RunRequest

ADDRESS = "DASK_SCHEDULER_ADDRESS"
_RETRIES = 2
"""Number of retries of a task whose worker dies."""
_SILENT = logging.CRITICAL + 1


def wants_cluster(request: RunRequest) -> bool:
    """Whether the run goes to a cluster."""
    asked = (request.workers, request.scheduler, request.scheduler_file)
    return any(value is not None for value in asked) or bool(os.environ.get(ADDRESS))


def is_local(request: RunRequest) -> bool:
    """Whether all workers are processes of this machine, started for this run."""
    return request.workers is not None


def worker_threads(request: RunRequest) -> int | None:
    """Return the threads of a worker's kernels; None: all cores."""
    if request.threads is not None or request.workers is None:
        return request.threads
    from deconv_ir import get_threads

    return max(1, get_threads() // request.workers)


@contextlib.contextmanager
def connect(request: RunRequest) -> Iterator[Any]:
    """Yield a client of the cluster named by the options, or of a new one with N local workers."""
    distributed = import_dask("distributed")
    # Dask's messages about ending workers and connections are not for the user.
    import_dask().config.set({"logging.distributed": "critical"})
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(_SILENT)
    if request.workers is not None:
        if request.scheduler is not None or request.scheduler_file is not None:
            raise Mistake("--workers starts a cluster, --scheduler names one (use one of them)")
        with (
            _started_workers(distributed, request.workers) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    address = request.scheduler or os.environ.get(ADDRESS)
    where = {"scheduler_file": request.scheduler_file} if request.scheduler_file else {}
    try:
        client = distributed.Client(*([] if where else [address]), timeout="10s", **where)
    except (OSError, TimeoutError, ValueError) as error:
        shown = request.scheduler_file or address
        raise Mistake(f"no scheduler at {shown}: {error}") from error
    with client:
        if not client.nthreads():
            note(f"waiting for a worker to join the scheduler at {client.scheduler.address}")
            client.wait_for_workers(1)
        yield client


def tile_budget(client: Any) -> int:
    """Return the default memory of a tile on any worker, in bytes."""
    threads = client.nthreads()
    on_host: Counter[str | None] = Counter()
    for address, count in threads.items():
        on_host[urlsplit(address).hostname] += count
    memory: dict[str, WorkerMemory] = _answer(client.run, memory_of_worker)
    shares: list[int] = [
        min(m.of_host // on_host[urlsplit(w).hostname], m.of_worker // threads.get(w, 1))
        for w, m in memory.items()
    ]
    return min(shares)


@contextlib.contextmanager
def _started_workers(distributed: Any, count: int) -> Iterator[Any]:
    """Yield a cluster of local processes, which only this process ends.

    Ctrl-C in a terminal reaches all processes of a group.  The signal is blocked until the workers
    have started: the starting threads and the workers inherit the mask.
    """
    resource_tracker.ensure_running()  # its start would unblock the signal
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # the default port may be in use by another cluster
            scheduler_kwargs={"dashboard": False},
            silence_logs=_SILENT,
        ) as cluster:
            # A pending signal is delivered here, and the cluster is closed.
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            yield cluster
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def send_model(client: Any, model: Model, request: RunRequest) -> Any:
    """Return a future of the model: by path and digest if it is a file, else by its bytes."""
    given: Any = model
    if request.model != STREAM and request.layer is None and not request.op_attrs:
        overridden = request.in_shapes or request.op_kind or request.mb or request.dt
        plain = not (overridden or request.changes_model)
        if plain:
            from deconv_ir import load

            options = {
                "semantics": request.semantics,
                "accuracy": request.arithmetic,
                "limits": request.limits,
                "memory_limit": request.memory_limit,
            }
            weights = model.weights_file
            paths = [None if p is None else os.path.realpath(p) for p in (request.model, weights)]
            assert paths[0] is not None, "the model is a file"
            given = ModelFile.of(paths[0], paths[1], options, load)
    # A task, so that a replacement worker can run it again.
    return client.submit(RemoteModel, given, pure=False, retries=_RETRIES)


def submit(client: Any, function: Any, *arguments: Any) -> Any:
    """Submit a task that is retried if its worker dies."""
    return client.submit(function, *arguments, pure=False, retries=_RETRIES)


def completed(client: Any, futures: Any, *, in_order: bool = False) -> Iterator[Any]:
    """Yield futures as they complete; the remaining ones are cancelled if this ends early.

    With `in_order`, in the order of submission.
    """
    distributed = import_dask("distributed")
    pending = list(futures)
    try:
        for future in pending if in_order else distributed.as_completed(pending):
            raise_again()
            yield future
            # A fetched result is not computed again, even if its worker dies.
            future.release()
    except BaseException:
        # Without a connection, no scheduler can be notified.
        if client.status == "running":
            client.cancel(pending, force=True)
        raise


def result_of(future: Any) -> Any:
    """Return the result of a task.

    Raises
    ------
    ResourceError
        The workers that ran the task died.
    Mistake
        The cluster cannot be reached, or its workers lack a package.
    """
    return _answer(future.result)


def _answer(function: Any, *arguments: Any) -> Any:
    """Call a function that waits for a cluster."""
    distributed = import_dask("distributed")
    try:
        return function(*arguments)
    except distributed.KilledWorker as error:
        message = "the workers died, probably out of memory"
        raise ResourceError(message, hint=Hint.SMALLER_TILES()) from error
    except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
        hint = "use --resume to continue"
        raise Mistake(f"lost the connection to the scheduler ({hint})") from error
    except ImportError as error:
        message = f"a worker cannot import what it needs: {error}"
        raise Mistake(f"{message} (install the same deconv-ir there)") from error
