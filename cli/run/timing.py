"""The times of repeated runs of a model: --repeat, --seconds and --warmup."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import click

_Results = TypeVar("_Results")

SILENT = 1.0
"""Seconds before the progress of repeated runs is shown."""
EVERY = 0.25
"""Seconds between two of its lines."""


class Latency(NamedTuple):
    """Times of repeated runs, in seconds; percentiles are interpolated, as by numpy.percentile."""

    warmup: int  # runs that are not counted
    repeat: int  # runs that are counted
    cold: float  # of the first run of all, which is a warm-up run if there are any
    p50: float
    p90: float
    p99: float
    mean: float
    min: float
    max: float
    throughput: float  # runs per second

    def __str__(self) -> str:
        times = ", ".join(
            f"{name} {getattr(self, name) * 1e3:.3f} ms"
            for name in ("p50", "p90", "p99", "mean", "min", "max")
        )
        runs = f"{self.repeat} run{'' if self.repeat == 1 else 's'}"
        return (
            f"{times}, throughput {self.throughput:.1f} runs/s ({runs}; "
            f"the first of all took {self.cold * 1e3:.3f} ms)"
        )


def latency(seconds: Sequence[float], warmup: int, cold: float) -> Latency:
    """Summarize the times of one or more runs."""
    import numpy as np

    total = sum(seconds)
    p50, p90, p99 = map(float, np.percentile(seconds, [50, 90, 99]))
    throughput = len(seconds) / total if total else float("inf")
    mean, least, most = total / len(seconds), min(seconds), max(seconds)
    return Latency(warmup, len(seconds), cold, p50, p90, p99, mean, least, most, throughput)


def repeat_run(
    run: Callable[[bool], _Results],
    warmup: int,
    repeat: int | None,
    at_least: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[_Results, Latency, list[float]]:
    """Run a model `warmup` times, then `repeat` times or until `at_least` seconds have passed.

    With both, the first of the two ends the runs; there is one in any case.  The argument of `run`
    is whether the run is counted; `progress` is called with the number of counted runs and the
    seconds since the first one.
    """
    seconds: list[float] = []
    cold = None
    for _ in range(warmup):
        started = clock()
        run(False)
        took = clock() - started
        cold = took if cold is None else cold
    spent = 0.0
    while True:
        started = clock()
        results = run(True)
        seconds.append(clock() - started)
        spent += seconds[-1]
        if len(seconds) == repeat or (at_least is not None and spent >= at_least):
            break
        if progress is not None:
            progress(len(seconds), spent)
    return results, latency(seconds, warmup, seconds[0] if cold is None else cold), seconds


def show_progress(
    repeat: int | None, at_least: float | None
) -> Callable[[int, float], None] | None:
    """Return a function that shows the progress on a terminal; None without one."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    shown = SILENT - EVERY

    def show(done: int, spent: float) -> None:
        nonlocal shown
        if spent < shown + EVERY:
            return
        shown = spent
        runs = f"run {done}" + ("" if repeat is None else f" of {repeat}")
        until = "" if at_least is None else f" of {at_least:g}"
        click.echo(f"\r\x1b[K{runs}, {spent:.1f}{until} s", nl=False, err=True)

    return show


def end_progress(progress: Callable[[int, float], None] | None) -> None:
    """Remove the line of the progress."""
    if progress is not None:
        click.echo("\r\x1b[K", nl=False, err=True)
