"""Plot the results of the benchmarks from their JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

__all__ = ["plot_comparison", "plot_growth"]

_COLOURS = {"model": "#1f77b4", "numpy": "#ff7f0e"}
_NAMES = {"model": "model, as users run it", "numpy": "NumPy fallback"}


def plot_comparison(report: dict[str, Any], target: Path) -> Path:
    """Plot the ratios to the fastest other engine and to the machine's limit; return the file."""
    families = [name for name in ("named", "random") if name in report]
    figure, axes = plt.subplots(
        2, len(families), figsize=(8 * len(families), 8), squeeze=False, sharey="row"
    )
    for column, family in enumerate(families):
        cases = report[family]["cases"]
        places = range(len(cases))
        for row, (what, title) in enumerate(
            [
                ("ratio", "speed-up over the fastest peer"),
                ("to_limit", "speed relative to direct-sum limit"),
            ]
        ):
            axis = axes[row][column]
            for shift, engine in ((-0.2, "model"), (0.2, "numpy")):
                values = [case.get(f"{engine}_{what}", 0.0) for case in cases]
                if not any(values):
                    continue
                mean = report[family]["summary"][f"{engine}_{what}"]["geometric_mean"]
                axis.bar(
                    [place + shift for place in places],
                    values,
                    0.4,
                    color=_COLOURS[engine],
                    label=f"{_NAMES[engine]}, geometric mean {mean:.2f}",
                )
            axis.axhline(1, color="black", linewidth=0.8)
            axis.set_xticks(list(places), [case["name"] for case in cases], rotation=90)
            axis.set_title(f"{family} layers")
            axis.set_xlabel("layer")
            axis.set_ylabel(title)
            axis.margins(y=0.35)  # room for the legend
            axis.legend(loc="upper right")
    machine = report["machine"]
    # Only the engines that were timed: `--avx2` leaves some out.  `kernel` is ours.
    engines = report[families[0]]["cases"][0]["seconds"] if families else {}
    peers = (f"{name} {machine[name]}" for name in engines if name in machine and name != "kernel")
    ours = f"f32, {machine['processor']}; {machine['kernel']}"
    figure.suptitle(f"{ours}\n{', '.join(peers)}", fontsize=9)
    figure.tight_layout()
    figure.savefig(target, dpi=100)
    plt.close(figure)
    return target


def plot_growth(report: dict[str, Any], target: Path) -> Path:
    """Plot time, and planned cycles by threads, against the size of a layer, on logarithmic axes.

    Returns the file written.
    """
    columns = 5
    bands = -(-len(report["series"]) // columns)
    figure, axes = plt.subplots(2 * bands, columns, figsize=(4 * columns, 6 * bands), squeeze=False)
    for axis in axes.flat:
        axis.set_visible(False)
    for number, (name, points) in enumerate(report["series"].items()):
        band, column = divmod(number, columns)
        above, below = axes[2 * band, column], axes[2 * band + 1, column]
        for engine, colour in _COLOURS.items():
            found = [
                (p["size"], 1e3 * p["seconds"][engine]) for p in points if engine in p["seconds"]
            ]
            if found:
                above.loglog(*zip(*found, strict=True), "o-", color=colour, label=_NAMES[engine])
        last = [p for p in points if p["seconds"]][-1]
        each = 1e3 * min(last["seconds"].values()) / last["size"]
        sizes = [point["size"] for point in points]
        above.loglog(sizes, [each * size for size in sizes], "k:", label="linear")
        above.set_ylabel("ms")
        for threads in points[0]["planned_cycles"]:
            cycles = [point["planned_cycles"][threads] for point in points]
            below.loglog(sizes, cycles, "o-", label=f"{threads} threads")
        below.set_ylabel("planned cycles")
        for axis in (above, below):
            axis.set_visible(True)
            axis.set_xlabel(name)
            axis.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(target, dpi=80)
    plt.close(figure)
    return target
