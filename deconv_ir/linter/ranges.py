"""Ranges of FakeQuantize that contradict their data, each other, or those of other layers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.linter.patterns import constant_before, is_readable, real_elements
from deconv_ir.linter.siblings import LEAST_MEASURED, Places

if TYPE_CHECKING:
    from deconv_ir.linter.context import LintContext
    from deconv_ir.ops.constants.constant import Const

MAX_BYTES: Final = 4 << 20
"""Bytes of quantized constants that are read in one file without --deep."""
WIDER: Final = 16
"""A range is odd if it is this many times as wide as each of its siblings, or as narrow."""
ALIKE: Final = 8
"""Ratio of the widths of siblings, up to which they are alike."""
FEWEST_LEVELS: Final = 6
"""Levels that the data must reach, of at least 16."""
MOVES: Final = ("Convert", "Reshape", "Transpose", "Unsqueeze", "Squeeze")


class QuantizedRange(NamedTuple):
    """The ranges of one FakeQuantize, over all channels."""

    layer: int
    low: float
    high: float
    output_low: float
    output_high: float
    const: Const | None
    """The constant that is quantized."""
    keeps: bool
    """Whether the output range is the input range."""

    @property
    def width(self) -> float:
        """Extent of the input range."""
        return self.high - self.low


def odd_ranges(context: LintContext) -> Iterator[Finding]:
    """Find ranges that the data or the other ranges of a network contradict."""
    ranges = [r for i, _ in context.valid_layers("FakeQuantize") if (r := _range(context, i))]
    for found in ranges:
        if found.const is not None:
            yield from _beside_data(context, found, found.const)
    for is_weight in (False, True):
        alike = [r for r in ranges if (r.const is not None) is is_weight]
        yield from _outputs_unlike(context, alike)
        if not is_weight:
            yield from _without_zero(alike)
            yield from _unlike_siblings(context, alike)


def _range(context: LintContext, index: int) -> QuantizedRange | None:
    """Return the ranges of a layer; None if they are not known, or are reversed or empty."""
    bounds = [real_elements(context, index, port) for port in range(1, 5)]
    if not all(bounds):
        return None
    low, high, output_low, output_high = (list(b or ()) for b in bounds)
    if min(high) < max(low) and (len(low) == len(high) == 1):
        return None  # another rule
    width = max(high) - min(low)
    if width <= 0:
        return None
    keeps = all(
        len(a) == len(b) and all(abs(x - y) <= width / 1000 for x, y in zip(a, b, strict=True))
        for a, b in ((low, output_low), (high, output_high))
    )
    found = constant_before(context, index, 0, MOVES)
    const = None if found is None else found[1]
    return QuantizedRange(
        index, min(low), max(high), min(output_low), max(output_high), const, keeps
    )


def _beside_data(context: LintContext, found: QuantizedRange, const: Const) -> Iterator[Finding]:
    """Compare a range with the elements of the constant that it quantizes."""
    data = _extremes(context, const)
    if data is None:
        return
    least, most = data
    levels = getattr(context.graph.layers[found.layer].operation, "levels", 0)
    outside = max(most - found.high, found.low - least)
    location = GraphLocation(layer=found.layer, side="input", port=1)
    shown = f"from {found.low:g} to {found.high:g}"
    if outside > found.width / 2:
        yield Finding(
            f"the input range is {shown}, but the constant has elements from {least:g} to {most:g}",
            location,
            expected=f"a range that contains {least:g} to {most:g}",
            actual=shown,
        )
    elif levels >= 16 and 0 < (most - least) / found.width * (levels - 1) < FEWEST_LEVELS:
        count = int((most - least) / found.width * (levels - 1)) + 1
        yield Finding(
            f"the input range is {shown}, so the constant's elements, from {least:g} to {most:g}, "
            f"take {count} of {levels} levels",
            location,
            expected=f"a range near {least:g} to {most:g}",
            actual=shown,
        )


def _extremes(context: LintContext, const: Const) -> tuple[float, float] | None:
    """Return the smallest and the largest element of a constant, within the bound of bytes."""
    from deconv_ir.linter.constants import chunks

    weights = context.weights
    if weights is None or not is_readable(context, const):
        return None
    if not context.deep:
        if const.size > MAX_BYTES - weights.searched:
            return None
        weights.searched += const.size
    lows, highs = [], []
    for _, data in chunks(const, weights):
        lows.append(float(data.min()))
        highs.append(float(data.max()))
    return (min(lows), max(highs)) if lows else None


def _outputs_unlike(context: LintContext, ranges: list[QuantizedRange]) -> Iterator[Finding]:
    """Report the only layer whose output range is not its input range."""
    odd = [found for found in ranges if not found.keeps]
    if len(odd) != 1 or len(ranges) <= LEAST_MEASURED:
        return
    (found,) = odd
    yield Finding(
        f"the output range is from {found.output_low:g} to {found.output_high:g}, the input range "
        f"from {found.low:g} to {found.high:g}; they are equal in the {len(ranges) - 1} other "
        "FakeQuantize of the network",
        GraphLocation(layer=found.layer, side="input", port=3),
        expected=f"from {found.low:g} to {found.high:g}",
        actual=f"from {found.output_low:g} to {found.output_high:g}",
    )


def _without_zero(ranges: list[QuantizedRange]) -> Iterator[Finding]:
    """Report the only range that does not contain 0."""
    odd = [found for found in ranges if found.low > 0 or found.high < 0]
    if len(odd) != 1 or len(ranges) <= LEAST_MEASURED:
        return
    (found,) = odd
    shown = f"from {found.low:g} to {found.high:g}"
    yield Finding(
        f"the input range is {shown}, without 0, which the {len(ranges) - 1} other ranges of the "
        "network contain",
        GraphLocation(layer=found.layer, side="input", port=1 if found.low > 0 else 2),
        expected="a range that contains 0",
        actual=shown,
    )


def _unlike_siblings(context: LintContext, ranges: list[QuantizedRange]) -> Iterator[Finding]:
    """Report ranges much wider or narrower than those in the same place of repeated blocks."""
    if len(ranges) <= LEAST_MEASURED:
        return
    places = Places(context).of_layers()
    groups: dict[Hashable, list[QuantizedRange]] = {}
    for found in ranges:
        groups.setdefault(places[found.layer], []).append(found)
    for members in groups.values():
        if len(members) <= LEAST_MEASURED:
            continue
        ordered = sorted(members, key=lambda found: found.width)
        for odd, others in ((ordered[0], ordered[1:]), (ordered[-1], ordered[:-1])):
            least, most = others[0].width, others[-1].width
            is_odd = odd.width > WIDER * most or odd.width * WIDER < least
            if is_odd and most <= ALIKE * least:
                yield Finding(
                    f"the input range has a width of {odd.width:g}; those of the {len(others)} "
                    f"other FakeQuantize in the same place of repeated blocks have {least:g} to "
                    f"{most:g}",
                    GraphLocation(layer=odd.layer, side="input", port=1),
                    expected=f"{least:g} to {most:g}",
                    actual=f"{odd.width:g}",
                )
