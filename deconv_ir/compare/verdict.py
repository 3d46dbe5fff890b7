"""The verdict on two sides of a comparison: who is wrong, in which layer, by how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deconv_ir.compare.measure import SideVerdict
from deconv_ir.compare.structure import Difference

_LISTED = 3
_TIMES = "\N{MULTIPLICATION SIGN}"


class LayerVerdict(NamedTuple):
    """The verdict on one tensor.

    Attributes
    ----------
    name : str
        The tensor, in the first model.
    layer : str
        The layer that computes it: ``'name' (Type, id 5)``.
    layer_name, type : str
        Name and type of that layer.
    line : int or None
        Its line in the file.
    a, b : SideVerdict
        The first and the second side.
    difference : float
        The largest difference of the two sides, relative to the largest magnitude in the first.
    within : bool
        Whether the difference is within the tolerance of the comparison.
    inherited : float
        The part of the difference that comes from the inputs, which differ already: that of the
        exact results for the inputs of each side.
    amplification : float
        `inherited` divided by the largest difference of an input, both relative; 0: the inputs
        agree.
    differences : tuple of Difference
        Differences of the layer between the two models.
    discrete : bool
        Whether the tensor has integers or booleans, which rounding does not change gradually.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> path, x = "samples/block/block.xml", np.ones((1, 8, 16, 16), np.float32)
    >>> layer = deconv_ir.diff(path, path, x, verdict=True).verdict.layers[0]
    >>> isinstance(layer, deconv_ir.LayerVerdict), layer.layer_name, layer.inherited
    (True, 'up', 0.0)
    """

    name: str
    layer: str
    layer_name: str
    type: str
    line: int | None
    a: SideVerdict
    b: SideVerdict
    difference: float = 0.0
    within: bool = True
    inherited: float = 0.0
    amplification: float = 0.0
    differences: tuple[Difference, ...] = ()
    discrete: bool = False

    @property
    def wrong(self) -> bool:
        """Whether a side is wrong here."""
        return self.a.right is False or self.b.right is False

    @property
    def by_documents(self) -> bool:
        """Whether both sides are right, by different semantics."""
        return not self.wrong and self.a.semantics != self.b.semantics

    def describe(self) -> str:
        """Return the layer with its type and line: ``layer 'pool' (MaxPool, line 48)``."""
        line = "" if self.line is None else f", line {self.line}"
        return f"layer {self.layer_name!r} ({self.type}{line})"


class SettingVerdict(NamedTuple):
    """A layer that was repeated alone in a runtime, with certain settings.

    Attributes
    ----------
    name : str
        The settings in words: ``f32``, ``bf16``, ``f32, one thread``.
    settings : mapping
        The settings, by their names in the runtime.
    verdict : SideVerdict
        The result with these settings.

    Examples
    --------
    >>> import deconv_ir
    >>> found = deconv_ir.SettingVerdict("bf16", {"INFERENCE_PRECISION_HINT": "bf16"}, None)
    >>> found.name
    'bf16'
    """

    name: str
    settings: Mapping[str, str]
    verdict: SideVerdict


class ModelVerdict(NamedTuple):
    """Who is right.

    Attributes
    ----------
    sides : tuple of str
        Names of the two sides.
    layers : tuple of LayerVerdict
        The verdict on each compared tensor, in the order of computation.
    settings : tuple of SettingVerdict
        The layer of `first`, repeated alone in the runtime with other settings.
    notes : tuple of str
        Further remarks: settings that are wrong, what could not be judged.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> path, x = "samples/block/block.xml", np.ones((1, 8, 16, 16), np.float32)
    >>> verdict = deconv_ir.diff(path, path, x, verdict=True).verdict
    >>> isinstance(verdict, deconv_ir.ModelVerdict), verdict.first, verdict.wrong_sides
    (True, None, ())
    >>> print(verdict.sentence)
    Both are right: every tensor is equal.
    """

    sides: tuple[str, str]
    layers: tuple[LayerVerdict, ...] = ()
    settings: tuple[SettingVerdict, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> LayerVerdict | None:
        """The first layer in which a side is wrong; None: no side is."""
        return next((layer for layer in self.layers if layer.wrong), None)

    @property
    def wrong_sides(self) -> tuple[str, ...]:
        """The sides that are wrong in some layer."""
        wrong = (
            any(layer.a.right is False for layer in self.layers),
            any(layer.b.right is False for layer in self.layers),
        )
        return tuple(name for name, is_wrong in zip(self.sides, wrong, strict=True) if is_wrong)

    @property
    def sentence(self) -> str:
        """The verdict in one or two sentences."""
        first = self.first
        if first is not None:
            return _who_is_wrong(self.sides, self.layers, first)
        outside = next((layer for layer in self.layers if not layer.within), None)
        by_documents = next((layer for layer in self.layers if layer.by_documents), None)
        if by_documents is not None:
            note = by_documents.a.note or by_documents.b.note
            return f"Both follow their documents in {by_documents.describe()}: {note}."
        if outside is not None and outside.differences:
            said = "; ".join(found.sentence_part() for found in outside.differences[:_LISTED])
            return f"Neither is wrong: the models differ in {outside.describe()}: {said}."
        unjudged = [layer for layer in self.layers if None in (layer.a.right, layer.b.right)]
        if unjudged and outside is not None:
            doubtful = next(
                (layer for layer in unjudged if layer.difference and not layer.within), None
            )
            if doubtful is not None and _causes(doubtful):
                note = doubtful.a.note or doubtful.b.note
                return (
                    f"No verdict on {doubtful.describe()}, where the difference appears: {note}. "
                    "No other layer is wrong."
                )
        return _nobody(self.layers)


def _causes(layer: LayerVerdict) -> bool:
    """Whether most of a layer's difference is made in it."""
    return layer.difference > 2 * layer.inherited


