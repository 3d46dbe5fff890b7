"""The report of runs on many files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ..shared.common import counted, print_json

if TYPE_CHECKING:
    from .many import Outcome
    from .request import Request
    from .timing import Latency

_STATUSES = ("done", "agree", "differs", "skipped", "failed", "not run")
"""The order of the summary, which does not depend on the order in which workers end."""


def latency_of(seconds: Sequence[float], cold: float | None, request: Request) -> Latency | None:
    """Summarize the times of repeated runs of all files; `cold` is that of the first run."""
    if cold is None:
        return None
    from .timing import latency

    return latency(seconds, 1 if request.warmup is None else request.warmup, cold)


def report(
    outcomes: Sequence[Outcome], request: Request, seconds: float, latency: Latency | None
) -> None:
    """Print the number of files of each status, and the times of repeated runs."""
    counts = Counter(outcome.status for outcome in outcomes)
    if request.as_json:
        _report_json(outcomes, counts, seconds, latency)
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


def _report_json(
    outcomes: Sequence[Outcome],
    counts: Mapping[str, int],
    seconds: float,
    latency: Latency | None,
) -> None:
    from .summary import comparison_rows

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
