"""Run hostile files, mostly IRs, in child processes with bounded time and memory.

An IR goes through lint, load, inference and run.

Each of them must give a result, of the shapes and types that were inferred, or
a `DeconvError`; a traceback, a dead process, more than `SECONDS` of CPU time (or
five times as long without a word) or more memory than `MEMORY` is a failure,
and its files are kept.
"""

from __future__ import annotations

import abc
import argparse
import functools
import json
import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostile.seeds import Seed

SECONDS = 2.0
MEMORY = 512 << 20
MAX_INPUT_ELEMENTS = 1 << 14
BATCH = 500


class Maker(abc.ABC):
    """Generate files, the same ones for the same numbers, and try them."""

    @abc.abstractmethod
    def files(self, seed: int, number: int) -> Mapping[str, bytes]:
        """Return the files with a number, by name."""

    @abc.abstractmethod
    def attempt(self, folder: Path, seed: int, number: int) -> str:
        """Load, check and run these files; return the last step that was reached."""


class IRMaker(Maker):
    """Generate IRs; the same ones for the same numbers."""

    def files(self, seed: int, number: int) -> Mapping[str, bytes]:
        """Return the two files of an IR."""
        made = self.make(seed, number)
        return {"model.xml": made.xml, "model.bin": made.weights}

    def attempt(self, folder: Path, seed: int, number: int) -> str:
        """Lint, load and run the IR."""
        return try_one(folder / "model.xml", functools.partial(self.array, seed, number))

    @abc.abstractmethod
    def make(self, seed: int, number: int) -> Seed:
        """Return the IR with a number."""

    def array(self, seed: int, number: int, port: Any, index: int) -> Any:
        """Return the array for input `index` of the IR with a number.

        Raises
        ------
        DeconvError
            The input cannot be given an array.
        """
        from deconv_ir.arrays.fitting import random_array

        return random_array(port.shape, port.element_type, 0, index)


@dataclass
class Figures:
    """Counts of the results of a number of IRs."""

    tried: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    slowest: float = 0.0
    slowest_number: int = -1
    memory: int = 0
    """Largest resident size of a child, in bytes."""


def try_one(path: Path, feed: Callable[[Any, int], Any]) -> str:
    """Lint, load, infer and run one IR; return the last step that was reached.

    Parameters
    ----------
    path : Path
    feed : callable
        Takes an input's port and its position, returns an array.

    Raises
    ------
    Exception
        Any other than `DeconvError`: a failure.
    """
    import deconv_ir

    for finding in deconv_ir.lint(path, severity="info", deep=True):
        require_one_line(str(finding))
    try:
        model = deconv_ir.load(path, warn=False)
    except deconv_ir.DeconvError as error:
        require_one_line(str(error))
        return f"refused: {error.rule or type(error).__name__}"
    inputs = {}
    for index, (name, port) in enumerate(model.inputs.items()):
        try:
            if _elements(port.shape) > MAX_INPUT_ELEMENTS:
                return "loaded, inputs too large to feed"
            inputs[name] = feed(port, index)
        except (deconv_ir.DeconvError, TypeError) as error:
            return f"loaded, no input: {type(error).__name__}"
    try:
        inferred = model.infer_shapes({name: a.shape for name, a in inputs.items()})
    except deconv_ir.DeconvError as error:
        require_one_line(str(error))
        return f"inference refused: {error.rule or type(error).__name__}"
    try:
        results = model.run(inputs)
    except deconv_ir.DeconvError as error:
        require_one_line(str(error))
        return f"run refused: {error.rule or type(error).__name__}"
    _as_inferred(model, inferred, results)
    return "ran"


def _as_inferred(model: Any, inferred: Any, results: Any) -> None:
    """Require results to have the inferred shapes and element types."""
    from deconv_ir.ir.shapes import compatible

    for name, array in results.items():
        if not compatible(array.shape, inferred[name]):
            raise AssertionError(f"output {name!r}: {array.shape}, inferred {inferred[name]}")
        element_type = model.outputs[name].element_type
        if element_type is not None and array.dtype != element_type.numpy():
            raise AssertionError(f"output {name!r}: {array.dtype}, inferred {element_type}")


def require_one_line(text: str) -> None:
    """Require a message without line breaks, of bounded length."""
    if "\n" in text or len(text) > 4000:
        raise AssertionError(f"a message of {len(text)} characters: {text[:500]!r}")


def _elements(shape: Any) -> int:
    count = 1
    for dim in shape or ():
        count *= max(1, dim if isinstance(dim, int) else dim.min)
    return count


class TooSlowError(BaseException):
    """The time limit of one IR is exceeded."""


def _alarm(*_: object) -> None:
    raise TooSlowError


