"""Many inputs: a model run on each of many files, or on batches of them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.errors import DeconvError, one_line
from deconv_ir.formats import npy
from deconv_ir.formats.dumps import SUFFIX, name_files
from deconv_ir.ir.shapes import format_shape
from deconv_ir.tiling.remote import compute_file

from ..shared.common import (
    EXIT_DIFFERS,
    EXIT_MISTAKE,
    EXIT_OK,
    STREAM,
    Mistake,
    as_line,
    note,
    report_error,
)
from ..shared.inputs import gather_inputs, pair, read_input, stands_for_many
from ..shared.options import SEVERAL
from ..shared.shapes import input_shapes
from .cluster import (
    completed,
    connect,
    is_local,
    result_of,
    send_model,
    submit,
    wants_cluster,
    worker_threads,
)
from .compare import compare_files
from .items import Item, Outcome, run_batch
from .manifest import Manifest, Stamp, Stamped, describe_run
from .models import guard_run, report_findings
from .patterns import find, pair_references, show
from .profiles import start_profiles, write_trace
from .report import latency_of, report_files
from .resources import limit_threads
from .single import repeat

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.execute.profile import Profile
    from deconv_ir.ir.dtypes import Array

    from .profiles import RunProfiles
    from .request import RunRequest


class StopError(Exception):
    """Raised if a file failed and --fail-fast is given."""


def run_many(model: Model, request: RunRequest) -> int:
    """Run the model on every file, continue after failures, and report; return the exit code."""
    started = time.perf_counter()
    given = pair("--input", request.inputs, list(model.inputs))
    many = {name: text for name, text in given.items() if stands_for_many(text)}
    fixed_files = {name: path for name, path in given.items() if name not in many}
    missing = [name for name in model.inputs if name not in given]
    several = next((text for text in many.values() if SEVERAL in text), None)
    if missing and several is not None and request.random_inputs is None:
        raise Mistake(
            f"--input {show(several)} are runs of one input, no array for input "
            f"{', '.join(map(repr, missing))} (each input has an --input of its own)"
        )
    items = _items(many, model.output_names(request.wanted), request)
    _require_batch(model, request, items)
    _protect(model, request, items, fixed_files)
    fixed = gather_inputs(
        model,
        [f"{name}={path}" for name, path in fixed_files.items()],
        request.random_inputs,
        input_shapes(model, request.shapes),
        besides=many,
    )
    manifest, skipped = _resume(model, request, items, fixed)
    profiles = start_profiles(request)
    with limit_threads(request.threads), _progress(len(items), request) as progress:
        runner = _Runner(model, request, fixed, profiles, manifest, progress)
        try:
            outcomes = runner.run(items, skipped)
        finally:
            if manifest is not None:
                manifest.save()
    latency = latency_of(runner.seconds, runner.cold, request)
    report_files(outcomes, request, time.perf_counter() - started, latency)
    if profiles is not None and not request.as_json:
        from .tables import print_profile

        print_profile(profiles, request.threads)
    write_trace(profiles, request)
    statuses = {outcome.status for outcome in outcomes}
    if "failed" in statuses:
        return EXIT_MISTAKE
    return EXIT_DIFFERS if "differs" in statuses else EXIT_OK


def _require_batch(model: Model, request: RunRequest, items: Sequence[Item]) -> None:
    """Require that the model takes the files of a batch together."""
    if request.batch is None:
        return
    together = min(request.batch or len(items), len(items))
    for name in items[0].files:
        shape = model.inputs[name].shape
        if shape and isinstance(shape[0], int) and shape[0] < together:
            other = ",".join(["?", *map(str, shape[1:])])
            raise Mistake(
                f"--batch: {together} files are one run, but input {name!r} takes shape "
                f"{format_shape(shape)}, a batch of {shape[0]} (use --shape {name}={other}, which "
                "reshapes the model, or run without --batch)"
            )


def _items(many: Mapping[str, str], outputs: Sequence[str], request: RunRequest) -> list[Item]:
    """Find the files, in order, their references, and the paths of their outputs."""
    folder = _output_folder(request, show(next(iter(many.values()))))
    found = {name: find("--input", text) for name, text in many.items()}
    if len({len(files) for files in found.values()}) > 1:
        listed = ", ".join(f"{show(many[n])!r} finds {len(files)}" for n, files in found.items())
        raise Mistake(f"all inputs must have the same number of files: {listed}")
    stems = list(next(iter(found.values())))
    references = pair_references(request.expect, outputs, stems)
    labels = (
        [""]
        if len(outputs) == 1
        else [f".{entry.file.removesuffix(SUFFIX)}" for entry in name_files(outputs)]
    )
    items: list[Item] = []
    taken: dict[Path, Path] = {}
    rows = zip(*(files.values() for files in found.values()), strict=True)
    for stem, row, expected in zip(stems, rows, references, strict=True):
        targets = {}
        if folder is not None:
            targets = {
                output: folder / stem.with_name(f"{stem.name}{label}.npy")
                for output, label in zip(outputs, labels, strict=True)
            }
        for target in targets.values():
            if taken.setdefault(target, row[0]) != row[0]:
                raise Mistake(f"{taken[target]} and {row[0]} would have the same output {target}")
        files = dict(zip(found, row, strict=True))
        items.append(Item(len(items), files, targets, expected))
    existing = [t for item in items for t in item.targets.values() if t.exists()]
    if existing and not request.force and not request.resume:
        more = f" (and {len(existing) - 1} more)" if len(existing) > 1 else ""
        raise Mistake(
            f"{existing[0]}{more} already exists "
            "(use --force to overwrite, --resume to compute only the missing ones)"
        )
    return items


def _output_folder(request: RunRequest, shown: str) -> Path | None:
    """Return the folder of the outputs; None if they are only compared."""
    output = request.output
    if request.no_output or (output is None and request.expect):
        if request.resume:
            raise Mistake("--resume requires --output DIR, the folder of the results so far")
        return None
    if output is None or output == STREAM:
        raise Mistake(f"--input {shown} stands for many files (name a folder with --output DIR)")
    folder = Path(output)
    if folder.is_dir():
        return folder
    if folder.exists() or (folder.suffix in (".npy", ".npz") and not output.endswith("/")):
        raise Mistake(
            f"--output {output} is one file, --input {shown} stands for many (name a folder)"
        )
    return folder


def _protect(
    model: Model, request: RunRequest, items: Sequence[Item], fixed: Mapping[str, str]
) -> None:
    """Require that outputs do not overwrite the model, its weights, an input or a reference."""
    read = [(f"input {name!r}", Path(file)) for name, file in fixed.items()]
    for item in items:
        read += [(f"the input {path}", path) for path in item.files.values()]
        read += [(f"the reference {path}", path) for path in item.references.values()]
    guard = guard_run(model, request, read)
    if request.profile:
        guard.allow("--profile", request.profile)
    for item in items:
        for target in item.targets.values():
            guard.allow("--output", target)


def _resume(
    model: Model, request: RunRequest, items: Sequence[Item], fixed: Mapping[str, Array]
) -> tuple[Manifest | None, set[int]]:
    """Open the record of the output folder; return the items that --resume may skip."""
    if not items[0].targets:
        return None, set()
    assert request.output is not None, "without it there are no targets"
    manifest = Manifest(Path(request.output), describe_run(model, request, fixed))
    skipped: set[int] = set()
    stale: dict[str, list[Item]] = {}
    for item in items if request.resume else ():
        if not all(npy.is_whole(target) for target in item.targets.values()):
            continue
        reason = manifest.why_stale(item.stamped(), item.targets)
        if reason is None:
            skipped.add(item.number)
        else:
            stale.setdefault(reason, []).append(item)
    for reason, redone in stale.items():
        first = next(iter(redone[0].targets.values()))
        more = f" (and {len(redone) - 1} more)" if len(redone) > 1 else ""
        note(f"{first}{more} will be computed again: {reason}")
    return manifest, skipped


class _Progress:
    """Prints messages, and shows a progress bar on a terminal."""

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar

    def advance(self) -> None:
        if self._bar is not None:
            self._bar.update(1)

    def say(self, report: Callable[[str], None], text: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            click.echo("\r\x1b[K", nl=False, err=True)
        report(text)
        if self._bar is not None:
            self._bar.render_progress()


@contextlib.contextmanager
def _progress(count: int, request: RunRequest) -> Iterator[_Progress]:
    """Show a progress bar, on a terminal only."""
    if request.quiet or request.as_json or not sys.stderr.isatty():
        yield _Progress()
        return
    with click.progressbar(length=count, file=sys.stderr, show_pos=True) as bar:
        yield _Progress(bar)


class _Runner:
    """Runs items, one by one or in batches."""

    def __init__(
        self,
        model: Model,
        request: RunRequest,
        fixed: Mapping[str, Array],
        profiles: RunProfiles | None,
        manifest: Manifest | None,
        progress: _Progress,
    ) -> None:
        self.model = model
        self.request = request
        self.fixed = fixed
        self.profiles = profiles
        self.manifest = manifest
        self.progress = progress
        self.seconds: list[float] = []  # of repeated runs
        self.cold: float | None = None  # of the first run
        self._reported: set[str] = set()
        self._outcomes: dict[int, Outcome] = {}

    def run(self, items: Sequence[Item], skipped: set[int]) -> list[Outcome]:
        """Run all items; those after a failure may be ``not run``."""
        if wants_cluster(self.request):
            return self._run_on_cluster(items, skipped)
        batch = self.request.batch
        size = 1 if batch is None else batch or len(items)
        pending: list[Item] = []
        with contextlib.suppress(StopError):
            for item in items:
                if item.number in skipped:
                    self._skip(item)
                    continue
                pending.append(item)
                if len(pending) == size:
                    self._run_some(pending)
                    pending = []
            self._run_some(pending)
        return [self._outcomes.get(item.number, Outcome(item, "not run")) for item in items]

    def _run_on_cluster(self, items: Sequence[Item], skipped: set[int]) -> list[Outcome]:
        """Run items on a cluster, whose workers read and write the files."""
        self.request.require_none_of(
            ("batch", "expect", "profile", "repeat", "seconds", "no_output"),
            "does not go to a cluster",
        )
        threads = worker_threads(self.request)
        since = time.time_ns() if is_local(self.request) else None  # clocks of others may differ
        options = {"outputs": self.request.wanted, "cast": self.request.cast}
        for item in items:
            if item.number in skipped:
                self._skip(item)
        tasks: dict[Any, tuple[Item, Stamped]] = {}
        with (
            contextlib.suppress(StopError),
            self._recording(tasks, since),
            connect(self.request) as client,
        ):
            remote = send_model(client, self.model, self.request)
            for item in items:
                if item.number not in skipped:
                    files, targets = (
                        {name: os.path.realpath(path) for name, path in paths.items()}
                        for paths in (item.files, item.targets)
                    )
                    arguments = (remote, files, self.fixed, targets, options, threads, since)
                    tasks[submit(client, compute_file, *arguments)] = (item, item.stamped())
            for future in completed(client, tasks):
                item, stamps = tasks[future]
                try:
                    written = result_of(future)
                except (DeconvError, MemoryError, OSError) as error:
                    if isinstance(error, DeconvError):  # with the user's name for it
                        named = {os.path.realpath(path): str(path) for path in item.files.values()}
                        error.file = named.get(error.file or "", error.file)
                    self._fail([item], error)
                    continue
                for name, stamp in written.items():
                    if self.manifest is not None:
                        self.manifest.add(stamps, item.targets[name], Stamp(*stamp))
                self._finish(item, {}, "done")
        return [self._outcomes.get(item.number, Outcome(item, "not run")) for item in items]

    @contextlib.contextmanager
    def _recording(
        self, tasks: Mapping[Any, tuple[Item, Stamped]], since: int | None
    ) -> Iterator[None]:
        """Record the files that workers have written but not reported when a run is interrupted."""
        try:
            yield
        finally:
            for item, inputs in tasks.values():
                if since is None or self.manifest is None or item.number in self._outcomes:
                    continue
                for target in item.targets.values():
                    stamp = Stamp.of(target)
                    if stamp is not None and stamp.time >= since:
                        self.manifest.add(inputs, target, stamp)

    def _skip(self, item: Item) -> None:
        """Keep the outputs, but compare them."""
        try:
            outputs = {name: npy.read(str(item.targets[name])) for name in item.references}
        except (DeconvError, MemoryError) as error:
            self._fail([item], error)
            return
        self._finish(item, outputs, "skipped")

    def _run_some(self, pending: Sequence[Item]) -> None:
        groups: dict[Any, list[tuple[Item, Stamped, dict[str, Array]]]] = {}
        for item in pending:
            stamps = item.stamped()  # before reading, so that a later change is detected
            try:
                arrays = {
                    name: read_input(str(path), name, self.model)
                    for name, path in item.files.items()
                }
            except (DeconvError, MemoryError) as error:
                self._fail([item], error)
                continue
            key = tuple((a.dtype, a.shape[1:] if a.ndim else None) for a in arrays.values())
            groups.setdefault(key, []).append((item, stamps, arrays))
        for group in groups.values():
            try:
                results = self._compute([arrays for _, _, arrays in group])
                for (item, stamps, _), outputs in zip(group, results, strict=True):
                    self._write(item, outputs, stamps)
            except (DeconvError, Mistake, MemoryError, OSError) as error:
                self._fail([item for item, _, _ in group], error)
                continue
            for (item, _, _), outputs in zip(group, results, strict=True):
                self._finish(item, outputs, "done")

    def _write(self, item: Item, outputs: Mapping[str, Array], inputs: Stamped) -> None:
        for name, target in item.targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            written = npy.write(outputs[name], target)
            if self.manifest is not None:
                self.manifest.add(inputs, target, Stamp(*written))

    def _finish(self, item: Item, outputs: Mapping[str, Array], status: str) -> None:
        """Compare the outputs of a successful item."""
        request = self.request
        try:
            comparisons = compare_files(outputs, item.references, request.rtol, request.atol)
        except (DeconvError, MemoryError) as error:
            self._fail([item], error)
            return
        for comparison in comparisons:
            if not comparison.within:
                status = "differs"
                self.progress.say(report_error, f"{item.label}: {comparison}")
        self._outcomes[item.number] = Outcome(item, status, None, comparisons)
        self.progress.advance()

    def _fail(self, items: Sequence[Item], error: Exception) -> None:
        if isinstance(error, DeconvError):
            message = as_line(error)
        else:
            message = error.format_message() if isinstance(error, Mistake) else str(error)
        for item in items:
            text = message or "out of memory"
            if not text.startswith(item.label):
                text = f"{item.label}: {text}"
            self._outcomes[item.number] = Outcome(item, "failed", one_line(text))
            self.progress.say(report_error, text)
            self.progress.advance()
        if self.request.fail_fast:
            raise StopError

    def _compute(self, group: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
        """Run the model on the arrays of some items, one or stacked."""
        if self.request.batch is None:
            return [self._run(group[0])]
        ranks = {
            name: None if (shape := self.model.inputs[name].shape) is None else len(shape)
            for name in group[0]
        }
        return run_batch(self._run, group, ranks)

    def _run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        request = self.request
        inputs = {**self.fixed, **arrays}
        bound = self.model.bind(inputs, outputs=request.wanted, cast=request.cast)
        findings = bound.findings
        report_findings([f for f in findings if str(f) not in self._reported], request.strict)
        self._reported |= {str(f) for f in findings}
        if not request.repeats:
            return bound.run(profile=self._profile())
        results, latency, seconds = repeat(
            lambda counts: bound.run(profile=self._profile(counts)), request
        )
        self.seconds += seconds
        self.cold = latency.cold if self.cold is None else self.cold
        return results

    def _profile(self, counts: bool = True) -> Profile | None:
        """Return the profile of the next run."""
        return None if self.profiles is None else self.profiles.of_run(counts)
