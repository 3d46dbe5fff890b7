"""Tables: a profile, a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from deconv_ir.execute.listing import as_rows
from deconv_ir.execute.machine_limits import MachineLimits, measure_limits
from deconv_ir.execute.memory import format_bytes

from ..shared.common import counted, print_json
from ..shared.tables import print_table
from .resources import limit_threads

if TYPE_CHECKING:
    from deconv_ir.execute.listing import PlanRow
    from deconv_ir.execute.plan import Plan
    from deconv_ir.execute.profile import LayerTime

    from .profiles import RunProfiles


_Key = tuple[str, str, str]


def profile_rows(profiles: RunProfiles, limits: MachineLimits) -> list[dict[str, Any]]:
    """Sum the times of each layer, in the order of their first runs; compare with the limits.

    Median and least are those of the sums in each run; cold is the sum in the first run of all,
    None if that had no such layer.
    """
    total = profiles.counted.seconds
    rows: dict[_Key, dict[str, Any]] = {}
    of_runs: dict[_Key, dict[int, float]] = {}
    for time in profiles.counted.layers:
        key = _key(time)
        fresh: dict[str, Any] = {"runs": 0, "seconds": 0.0, "gflop": None, "gigabytes": 0.0}
        names: dict[str, str | None]
        names = {"layer": key[0], "type": key[1], "output": key[2]}
        names |= {"precision": time.precision, "reason": time.reason}
        row = rows.setdefault(key, names | fresh)
        each = of_runs.setdefault(key, {})
        each[time.run] = each.get(time.run, 0.0) + time.seconds
        row["runs"] += 1
        row["seconds"] += time.seconds
        row["gigabytes"] += (time.bytes or 0) / 1e9
        if time.operations is not None:
            row["gflop"] = (row["gflop"] or 0.0) + time.operations / 1e9
    cold: dict[_Key, float] = {}
    for time in profiles.cold:
        cold[_key(time)] = cold.get(_key(time), 0.0) + time.seconds
    for key, row in rows.items():
        row["median_seconds"] = median(of_runs[key].values())
        row["least_seconds"] = min(of_runs[key].values())
        row["cold_seconds"] = cold.get(key)
        known = row["gflop"] is not None and row["seconds"] > 0
        row["gflop_per_second"] = row["gflop"] / row["seconds"] if known else None
        timed = row["gigabytes"] > 0 and row["seconds"] > 0
        row["gigabytes_per_second"] = row["gigabytes"] / row["seconds"] if timed else None
        row["share"] = row["seconds"] / total if total else 0.0
        row["share_of_limit"] = limits.share(
            1e9 * (row["gflop"] or 0.0), 1e9 * row["gigabytes"], row["seconds"]
        )
    return list(rows.values())


def _key(time: LayerTime) -> _Key:
    return _inner_name(time.within, time.layer), time.type, time.output


def median(values: Iterable[float]) -> float:
    """Return the median of one or more numbers."""
    return float(np.median(list(values)))


def _inner_name(within: str, layer: str) -> str:
    """Return the name of a layer, prefixed by its body."""
    return f"{within}: {layer}" if within else layer


def print_profile(profiles: RunProfiles, threads: int | None) -> None:
    """Print the layers on standard error, slowest first; `threads` is the number of the runs."""
    with limit_threads(threads):
        limits = measure_limits()
    rows = sorted(profile_rows(profiles, limits), key=lambda row: -row["median_seconds"])
    gflop = sum(row["gflop"] or 0.0 for row in rows)
    each: dict[int, float] = {}
    for time in profiles.counted.layers:
        if not time.within:
            each[time.run] = each.get(time.run, 0.0) + time.seconds
    several = len(each) > 1 or not profiles.cold_counts
    cold = sum(time.seconds for time in profiles.cold if not time.within)
    times = [median(each.values()), min(each.values()), cold] if each else [0.0] * 3
    keys = ("median_seconds", "least_seconds", "cold_seconds") if several else ("median_seconds",)
    table = [
        [
            row["layer"],
            row["type"],
            row["output"],
            row["precision"],
            *("" if row[key] is None else f"{row[key] * 1e3:.3f}" for key in keys),
            _number(None if row["gflop"] is None else row["gflop"] / max(1, len(each))),
            _number(_rate(row, len(each)) if several else row["gflop_per_second"]),
            _number(row["gigabytes_per_second"]),
            "" if row["share_of_limit"] is None else f"{row['share_of_limit']:.0%}",
            f"{row['median_seconds'] / times[0] if several and times[0] else row['share']:.1%}",
        ]
        for row in rows
    ]
    rate = gflop / len(each) / times[0] if each and times[0] else None
    summed = [f"{seconds * 1e3:.3f}" for seconds in times[: len(keys)]]
    gflop /= max(1, len(each))
    table.append(["all layers", "", "", "", *summed, _number(gflop), _number(rate), "", "", ""])
    ms = ["median ms", "least ms", "cold ms"] if several else ["ms"]
    headers = ["layer", "type", "output", "precision", *ms]
    headers += ["GFLOP", "GFLOP/s", "GB/s", "of limit", "share"]
    omit = ("output", "GB/s", "GFLOP", "of limit", "type", "GFLOP/s", "precision")
    aligned = ("left",) * 4 + ("right",) * (len(headers) - 4)
    print_table(table, headers, aligned, err=True, omit=omit)
    for row in rows:
        if row["reason"] is not None:
            click.echo(f"{row['layer']} ({row['type']}) in f32: {row['reason']}", err=True)
    if several:
        apart = "" if profiles.cold_counts else ", which is a warm-up run and not among them"
        click.echo(
            f"median and least time of each layer in {counted(len(each), 'run')}; "
            f"cold: its time in the first run of all{apart}",
            err=True,
        )
    click.echo(
        f"limits: {limits.operations / 1e9:.3g} GFLOP/s (a product of matrices), "
        f"{limits.bytes / 1e9:.3g} GB/s (a copy in memory)",
        err=True,
    )


def _rate(row: dict[str, Any], runs: int) -> float | None:
    """Return the GFLOP per second of a layer's median time."""
    known = row["gflop"] is not None and row["median_seconds"] > 0
    return row["gflop"] / runs / row["median_seconds"] if known else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def print_plan(plan: Plan, *, as_json: bool, limit: int | None = None) -> None:
    """Print the steps of a plan, its memory, and whether that is within a limit, in bytes."""
    rows = as_rows(plan)
    if as_json:
        _print_plan_json(rows, plan, limit)
        return
    table = [
        [
            row.step,
            _inner_name(row.within, row.layer),
            row.type,
            ", ".join(map(str, row.inputs)),
            ", ".join(map(str, row.outputs)),
            row.precision,
            _memory(row),
            "?" if row.bytes is None else format_bytes(row.bytes),
        ]
        for row in rows
    ]
    headers = ["step", "layer", "type", "inputs", "outputs", "precision", "how", "size"]
    aligned = ("right", "left", "left", "left", "left", "left", "left", "right")
    print_table(table, headers, aligned, omit=("outputs", "inputs", "type"), sentences=["how"])
    least = "" if plan.known else "at least "
    click.echo(
        f"\n{counted(plan.steps, 'step')}; {counted(plan.folded, 'layer')} folded into constants, "
        f"{plan.dropped} dropped\n"
        f"constants {format_bytes(plan.constant_bytes)}, "
        f"as they are packed {format_bytes(plan.weight_bytes)}, tensors alive at once "
        f"{least}{format_bytes(plan.tensor_bytes)}, scratch {format_bytes(plan.scratch_bytes)}, "
        f"peak {least}{format_bytes(plan.peak_bytes)}"
    )
    if limit is not None:
        click.echo(f"{_fitting(plan, limit)} the memory limit of {format_bytes(limit)}")


