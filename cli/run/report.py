"""The reports of deconv-run, as text and as JSON: of one run, and of runs on many files."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from deconv_ir.errors import MAX_NAME, one_line
from deconv_ir.execute.memory import format_bytes
from deconv_ir.ir.dtypes import from_numpy
from deconv_ir.ir.shapes import format_shape

from ..shared.common import counted, model_name, print_json

if TYPE_CHECKING:
    from deconv_ir import Finding, Model
    from deconv_ir.execute.plan import Plan
    from deconv_ir.ir.dtypes import Array

    from .compare import Comparison
    from .items import Outcome
    from .profiles import RunProfiles
    from .request import RunRequest
    from .timing import Latency


_STATUSES = ("done", "agree", "differs", "skipped", "failed", "not run")
"""The order of the summary, which does not depend on the order in which workers end."""
_BLOCK = 1 << 16
"""Elements that are reduced together, to bound the temporary arrays."""


class Summary(NamedTuple):
    """The facts of a run that are reported."""

    model: Model
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    saved: Mapping[str, Path | None]  # name of an input -> its file; None: standard output
    targets: Mapping[str, Path | None]  # name of an output -> its file
    comparisons: Sequence[Comparison]
    findings: Sequence[Finding]
    seconds: Mapping[str, float]  # "load" and "run"
    latency: Latency | None  # of repeated runs
    plan: Plan
    profiles: RunProfiles | None


def print_summary(summary: Summary, request: RunRequest) -> None:
    """Print inputs, outputs, comparisons, times and memory.

    Text is printed on standard error, and the paths of outputs on standard output; JSON is printed
    on standard output.
    """
    if request.as_json:
        _print_json(summary, request)
        return
    quiet = request.quiet
    if not quiet:
        for name, array in summary.inputs.items():
            shown = f"{one_line(name, MAX_NAME)}  {_describe(array)}"
            saved = summary.saved.get(name)
            click.echo(f"input  {shown}{'' if saved is None else f'  -> {saved}'}", err=True)
        for name, array in summary.outputs.items():
            numbers = statistics(array)
            shown = "  ".join(f"{key} {value:.6g}" for key, value in numbers.items())
            shown = f"{one_line(name, MAX_NAME)}  {_describe(array)}  {shown}".rstrip()
            click.echo(f"output {shown}", err=True)
    for comparison in summary.comparisons:
        colour = "green" if comparison.within else "red"
        if not quiet or not comparison.within:
            click.echo(click.style(one_line(str(comparison)), fg=colour), err=True)
    if request.verbose:
        from ..shared.about import describe_kernels

        click.echo(f"layers {len(summary.model.graph.layers)}", err=True)
        click.echo(describe_kernels(), err=True)
    if not quiet:
        times = ", ".join(f"{key} {spent * 1e3:.1f} ms" for key, spent in summary.seconds.items())
        click.echo(f"time   {times}", err=True)
        if summary.latency is not None:
            click.echo(f"runs   {summary.latency}", err=True)
        click.echo(f"memory {describe_memory(summary.plan)}", err=True)
    if summary.profiles is not None:
        from .tables import print_profile

        print_profile(summary.profiles, request.threads)
    if not quiet:
        for path in dict.fromkeys(summary.targets.values()):
            if path is not None:
                click.echo(str(path))


def describe_memory(plan: Plan) -> str:
    """Describe the planned peak, its lower bound, the scratchpad and the peak of the process."""
    least = "" if plan.known else "at least "
    peak = format_bytes(plan.peak_bytes)
    bound = format_bytes(plan.bound_bytes)
    process = process_peak()
    of_process = "" if process is None else f", process {format_bytes(process)}"
    scratch = format_bytes(plan.scratch_bytes)
    return f"peak {least}{peak} (lower bound {bound}, scratch {scratch}){of_process}"


def process_peak() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _describe(array: Array) -> str:
    return f"{from_numpy(array.dtype) or array.dtype}{format_shape(array.shape)}"


def statistics(array: Array) -> dict[str, float]:
    """Compute minimum, maximum and mean, and the number of NaN, if any."""
    if array.size == 0 or array.dtype.kind in "bO":
        return {}
    flat = array.reshape(-1)
    blocks = [flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK)]
    reduced = []
    with np.errstate(all="ignore"):
        for block in blocks:
            wide = block.astype(np.float32) if block.dtype.itemsize < 4 else block
            reduced.append((wide.min(), wide.max(), wide.sum(dtype=np.float64)))
        least, most, sums = zip(*reduced, strict=True)
        numbers = {
            "min": float(np.min(least)),
            "max": float(np.max(most)),
            "mean": float(np.sum(sums) / flat.size),
        }
        if np.isnan(numbers["mean"]):
            # Only a NaN is not equal to itself.
            numbers["nan"] = float(sum((block != block).sum() for block in blocks))
    return numbers


def _print_json(summary: Summary, request: RunRequest) -> None:
    def port(name: str, array: Array) -> dict[str, Any]:
        return {
            "name": name,
            "shape": list(array.shape),
            "element_type": str(from_numpy(array.dtype) or array.dtype),
        }

    document = {
        "model": model_name(summary.model),
        "semantics": summary.model.semantics.value,
        "inputs": [
            port(name, array) | ({"file": str(summary.saved[name])} if summary.saved else {})
            for name, array in summary.inputs.items()
        ],
        "outputs": [
            port(name, array)
            | {"file": None if (target := summary.targets.get(name)) is None else str(target)}
            | {key: _number(value) for key, value in statistics(array).items()}
            for name, array in summary.outputs.items()
        ],
        "comparisons": comparison_rows(summary.comparisons),
        "findings": [
            {
                "rule": f.rule,
                "severity": f.severity.value,
                "message": f.message,
                "file": f.file,
                "line": f.line,
                "layer": f.layer,
            }
            for f in summary.findings
        ],
        "seconds": dict(summary.seconds),
        "latency": None if summary.latency is None else summary.latency._asdict(),
        "memory": {
            "peak": summary.plan.peak_bytes,
            "lower_bound": summary.plan.bound_bytes,
            "scratch": summary.plan.scratch_bytes,
            "constants": summary.plan.constant_bytes,
            "weights": summary.plan.weight_bytes,
            "process": process_peak(),
        },
    }
    if summary.profiles is not None:
        from deconv_ir.execute.machine_limits import measure_limits

        from .resources import limit_threads
        from .tables import profile_rows

        with limit_threads(request.threads):
            limits = measure_limits()
        document["profile"] = profile_rows(summary.profiles, limits)
        document["limits"] = limits._asdict()
    print_json(document)


def comparison_rows(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return comparisons as JSON objects."""
    return [
        {
            "name": c.name,
            "within_tolerance": c.within,
            "largest_absolute_error": _number(c.largest_absolute),
            "largest_relative_error": _number(c.largest_relative),
            "position": None if c.position is None else list(c.position),
            "elements": c.elements,
            "elements_out_of_tolerance": c.outside,
        }
        for c in comparisons
    ]


