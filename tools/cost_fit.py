"""Fits of the cost model's constants to measured cycles, and reports on them, for fit_costs.py."""

from __future__ import annotations

import math
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from deconv_ir.ir.dtypes import Array  # noqa: E402 - found by the path above

TOLERANCE = 0.2
"""Relative difference between prediction and clock that is reported."""
SLOWER = 1.05
"""A choice is reported if another plan is faster by this factor."""
# A constant is fitted if it decides this share of the cycles of this many samples; within a factor.
SHARE, FEWEST, FARTHEST = 0.05, 4, 4.0
# Residuals of logarithms beyond OUTLIER count linearly.  Weights of errors that all plans of a
# layer share, and of distances from old values:
OUTLIER, LEVEL, PRIOR = 0.1, 0.3, 0.1
_STEP = 1e-3


class Sample(NamedTuple):
    """A plan of a layer, and its cycles."""

    layer: str
    threads: int
    algorithm: str
    """``direct`` or ``winograd``."""
    plan: str
    """The tiling, in words."""
    chosen: bool
    """Whether runs use it by default."""
    predicted: float
    """By the present constants."""
    measured: float

    @property
    def name(self) -> str:
        """Layer, threads, algorithm and tiling."""
        return f"{self.layer}, {self.threads} threads, {self.algorithm}, {self.plan}"


class Fit(NamedTuple):
    """New constants."""

    constants: list[float]
    fitted: list[int]
    """Indices of the constants that the samples determine."""
    scale: float
    """Measured cycles of a predicted one: the rate of multiply-adds is not a constant."""


class Measurements(NamedTuple):
    """What constants are fitted to."""

    predict: Callable[[Sequence[float]], Array]
    """Cycles of all samples, ``[samples]``, of all constants, which are positive."""
    measured: Array
    """Cycles of all samples."""
    groups: Array
    """The group of each sample, from 0 on: plans of one layer on the same number of threads."""

    def part(self, kept: Array) -> Measurements:
        """Return some samples, by their indices."""
        _, groups = np.unique(self.groups[kept], return_inverse=True)
        return Measurements(lambda costs: self.predict(costs)[kept], self.measured[kept], groups)


def groups_of(samples: Sequence[Sample]) -> Array:
    """Return the group of each sample."""
    keys = [(sample.layer, sample.threads) for sample in samples]
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], np.intp)


def shares(measurements: Measurements, constants: Array) -> Array:
    """Return the shares of constants in the cycles of samples, ``[constants, samples]``.

    They are derivatives of logarithms, without sign.
    """
    before = measurements.predict(list(constants))
    rows = []
    for i in range(len(constants)):
        moved = constants.copy()
        moved[i] *= 1 + _STEP
        rows.append(np.abs(np.log(measurements.predict(list(moved)) / before)))
    return np.array(rows) / math.log1p(_STEP)


def fit(measurements: Measurements, start: Sequence[float], largest: Sequence[float]) -> Fit:
    """Fit constants so that predictions are proportional to measurements, robustly.

    Errors are differences of logarithms.  Those that all samples of a group share count less, since
    a plan is chosen within its group.

    Parameters
    ----------
    measurements : Measurements
        At least one sample.
    start, largest : sequence of float
        Old values and upper bounds of the constants; ``inf``: unbounded.

    Returns
    -------
    Fit
        Constants on which few samples depend keep their values.
    """
    from scipy.optimize import least_squares

    old = np.asarray(start, float)
    predict, measured, groups = measurements
    fitted = np.flatnonzero((shares(measurements, old) > SHARE).sum(axis=1) >= FEWEST)
    counts = np.bincount(groups)
    origin = np.log(old[fitted])
    reach = math.log(FARTHEST)
    most = np.minimum(origin + reach, np.log(np.asarray(largest, float)[fitted]))
    scale = float(np.median(np.log(measured / predict(list(old)))))

    def values(unknowns: Array) -> list[float]:
        """Return all constants."""
        new = old.copy()
        new[fitted] = np.exp(unknowns[1:])
        return [float(value) for value in new]

    def residuals(unknowns: Array) -> Array:
        """Return errors within groups, errors of groups, and distances from the old values."""
        errors = np.log(predict(values(unknowns)) / measured) + unknowns[0]
        shared = (np.bincount(groups, errors) / counts)[groups]
        return np.concatenate([errors - shared, LEVEL * shared, PRIOR * (unknowns[1:] - origin)])

    found = least_squares(
        residuals,
        np.array([scale, *np.minimum(origin, most - 1e-6)]),
        bounds=(np.array([-np.inf, *(origin - reach)]), np.array([np.inf, *most])),
        loss="soft_l1",
        f_scale=OUTLIER,
        diff_step=np.full(1 + len(fitted), _STEP),
    )
    return Fit(values(found.x), [int(i) for i in fitted], math.exp(found.x[0]))


def left_out(
    measurements: Measurements, start: Sequence[float], largest: Sequence[float], parts: int = 5
) -> Array:
    """Return the cycles of each sample by constants that were fitted without its group, scaled."""
    parts = min(parts, int(measurements.groups.max()) + 1)
    if parts < 2:
        raise ValueError("samples of at least two groups are needed")
    part = measurements.groups % parts
    result = np.empty(len(measurements.measured))
    for i in range(parts):
        new = fit(measurements.part(np.flatnonzero(part != i)), start, largest)
        result[part == i] = new.scale * measurements.predict(new.constants)[part == i]
    return result


# --------------------------------------------------------------- errors --