def _fitting(plan: Plan, limit: int) -> str:
    if plan.peak_bytes > limit:
        return "does not fit within"
    return "fits within" if plan.known else "may fit within"


def _memory(row: PlanRow) -> str:
    parts = []
    if row.algorithm is not None:
        parts.append(row.algorithm)
    elif row.reason is not None:
        parts.append(f"in f32: {row.reason}")
    if row.cycles is not None:
        parts.append(f"predicted {row.cycles / 1e6:.3g} Mcycles")
    if row.offset is not None:
        parts.append(f"at {format_bytes(row.offset)}")
    if row.overwrites is not None:
        parts.append(f"in place of {row.overwrites}")
    if row.fused:
        parts.append(f"with {', '.join(row.fused)}")
    return "; ".join(parts)


def _print_plan_json(rows: Sequence[PlanRow], plan: Plan, limit: int | None) -> None:
    document = {
        "steps": [
            row._asdict()
            | {"inputs": list(map(str, row.inputs)), "outputs": list(map(str, row.outputs))}
            for row in rows
        ],
        "folded": plan.folded,
        "dropped": plan.dropped,
        "memory": {
            "constants": plan.constant_bytes,
            "weights": plan.weight_bytes,
            "lower_bound": plan.bound_bytes,
            "peak": plan.peak_bytes,
            "scratch": plan.scratch_bytes,
            "known": plan.known,
            "limit": limit,
            "fits": None if limit is None else plan.peak_bytes <= limit,
        },
    }
    print_json(document)
