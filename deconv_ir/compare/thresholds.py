"""Conditions on error measures of outputs, such as ``rms>1e-3``."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from deconv_ir.compare.tensors import TensorDifference, absolute_errors, equality
from deconv_ir.errors import InputError, SettingError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Source
from deconv_ir.suggestions import nearest

_BLOCK = 1 << 18
_CONDITION = re.compile(r"(?:(?P<name>.+):)?\s*(?P<metric>\w+)\s*(?P<sign>[<>])\s*(?P<limit>\S+)")


_NUMBER = frozenset("+-.0123456789abcdefghijklmnopqrstuvwxyz")
"""The characters of numbers; `float` takes others, too."""


class Metric(enum.Enum):
    """An error measure of two tensors; the first one is the reference.

    Examples
    --------
    >>> from deconv_ir import Metric
    >>> Metric("rms")
    <Metric.RMS: 'rms'>
    """

    MAX_ABS = "max_abs"
    """Largest absolute error."""
    MAX_REL = "max_rel"
    """Largest error of an element, relative to its magnitude in the first tensor."""
    RMS = "rms"
    """Root of the mean squared error."""
    COSINE = "cosine"
    """Cosine of the angle between the two."""
    SNR = "snr"
    """Signal-to-noise ratio in dB: ``10 log10(sum of a^2 / sum of (a - b)^2)``."""
    PSNR = "psnr"
    """Peak signal-to-noise ratio in dB; the peak is the largest magnitude of the first tensor."""
    ULP = "ulp"
    """Largest error in units in the last place of the first tensor's type."""
    MISMATCHES = "mismatches"
    """Number of elements out of the tolerance of the comparison."""


_SIGNS: dict[str, Callable[[float, float], bool]] = {
    # A value that is not a number is neither: it fails.
    ">": lambda value, limit: not value <= limit,
    "<": lambda value, limit: not value >= limit,
}


