"""The record of a batch run, with the origin of each output in a folder, for --resume."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deconv_ir.formats.files import read_regular, replace_file
from deconv_ir.version import __version__

from ..shared.changes import constant_files
from ..shared.common import STREAM, warn
from .request import OPTION_NAMES

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import Array

    from .request import RunRequest

NAME = ".deconv-run.json"
FORMAT = 1
_MAX_BYTES = 1 << 28
_PAUSE = 1.0
"""Seconds between two writes during a run."""

CHANGE_NO_RESULT = frozenset(
    {"model", "weights", "inputs", "output", "expect", "rtol", "atol", "force", "resume"}
    | {
        "no_output",
        "dump",
        "dump_all",
        "save_inputs",
        "repeat",
        "seconds",
        "warmup",
        "shapes",
        "random_inputs",
        "info",
    }
    | {"fail_fast", "threads", "memory_limit", "tile", "limits", "explain_plan", "profile"}
    | {"as_json", "save_xml", "save_onednn", "workers", "scheduler", "scheduler_file"}
    | {"verbose", "quiet", "strict", "constants"}
)
"""Options that do not affect results, or that are recorded otherwise.

All other options count: results are computed again with a new option until it is listed here.
"""


class Stamp(NamedTuple):
    """Size of a file in bytes, and its modification time in nanoseconds."""

    size: int
    time: int

    @classmethod
    def of(cls, path: Path) -> Stamp | None:
        """Return the stamp of a file; None if it cannot be read."""
        try:
            found = path.stat()
        except OSError:
            return None
        return cls(found.st_size, found.st_mtime_ns)


Stamped = Mapping[str, tuple[Path, Stamp | None]]
"""Name of an input -> its file, and its stamp at the time of reading."""


def describe_run(model: Model, request: RunRequest, fixed: Mapping[str, Array]) -> dict[str, Any]:
    """Describe the common dependencies of all results of a run: model, options, shared inputs."""
    weights = model.weights_file
    return {
        "version": __version__,
        "model": _digest_graph(model) if request.model == STREAM else _digest_file(request.model),
        "weights": None if weights is None else _digest_file(weights),
        "constants": {
            name: _digest_file(path) for name, path in constant_files(request.constants).items()
        },
        "options": {
            name: value
            for name, value in request.asdict().items()
            if name not in CHANGE_NO_RESULT
            and value is not None
            and value is not False
            and value != ()
        },
        "inputs": {name: _digest_array(array) for name, array in fixed.items()},
    }


class Manifest:
    """The record of the outputs in one folder; `run` is the result of `describe_run`.

    Several processes may write to one folder: each adds its outputs to those of the others.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self.folder = folder
        # Converted through JSON, so that both compare equal.
        self._run: dict[str, Any] = json.loads(json.dumps(run))
        text = json.dumps(self._run, sort_keys=True)
        self._id = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._new: dict[str, dict[str, Any]] = {}
        self._runs, self._files = self._read(quiet=False)
        self._next = 0.0

    def why_stale(self, inputs: Stamped, targets: Mapping[str, Path]) -> str | None:
        """Return the reason why recorded outputs are not those of this run; None if they are."""
        given = json.loads(json.dumps(self._stamped(inputs)))
        for target in targets.values():
            entry = self._files.get(self._key(target))
            if entry is None:
                return "no earlier run has recorded it"
            if entry["run"] != self._id:
                return self._what_differs(self._runs[entry["run"]])
            if entry["inputs"] != given:
                return "an input has changed"
            stamp = Stamp.of(target)
            if stamp is None or entry["output"] != list(stamp):
                return "another program has changed it"
        return None

    def add(self, inputs: Stamped, target: Path, output: Stamp) -> None:
        """Record an output that was written."""
        entry = {"run": self._id, "inputs": self._stamped(inputs), "output": output}
        self._new[self._key(target)] = entry
        if time.monotonic() >= self._next:
            began = time.monotonic()
            self.save()
            # A long record takes longer to write: limit writing to a twentieth of the time.
            self._next = time.monotonic() + max(_PAUSE, 20 * (time.monotonic() - began))

    def save(self) -> None:
        """Write the record, including entries that other processes have added."""
        if not self._new:
            return
        try:
            with self._locked():
                runs, files = self._read(quiet=True)
                files |= self._new
                runs[self._id] = self._run
                used = {entry["run"] for entry in files.values()}
                document = {
                    "format": FORMAT,
                    "runs": {key: run for key, run in runs.items() if key in used},
                    "files": files,
                }
                with replace_file(self.folder / NAME, durable=False) as stream:
                    stream.write(json.dumps(document, separators=(",", ":")).encode())
        except OSError as error:
            warn(
                f"{self.folder / NAME}: cannot write the record: {error.strerror or error} "
                "(--resume will compute these results again)"
            )

    def _what_differs(self, other: Mapping[str, Any]) -> str:
        own = self._run
        if other.get("model") != own["model"]:
            return "the model has changed"
        if other.get("weights") != own["weights"]:
            return "the weights have changed"
        if other.get("constants", {}) != own["constants"]:
            return "a constant of --set has changed"
        before, now = other.get("options"), own["options"]
        if before != now:
            before = before if isinstance(before, dict) else {}
            names = sorted(n for n in {*before, *now} if before.get(n) != now.get(n))
            listed = ", ".join(f"--{OPTION_NAMES.get(n, n.replace('_', '-'))}" for n in names)
            return f"other options were given ({listed})"
        if other.get("inputs") != own["inputs"]:
            return "an input of all runs has changed"
        return f"version {other.get('version')} of deconv-ir computed it"

    def _stamped(self, inputs: Stamped) -> dict[str, Any]:
        return {
            name: [os.path.relpath(path, self.folder), *(stamp or ())]
            for name, (path, stamp) in inputs.items()
        }

    def _key(self, target: Path) -> str:
        return os.path.relpath(target, self.folder)

    def _read(self, *, quiet: bool) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Read runs and files; a damaged record is treated as empty."""
        path = self.folder / NAME
        try:
            found = json.loads(read_regular(path, _MAX_BYTES))
            if found["format"] != FORMAT:
                raise ValueError(f"format {found['format']} is unknown")
            runs, files = found["runs"], found["files"]
            if not all(isinstance(run, dict) for run in runs.values()):
                raise ValueError("a run is not described")
            if not all(entry["run"] in runs for entry in files.values()):
                raise ValueError("a run is missing")
            for entry in files.values():
                entry["inputs"], entry["output"]
        except FileNotFoundError:
            return {}, {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if not quiet:
                warn(f"{path}: the record is damaged and is not used: {error}")
            return {}, {}
        return runs, files

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the record, so that other processes do not read it before this one has written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(ImportError, OSError):  # not on some network file systems
                import fcntl

                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _digest_file(path: str) -> str | None:
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _digest_graph(model: Model) -> str:
    """Return the digest of a model from a pipe, whose bytes are no longer available."""
    import pickle

    return hashlib.sha256(pickle.dumps((model.graph.layers, model.graph.edges))).hexdigest()


def _digest_array(array: Array) -> str:
    import numpy as np

    digest = hashlib.sha256(f"{array.dtype} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
