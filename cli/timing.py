"""How long a model takes when it is run again and again: --repeat and --warmup."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

_Results = TypeVar("_Results")


class Latency(NamedTuple):
    """Times of repeated runs, in seconds.

    Attributes
    ----------
    warmup, repeat : int
        Number of runs before the first that counts, and of those that count.
    median, p90, mean, min, max : float
        Of the runs that count; `p90` is interpolated, as ``numpy.percentile`` does.
    throughput : float
        Runs a second.
    """

    warmup: int
    repeat: int
    median: float
    p90: float
    mean: float
    min: float
    max: float
    throughput: float

    def __str__(self) -> str:
        times = ", ".join(
            f"{name} {getattr(self, name) * 1e3:.3f} ms"
            for name in ("median", "p90", "mean", "min", "max")
        )
        return f"{times}, throughput {self.throughput:.1f} runs/s ({self.repeat} runs)"


def latency(seconds: list[float], warmup: int) -> Latency:
    """Sum up the times of runs, one or more."""
    ordered = sorted(seconds)
    total = sum(ordered)
    return Latency(
        warmup,
        len(ordered),
        _percentile(ordered, 0.5),
        _percentile(ordered, 0.9),
        total / len(ordered),
        ordered[0],
        ordered[-1],
        len(ordered) / total if total else float("inf"),
    )


def _percentile(ordered: list[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def repeat_run(
    run: Callable[[bool], _Results],
    warmup: int,
    repeat: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[_Results, Latency]:
    """Run a model `warmup` + `repeat` times.

    Parameters
    ----------
    run : callable
        Runs it; is told whether the run counts.
    repeat : int
        1 or more.

    Returns
    -------
    results
        Of the last run.
    latency : Latency
    """
    for _ in range(warmup):
        run(False)
    seconds = []
    for _ in range(repeat):
        started = clock()
        results = run(True)
        seconds.append(clock() - started)
    return results, latency(seconds, warmup)