class Threshold(NamedTuple):
    """A condition under which an output counts as different.

    Attributes
    ----------
    metric : Metric
        The error measure.
    sign : str
        ``>`` or ``<``.
    limit : float
        The number that the measure is compared with.
    name : str
        Name of the output; empty: of each output.

    Examples
    --------
    >>> from deconv_ir import Threshold
    >>> Threshold.parse("y: psnr<40")
    Threshold(metric=<Metric.PSNR: 'psnr'>, sign='<', limit=40.0, name='y')
    """

    metric: Metric
    sign: str
    limit: float
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Parse ``METRIC>NUMBER``, ``METRIC<NUMBER``, or one of these after ``NAME:``.

        Raises
        ------
        SettingError
            The text is not a condition.
        """
        found = _CONDITION.fullmatch(text.strip())
        if found is None:
            raise SettingError(
                f"condition {text!r}: expected [NAME:]METRIC>NUMBER or [NAME:]METRIC<NUMBER"
            )
        known = [metric.value for metric in Metric]
        if found["metric"] not in known:
            raise SettingError(
                f"condition {text!r}: no metric {found['metric']!r}; there are {', '.join(known)}",
                hint=nearest(found["metric"], known),
            )
        try:
            limit = float(found["limit"]) if _NUMBER.issuperset(found["limit"]) else math.nan
        except ValueError:
            limit = math.nan
        if math.isnan(limit):
            raise SettingError(f"condition {text!r}: {found['limit']!r} is not a number")
        name = (found["name"] or "").strip()
        return cls(Metric(found["metric"]), found["sign"], limit, name)

    def __str__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        return f"{name}{self.metric.value}{self.sign}{self.limit:g}"


class Failure(NamedTuple):
    """An output that meets a condition of `Threshold`.

    Attributes
    ----------
    name : str
        The output.
    threshold : Threshold
        The condition.
    value : float
        The value of its metric.

    Examples
    --------
    >>> from deconv_ir import Failure, Threshold
    >>> str(Failure("y", Threshold.parse("rms>1e-3"), 0.5))
    "output 'y': rms is 0.5, which meets rms>0.001"
    """

    name: str
    threshold: Threshold
    value: float

    def __str__(self) -> str:
        condition = self.threshold._replace(name="")
        return (
            f"output {self.name!r}: {condition.metric.value} is {self.value:.6g}, which meets "
            f"{condition}"
        )


class OutputConditions:
    """The conditions on the outputs of a network, and those that are met.

    `outputs` has the names of the tensors that are outputs, `given` those that are inputs as well:
    both sides have the same arrays.

    Raises
    ------
    SettingError
        A condition is for an output that the network does not have.
    """

    def __init__(
        self,
        thresholds: Sequence[Threshold],
        outputs: Mapping[Source, str],
        given: Collection[str] = (),
    ) -> None:
        self.thresholds = tuple(thresholds)
        self.failures: list[Failure] = []
        self._outputs = outputs
        self._compared = set(given)
        names = list(outputs.values())
        for threshold in self.thresholds:
            if threshold.name and threshold.name not in names:
                raise SettingError(
                    f"condition {str(threshold)!r}: no output {threshold.name!r}; there are "
                    f"{', '.join(map(repr, names))}",
                    hint=nearest(threshold.name, names),
                )

    def judge(self, source: Source, found: TensorDifference, a: Array, b: Array) -> None:
        """Record the conditions that a tensor with this difference meets, if it is an output.

        Tensors of different shapes meet each of its conditions, with a value of NaN.
        """
        name = self._outputs.get(source)
        if name is None:
            return
        self._compared.add(name)
        for threshold in self.thresholds:
            if threshold.name in ("", name):
                value = float(found.outside)
                if threshold.metric is not Metric.MISMATCHES:
                    value = measure(threshold.metric, a, b)
                if _SIGNS[threshold.sign](value, threshold.limit):
                    self.failures.append(Failure(name, threshold, value))

    def require_compared(self) -> None:
        """Require that each condition was judged.

        Raises
        ------
        InputError
            The other side has no tensor for an output with a condition.
        """
        for threshold in self.thresholds:
            wanted = {threshold.name} if threshold.name else set(self._outputs.values())
            if missing := sorted(wanted - self._compared):
                raise InputError(
                    f"condition {str(threshold)!r}: output {missing[0]!r} was not compared, since "
                    "the other side does not have it, or it is constant"
                )


def measure(metric: Metric, a: Array, b: Array) -> float:
    """Return the error of `b`, where `a` is the reference; NaN for tensors of different shapes.

    `metric` is another one than MISMATCHES, which depends on a tolerance.  An infinity or NaN
    differs infinitely from any other value, and not from itself.  The sums are in float64, block by
    block.
    """
    if {a.shape, b.shape} == {(), (1,)}:  # tools write one as the other
        b = b.reshape(a.shape)
    if a.shape != b.shape:
        return math.nan
    if {a.dtype.kind, b.dtype.kind} & set("OSTU"):
        a, b = equality(a, b)
    x, y = a.reshape(-1), b.reshape(-1)
    blocks = [slice(start, start + _BLOCK) for start in range(0, x.size, _BLOCK)]
    pairs = ((x[block], y[block]) for block in blocks)
    if metric is Metric.ULP:
        return max((_ulps(left, right) for left, right in pairs), default=0.0)
    return _by_sums(metric, pairs, x.size)


def _ulps(a: Array, b: Array) -> float:
    """Return the largest distance in units in the last place of the type of `a`."""
    import numpy as np

    x, y = a.astype(np.float64), b.astype(np.float64)
    errors = absolute_errors(x, y)
    if a.dtype.kind in "biu":
        return float(errors.max(initial=0.0))
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(a)).astype(np.float64)
        steps = np.where(errors == 0, 0.0, errors / unit)
    # An infinity or NaN has no last place.
    steps[np.isnan(steps)] = np.inf
    return float(steps.max(initial=0.0))


def _by_sums(metric: Metric, pairs: Iterator[tuple[Array, Array]], count: int) -> float:
    import numpy as np

    largest = relative = peak = 0.0
    squares, dot, norm_a, norm_b = 0.0, 0.0, 0.0, 0.0
    for left, right in pairs:
        x, y = left.astype(np.float64), right.astype(np.float64)
        error = absolute_errors(x, y)
        largest = max(largest, float(error.max(initial=0.0)))
        with np.errstate(all="ignore"):
            steps = np.where(error == 0, 0.0, error / np.abs(x))
            # An infinity or NaN has no relative error.
            steps[np.isnan(steps)] = np.inf
            relative = max(relative, float(steps.max(initial=0.0)))
            alike = error == 0
            x, y = np.where(alike & ~np.isfinite(x), 0, x), np.where(alike & ~np.isfinite(y), 0, y)
            peak = max(peak, float(np.abs(x).max(initial=0.0)))
            squares += float(np.square(error).sum())
            dot, norm_a, norm_b = dot + float(x @ y), norm_a + float(x @ x), norm_b + float(y @ y)
    if metric is Metric.MAX_ABS:
        return largest
    if metric is Metric.MAX_REL:
        return relative
    if metric is Metric.RMS:
        return math.sqrt(squares / count) if count else 0.0
    if metric is Metric.COSINE:
        length = math.sqrt(norm_a) * math.sqrt(norm_b)
        if not length:
            return float(norm_a == norm_b)
        # Infinities and NaN have no angle: the value is NaN, which meets each condition.
        cosine = dot / length
        return cosine if math.isnan(cosine) else min(1.0, cosine)
    signal = norm_a if metric is Metric.SNR else peak * peak * count
    return _decibels(signal, squares)


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal / noise > 0 else -math.inf
