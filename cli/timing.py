"""The times of repeated runs of a model: --repeat and --warmup."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from deconv_ir.ir.record import NamedTuple

_Results = TypeVar("_Results")


class Latency(NamedTuple):
    """Times of repeated runs, in seconds."""

    warmup: int  # runs that are not counted
    repeat: int  # runs that are counted
    median: float
    p90: float  # interpolated, as numpy.percentile does
    mean: float
    min: float
    max: float
    throughput: float  # runs per second

    def __str__(self) -> str:
        times = ", ".join(
            f"{name} {getattr(self, name) * 1e3:.3f} ms"
            for name in ("median", "p90", "mean", "min", "max")
        )
        return f"{times}, throughput {self.throughput:.1f} runs/s ({self.repeat} runs)"


def latency(seconds: list[float], warmup: int) -> Latency:
    """Summarize the times of one or more runs."""
    import numpy as np

    total = sum(seconds)
    median, p90 = map(float, np.percentile(seconds, [50, 90]))
    throughput = len(seconds) / total if total else float("inf")
    mean = total / len(seconds)
    return Latency(warmup, len(seconds), median, p90, mean, min(seconds), max(seconds), throughput)


def repeat_run(
    run: Callable[[bool], _Results],
    warmup: int,
    repeat: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[_Results, Latency]:
    """Run a model `warmup` + `repeat` times; the argument of `run` is whether it is counted."""
    for _ in range(warmup):
        run(False)
    seconds = []
    for _ in range(repeat):
        started = clock()
        results = run(True)
        seconds.append(clock() - started)
    return results, latency(seconds, warmup)
