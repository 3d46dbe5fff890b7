"""Many inputs: a model run on each file that a pattern finds, or on batches of them."""

from __future__ import annotations

import contextlib
import glob
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deconv_ir.errors import DeconvError

from . import npy
from .common import EXIT_MISTAKE, EXIT_OK, STREAM, Mistake, warn
from .hints import as_line
from .inputs import gather_inputs, is_pattern, pair
from .profiles import start_profile, write_trace
from .reporting import report_findings
from .shapes import input_shapes
from .targets import file_names
from .threads import limit_threads

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.execute.profile import Profile
    from deconv_ir.ir.dtypes import Array

    from .request import Request


class Item(NamedTuple):
    """One run: a file for each input that a pattern stands for, a target for each output."""

    files: dict[str, Path]
    targets: dict[str, Path]

    @property
    def label(self) -> str:
        """How messages name it."""
        return ", ".join(map(str, self.files.values()))


class Outcome(NamedTuple):
    """What became of an item: ``done``, ``skipped``, ``failed`` or ``not run``."""

    item: Item
    status: str
    error: str | None = None


class StopError(Exception):
    """A file failed, and --fail-fast is given."""


def run_many(model: Model, request: Request) -> int:
    """Run the model on every file, go on after bad ones, and report.

    Returns
    -------
    int
        Exit code: 2 when any file failed.
    """
    started = time.perf_counter()
    if request.expect:
        raise Mistake("--expect compares one run; a pattern stands for many")
    given = pair("--input", request.inputs, list(model.inputs))
    patterns = {name: text for name, text in given.items() if is_pattern(text)}
    items = _items(patterns, model.output_names(request.wanted), request)
    fixed = gather_inputs(
        model,
        [f"{name}={path}" for name, path in given.items() if name not in patterns],
        request.random_inputs,
        input_shapes(model, request.shapes),
        besides=patterns,
    )
    profile, trace = start_profile(request)
    runner = _Runner(model, request, fixed, profile)
    with limit_threads(request.threads), _progress(len(items), request) as advance:
        outcomes = runner.run(items, advance)
    _report(outcomes, request, time.perf_counter() - started)
    if profile is not None:
        from .tables import print_profile

        if not request.as_json:
            print_profile(profile)
        if trace is not None:
            write_trace(profile, trace)
    failed = any(outcome.status == "failed" for outcome in outcomes)
    return EXIT_MISTAKE if failed else EXIT_OK


def _items(patterns: Mapping[str, str], outputs: Sequence[str], request: Request) -> list[Item]:
    """Find the files, in order, and where the outputs of each go."""
    if request.output is None or request.output == STREAM:
        raise Mistake("a pattern stands for many files: --output DIR says where outputs go")
    folder = Path(request.output)
    if folder.exists() and not folder.is_dir():
        raise Mistake(f"--output {folder}: is no directory")
    found = {name: _expand(pattern) for name, pattern in patterns.items()}
    counts = {len(paths) for paths in found.values()}
    if len(counts) > 1:
        listed = ", ".join(f"{patterns[n]!r} finds {len(p)}" for n, p in found.items())
        raise Mistake(f"patterns must find equally many files: {listed}")
    first = next(iter(patterns))
    root = _fixed_part(patterns[first])
    items: list[Item] = []
    taken: dict[Path, Path] = {}
    for row in zip(*found.values(), strict=True):
        files = dict(zip(found, row, strict=True))
        stem = folder / files[first].relative_to(root).with_suffix("")
        if len(outputs) == 1:
            targets = {outputs[0]: stem.with_name(f"{stem.name}.npy")}
        else:
            named = file_names(Path(), outputs)
            targets = {
                output: stem.with_name(f"{stem.name}.{name}")
                for output, name in zip(outputs, named, strict=True)
            }
        for target in targets.values():
            if target in taken:
                raise Mistake(f"outputs of {taken[target]} and {files[first]} are both {target}")
            taken[target] = files[first]
        items.append(Item(files, targets))
    there = [t for item in items for t in item.targets.values() if t.exists()]
    if there and not request.force and not request.resume:
        raise Mistake(
            f"{len(there)} outputs are there already, {there[0]} the first "
            "(--force overwrites them, --resume skips their inputs)"
        )
    return items


def _expand(pattern: str) -> list[Path]:
    paths = [Path(p) for p in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207 - may be absolute
    paths = [p for p in paths if not p.is_dir()]
    if not paths:
        raise Mistake(f"--input {pattern}: no file matches")
    return paths


def _fixed_part(pattern: str) -> Path:
    """Return the folder in which a pattern searches: outputs keep the folders below it."""
    parts = Path(pattern).parts
    magic = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:magic])


@contextlib.contextmanager
def _progress(count: int, request: Request) -> Iterator[Any]:
    """Show a progress bar, on a terminal only; yields what is called after each file."""
    if request.quiet or request.as_json or not sys.stderr.isatty():
        yield lambda: None
        return
    with click.progressbar(length=count, file=sys.stderr, show_pos=True) as bar:
        yield lambda: bar.update(1)