def beyond(
    predicted: Iterable[float], measured: Iterable[float], tolerance: float = TOLERANCE
) -> list[int]:
    """Return the indices of the predictions that differ from the clock by more than a tolerance."""
    pairs = enumerate(zip(predicted, measured, strict=True))
    return [i for i, (cycles, clock) in pairs if abs(cycles / clock - 1) > tolerance]


def typical_error(predicted: Iterable[float], measured: Iterable[float]) -> float:
    """Return the median relative error, as a factor of at least 1."""
    pairs = zip(predicted, measured, strict=True)
    return math.exp(statistics.median(abs(math.log(cycles / clock)) for cycles, clock in pairs))


def alternatives(samples: Sequence[Sample]) -> list[list[int]]:
    """Return the indices of the samples of each layer and number of threads."""
    groups = groups_of(samples)
    return [[int(i) for i in np.flatnonzero(groups == group)] for group in range(groups.max() + 1)]


def regret(samples: Sequence[Sample], predicted: Sequence[float]) -> float:
    """Return the time of the plans predicted fastest over that of the fastest: a geometric mean."""
    logs = []
    for group in alternatives(samples):
        taken = min(group, key=lambda i: predicted[i])
        fastest = min(samples[i].measured for i in group)
        logs.append(math.log(samples[taken].measured / fastest))
    return math.exp(statistics.fmean(logs))


def wrong_choices(
    samples: Sequence[Sample], factor: float = SLOWER
) -> list[tuple[Sample, Sample, float]]:
    """Return chosen plans, the fastest of the same layers, and speed-ups above a factor."""
    found = []
    for group in alternatives(samples):
        fastest = samples[min(group, key=lambda i: samples[i].measured)]
        for i in group:
            speedup = samples[i].measured / fastest.measured
            if samples[i].chosen and speedup > factor:
                found.append((samples[i], fastest, speedup))
    return sorted(found, key=lambda choice: -choice[2])


# ---------------------------------------------------------------- texts --

_CONSTANT = re.compile(r"^COST\((\w+), ([\d.]+)\) *(?=/\*|$)", re.MULTILINE)


def rounded(value: float) -> str:
    """Return a constant as it is written in C, with three digits."""
    text = f"{float(f'{value:.3g}'):f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def with_constants(text: str, values: dict[str, float]) -> str:
    """Return the text of cost_constants.inc.h with other values; comments stay in their columns."""

    def line(match: re.Match[str]) -> str:
        """Replace one value."""
        if match[1] not in values:
            return match[0]
        new = f"COST({match[1]}, {rounded(values[match[1]])})"
        return new if match[0].endswith(")") else f"{new} ".ljust(len(match[0]))

    return _CONSTANT.sub(line, text)


class Predictions(NamedTuple):
    """Predicted cycles, scaled to the clock."""

    label: str
    cycles: Sequence[float]


def table(samples: Sequence[Sample], before: Sequence[float], after: Sequence[float]) -> str:
    """Return the samples as a Markdown table."""
    lines = [
        "| layer | threads | algorithm | plan | chosen | Mcycles | predicted / clock | fitted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for sample, old, new in zip(samples, before, after, strict=True):
        lines.append(
            f"| {sample.layer} | {sample.threads} | {sample.algorithm} | {sample.plan} "
            f"| {'yes' if sample.chosen else ''} | {sample.measured / 1e6:.3f} "
            f"| {old / sample.measured:.2f} | {new / sample.measured:.2f} |"
        )
    return "\n".join(lines) + "\n"


def summary(samples: Sequence[Sample], predictions: Predictions) -> str:
    """Describe the errors of predictions in one line."""
    measured = [sample.measured for sample in samples]
    far = len(beyond(predictions.cycles, measured))
    return (
        f"{predictions.label}: median error "
        f"{100 * (typical_error(predictions.cycles, measured) - 1):.0f} %, "
        f"{far} of {len(samples)} plans beyond {100 * TOLERANCE:.0f} %, "
        f"the plans predicted fastest take {regret(samples, predictions.cycles):.3f} of the fastest"
    )


def report(
    samples: Sequence[Sample],
    names: Sequence[str],
    old: Sequence[float],
    new: Fit,
    kinds: Sequence[Predictions],
) -> str:
    """Describe constants, errors and wrong choices; `kinds` begins with old and new constants."""
    measured = [sample.measured for sample in samples]
    before, after = kinds[0].cycles, kinds[1].cycles
    percent = f"{100 * TOLERANCE:.0f} %"
    lines = [f"{'constant':28s} {'old':>9s} {'new':>9s}"]
    for i in new.fitted:
        lines.append(f"{names[i]:28s} {rounded(old[i]):>9s} {rounded(new.constants[i]):>9s}")
    kept = [name for i, name in enumerate(names) if i not in new.fitted]
    lines += [f"not determined by these layers: {', '.join(kept)}", ""]
    lines += [summary(samples, each) for each in kinds]
    lines += ["", f"predicted / clock beyond {percent} (old, new constants):"]
    for i in sorted({*beyond(before, measured), *beyond(after, measured)}):
        ratios = f"{before[i] / measured[i]:.2f} {after[i] / measured[i]:.2f}"
        lines.append(f"  {ratios}  {samples[i].name}")
    lines += ["", f"choices that are slower than another plan by {100 * (SLOWER - 1):.0f} %:"]
    for chosen, fastest, factor in wrong_choices(samples):
        lines.append(f"  {factor:.2f}x  {chosen.name}")
        lines.append(f"         {fastest.algorithm}, {fastest.plan}")
    return "\n".join(lines)