def _child(maker: Maker, seed: int, numbers: Sequence[int], folder: Path, report: int) -> None:
    """Try some IRs, and write a line of JSON before and after each one."""
    signal.signal(signal.SIGPROF, _alarm)
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        for name, data in maker.files(seed, number).items():
            (folder / name).write_bytes(data)
        _say(report, {"number": number})
        started = time.process_time()
        detail = ""
        # CPU time, which does not depend on other processes.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            outcome = maker.attempt(folder, seed, number)
        except TooSlowError:
            outcome, detail = "HANG", traceback.format_exc(limit=-12)
        except BaseException as error:
            outcome, detail = f"TRACEBACK {type(error).__name__}", traceback.format_exc(limit=-12)
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        line = {"outcome": outcome, "detail": detail, "seconds": seconds, "memory": peak}
        _say(report, line)


def _say(report: int, line: dict[str, Any]) -> None:
    data = (json.dumps(line) + "\n").encode()
    while data:
        data = data[os.write(report, data) :]


def run_batch(maker: Maker, seed: int, numbers: Sequence[int], figures: Figures) -> None:
    """Try some IRs in child processes; if one dies, a new one continues behind its IR."""
    remaining = list(numbers)
    while remaining:
        with tempfile.TemporaryDirectory(prefix="deconv-ir-hostile-") as folder:
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(read)
                try:
                    _child(maker, seed, remaining, Path(folder), write)
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(0)
            os.close(write)
            done, current = _listen(pid, read, seed, figures)
            os.close(read)
            _, status = os.waitpid(pid, 0)
        if current is not None:  # the child died, or was killed, while it tried this IR
            outcome = f"DEAD signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "DEAD"
            _count(figures, seed, current, {"outcome": outcome, "seconds": 0.0, "memory": 0})
            done += 1
        elif not done:
            raise RuntimeError(f"the child ended before number {remaining[0]}: status {status}")
        remaining = remaining[done:]


def _listen(pid: int, read: int, seed: int, figures: Figures) -> tuple[int, int | None]:
    """Read the output of a child until it ends; kill a child that hangs in C code."""
    import select

    buffer = b""
    done = 0
    current: int | None = None
    while True:
        ready, _, _ = select.select([read], [], [], 5 * SECONDS)
        if not ready:
            os.kill(pid, signal.SIGKILL)
        chunk = os.read(read, 1 << 16)
        if not chunk:
            return done, current
        *lines, buffer = (buffer + chunk).split(b"\n")
        for raw in lines:
            line = json.loads(raw)
            if "number" in line:
                current = line["number"]
            else:
                assert current is not None
                _count(figures, seed, current, line)
                done += 1
                current = None


def _count(figures: Figures, seed: int, number: int, line: dict[str, Any]) -> None:
    figures.tried += 1
    figures.outcomes[line["outcome"]] += 1
    if line["outcome"].isupper() or line["outcome"].startswith(("HANG", "TRACEBACK", "DEAD")):
        figures.failures.append({"seed": seed, "number": number, **line})
    if line["seconds"] > figures.slowest:
        figures.slowest, figures.slowest_number = line["seconds"], number
    figures.memory = max(figures.memory, line["memory"])


def try_many(maker: Maker, seed: int, first: int, count: int) -> Figures:
    """Try the IRs of these numbers."""
    import numpy  # noqa: F401 - the children inherit it
    import scipy.special  # noqa: F401

    import deconv_ir

    assert deconv_ir.lint
    figures = Figures()
    for start in range(first, first + count, BATCH):
        numbers = range(start, min(start + BATCH, first + count))
        run_batch(maker, seed, numbers, figures)
    return figures


def main(make_maker: Callable[[], Maker], description: str | None) -> int:
    """Try many IRs, and print the figures; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files of failures")
    parser.add_argument("--show", type=int, default=20, help="how many failures to show")
    options = parser.parse_args()
    maker = make_maker()
    figures = try_many(maker, options.seed, options.first, options.count)
    for failure in figures.failures[: options.show]:
        print(f"FAILED seed {failure['seed']} number {failure['number']}: {failure['outcome']}")
        print(failure.get("detail", ""))
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for name, data in maker.files(failure["seed"], failure["number"]).items():
                (options.keep / f"{failure['number']}{Path(name).suffix}").write_bytes(data)
    for outcome, count in figures.outcomes.most_common():
        print(f"{count:8} {outcome}")
    print(
        f"tried {figures.tried}, failures {len(figures.failures)}, "
        f"slowest {figures.slowest * 1000:.0f} ms (number {figures.slowest_number}), "
        f"largest resident memory {figures.memory / 2**20:.0f} MiB"
    )
    return 1 if figures.failures else 0