class _Runner:
    """Runs items, one by one or in batches."""

    def __init__(
        self,
        model: Model,
        request: Request,
        fixed: Mapping[str, Array],
        profile: Profile | None,
    ) -> None:
        self.model = model
        self.request = request
        self.fixed = fixed
        self.profile = profile
        self._told: set[str] = set()
        self._outcomes: dict[int, Outcome] = {}

    def run(self, items: Sequence[Item], advance: Any) -> list[Outcome]:
        """Run all items; what is not reached after a failure is ``not run``."""
        batch = self.request.batch
        size = 1 if batch is None else batch or len(items)
        pending: list[tuple[int, Item]] = []
        with contextlib.suppress(StopError):
            for number, item in enumerate(items):
                if self.request.resume and all(npy.is_whole(t) for t in item.targets.values()):
                    self._outcomes[number] = Outcome(item, "skipped")
                    advance()
                    continue
                pending.append((number, item))
                if len(pending) == size:
                    self._run_some(pending, advance)
                    pending = []
            self._run_some(pending, advance)
        return [self._outcomes.get(n, Outcome(item, "not run")) for n, item in enumerate(items)]

    def _run_some(self, pending: Sequence[tuple[int, Item]], advance: Any) -> None:
        """Run some items: alone, or those of one shape together."""
        groups: dict[Any, list[tuple[int, Item, dict[str, Array]]]] = {}
        for number, item in pending:
            try:
                arrays = {name: npy.read(str(path)) for name, path in item.files.items()}
            except (DeconvError, MemoryError) as error:
                self._fail([(number, item)], error, advance)
                continue
            key = tuple((a.dtype, a.shape[1:] if a.ndim else None) for a in arrays.values())
            groups.setdefault(key, []).append((number, item, arrays))
        for group in groups.values():
            members = [(number, item) for number, item, _ in group]
            try:
                results = self._compute([arrays for _, _, arrays in group])
                for (_, item), outputs in zip(members, results, strict=True):
                    for name, target in item.targets.items():
                        target.parent.mkdir(parents=True, exist_ok=True)
                        npy.write(outputs[name], target)
            except (DeconvError, Mistake, MemoryError, OSError) as error:
                self._fail(members, error, advance)
                continue
            for number, item in members:
                self._outcomes[number] = Outcome(item, "done")
                advance()

    def _fail(self, members: Sequence[tuple[int, Item]], error: Exception, advance: Any) -> None:
        if isinstance(error, DeconvError):
            message = as_line(error)
        else:
            message = error.format_message() if isinstance(error, Mistake) else str(error)
        message = message or "out of memory"
        for number, item in members:
            self._outcomes[number] = Outcome(item, "failed", message)
            advance()
        if self.request.fail_fast:
            raise StopError

    def _compute(self, group: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
        """Run the model on the arrays of some items, one or stacked, and take them apart."""
        if self.request.batch is None:
            return [self._run(group[0])]
        import numpy as np

        # A file without the axis of the batch is one element of it.
        single = all(self._lacks_batch(name, array) for name, array in group[0].items())
        parts = [
            {name: array[None] if single else array for name, array in arrays.items()}
            for arrays in group
        ]
        lengths = [next(iter(arrays.values())).shape[:1] for arrays in parts]
        for arrays, length in zip(parts, lengths, strict=True):
            if not length or any(array.shape[:1] != length for array in arrays.values()):
                raise Mistake("arrays of one batch must have the same first axis")
        stacked = {name: np.concatenate([arrays[name] for arrays in parts]) for name in parts[0]}
        results = self._run(stacked)
        ends = np.cumsum([length[0] for length in lengths])
        for name, result in results.items():
            if result.shape[:1] != (ends[-1],):
                raise Mistake(
                    f"output {name!r} of shape {list(result.shape)} can not be divided among "
                    f"a batch of {ends[-1]}; run without --batch"
                )
        split = {name: np.split(result, ends[:-1]) for name, result in results.items()}
        return [
            {name: parts[i][0] if single else parts[i] for name, parts in split.items()}
            for i in range(len(group))
        ]

    def _lacks_batch(self, name: str, array: Array) -> bool:
        shape = self.model.inputs[name].shape
        return shape is not None and array.ndim == len(shape) - 1

    def _run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        request = self.request
        inputs = {**self.fixed, **arrays}
        findings = self.model.check(inputs, cast=request.cast)
        report_findings([f for f in findings if str(f) not in self._told], request.strict)
        self._told |= {str(f) for f in findings}
        return self.model.run(
            inputs, outputs=request.wanted, cast=request.cast, profile=self.profile
        )


def _report(outcomes: Sequence[Outcome], request: Request, seconds: float) -> None:
    """Tell what failed, and how many did what."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.status] = counts.get(outcome.status, 0) + 1
        if outcome.error is not None and not request.as_json:
            warn(f"{outcome.item.label}: {outcome.error}")
    if request.as_json:
        _report_json(outcomes, counts, seconds)
        return
    if not request.quiet:
        parts = ", ".join(f"{count} {status}" for status, count in counts.items())
        click.echo(f"{len(outcomes)} files: {parts}  {seconds:.1f} s", err=True)
        click.echo(request.output)


def _report_json(outcomes: Sequence[Outcome], counts: Mapping[str, int], seconds: float) -> None:
    import json

    document = {
        "files": [
            {
                "inputs": {name: str(path) for name, path in outcome.item.files.items()},
                "outputs": {name: str(path) for name, path in outcome.item.targets.items()},
                "status": outcome.status,
                "error": outcome.error,
            }
            for outcome in outcomes
        ],
        "counts": dict(counts),
        "seconds": seconds,
    }
    click.echo(json.dumps(document, indent=2))