def _who_is_wrong(
    sides: tuple[str, str], layers: Sequence[LayerVerdict], first: LayerVerdict
) -> str:
    both = first.a.right is False and first.b.right is False
    if both:
        parts = ", ".join(
            f"{name} has {_value(side)}"
            for name, side in zip(sides, (first.a, first.b), strict=True)
        )
        said = f"Both are wrong in {first.describe()}: {parts}, exact {_exact(first.a)}."
    else:
        at = 0 if first.a.right is False else 1
        wrong, other = (first.a, first.b) if at == 0 else (first.b, first.a)
        said = f"{sides[at]} is wrong in {first.describe()}: {_reason(wrong)}."
        if other.right is None:
            said += f" {sides[1 - at]} is not judged there: {other.note}."
        else:
            whole = all((layer.a, layer.b)[1 - at].right is not False for layer in layers)
            said += f" {sides[1 - at]} is right{'' if whole else ' there'}."
    more = sum(layer.wrong for layer in layers) - 1
    if more > 0:
        said += f" {more} more {'tensor is' if more == 1 else 'tensors are'} wrong."
    return said


def _reason(side: SideVerdict) -> str:
    if side.value is None:
        return side.note
    times = f", {_times(side.times)} times the allowance" if side.times < math.inf else ""
    note = f", {side.note}" if side.note else ""
    return f"{_value(side)}, exact {_exact(side)}{times}{note}"


def _times(times: float) -> str:
    return f"{times:.1f}" if times < 10 else f"{times:.3g}" if times < 1e4 else f"{times:.0e}"


def _value(side: SideVerdict) -> str:
    return side.note if side.value is None else show_pair(side.value, side.exact)[0]


def _exact(side: SideVerdict) -> str:
    return "" if side.exact is None else show_pair(side.exact, side.value)[0]


def show_pair(value: float, other: float | None) -> tuple[str, str]:
    """Return two numbers with as many digits as show their difference."""
    if other is None or isinstance(value, int) or not math.isfinite(value):
        shown = str(value) if isinstance(value, int) else f"{value:.9g}"
        return shown, "" if other is None else f"{other:.9g}"
    for digits in range(2, 18):
        a, b = f"{value:.{digits}g}", f"{other:.{digits}g}"
        if a != b and (digits > 2 or not math.isfinite(other)):
            break
    return a, b


def _nobody(layers: Sequence[LayerVerdict]) -> str:
    """Describe how differences grow."""
    differing = [layer for layer in layers if layer.difference > 0 and not layer.discrete]
    differing = differing or [layer for layer in layers if layer.difference > 0]
    if not differing:
        return "Both are right: every tensor is equal."
    last = max(differing, key=lambda layer: layer.difference)
    start = differing[0]
    reaching = [layer for layer in differing if layers.index(layer) <= layers.index(last)]
    types = sorted({s.executed for layer in reaching for s in (layer.a, layer.b) if s.executed})
    differences = f"differences of {' and '.join(types)}" if types else "rounding differences"
    if len(reaching) < 2 or last.difference <= 2 * start.difference:
        whose = f"the largest, in {last.describe()}, is {last.difference:.1g} of the scale"
        return f"Neither is wrong: there are {differences} only; {whose}."
    said = (
        f"Neither is wrong: {differences} of {start.difference:.1g} grow to {last.difference:.1g} "
        f"in {len(reaching)} layers"
    )
    most = max(reaching, key=lambda layer: layer.amplification)
    if most.amplification > 2:
        said += f", most in {most.layer_name!r} ({_TIMES}{most.amplification:.2g})"
    return f"{said}."