def _number(value: float) -> float | str:
    """Return a number for JSON, which has no infinity and no NaN: these are text."""
    return value if value - value == 0 else str(value)


def latency_of(seconds: Sequence[float], cold: float | None, request: RunRequest) -> Latency | None:
    """Summarize the times of repeated runs of all files; `cold` is that of the first run."""
    if cold is None:
        return None
    from .timing import latency

    return latency(seconds, 1 if request.warmup is None else request.warmup, cold)


def report_files(
    outcomes: Sequence[Outcome], request: RunRequest, seconds: float, latency: Latency | None
) -> None:
    """Print the number of files of each status, and the times of repeated runs."""
    counts = Counter(outcome.status for outcome in outcomes)
    if request.as_json:
        _print_files_json(outcomes, counts, seconds, latency)
        return
    if not request.quiet:
        agreeing = sum(bool(o.comparisons) for o in outcomes if o.status == "done")
        shown = {**counts, "done": counts["done"] - agreeing, "agree": agreeing}
        parts = ", ".join(f"{shown[word]} {word}" for word in _STATUSES if shown.get(word))
        click.echo(f"{counted(outcomes, 'file')}: {parts}  {seconds:.1f} s", err=True)
        if latency is not None:
            click.echo(f"runs   {latency}", err=True)
        if request.output is not None:
            click.echo(request.output)


def _print_files_json(
    outcomes: Sequence[Outcome],
    counts: Mapping[str, int],
    seconds: float,
    latency: Latency | None,
) -> None:
    document = {
        "files": [
            {
                "inputs": {name: str(path) for name, path in outcome.item.files.items()},
                "outputs": {name: str(path) for name, path in outcome.item.targets.items()},
                "status": outcome.status,
                "error": outcome.error,
                "comparisons": comparison_rows(outcome.comparisons),
            }
            for outcome in outcomes
        ],
        "counts": dict(counts),
        "seconds": seconds,
        "latency": None if latency is None else latency._asdict(),
    }
    print_json(document)
