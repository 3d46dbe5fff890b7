"""Whether a size is 0, or not negative, for all values of its names, for some, or for none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deconv_ir.ir.size_expression import Bounds, Excess, Floor, Name, SizeExpression


class Solutions(NamedTuple):
    """The values of one name for which a size is 0.

    Attributes
    ----------
    name : Name
    period : int
        0: `values` are all of them.  Otherwise all numbers whose remainder by it is in `values`.
    values : tuple of int
    others : tuple of int
        Further values, if there is a period.
    """

    name: Name
    period: int
    values: tuple[int, ...]
    others: tuple[int, ...] = ()

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        rest = number % self.period if self.period else number
        return rest in self.values or number in self.others

    def __str__(self) -> str:
        if self.period == 1:
            return f"any {self.name}"
        single = f"{self.name} = {self.others[0]}" if len(self.others) == 1 else ""
        more = f" or {single or f'{self.name} in {_listed(self.others)}'}" if self.others else ""
        if not self.period:
            if len(self.values) == 1:
                return f"{self.name} = {self.values[0]}"
            return f"{self.name} in {_listed(self.values)}" if self.values else f"no {self.name}"
        if self.values == (0,):
            return f"{self.name} a multiple of {self.period}{more}"
        return f"{self.name} % {self.period} in {_listed(self.values)}{more}"


def _listed(values: tuple[int, ...]) -> str:
    """List numbers, as ``0, 17..31``."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    texts: list[str] = []
    for run in runs:
        texts += [f"{run[0]}..{run[-1]}"] if len(run) > 2 else map(str, run)
    return ", ".join(texts[:4]) + (", ..." if len(texts) > 4 else "")


def with_others(found: Solutions, others: Iterable[int]) -> Solutions:
    """Return solutions with further values of the same name."""
    more = sorted({x for x in others if x not in found})
    if found.period:
        return found._replace(others=tuple(more))
    return found._replace(values=tuple(sorted({*found.values, *more})))


LONGEST = 1 << 12
"""Maximum period that is looked through."""


def zeros(
    size: SizeExpression, names: Mapping[str, Bounds], longest: int = LONGEST
) -> bool | Solutions | None:
    """Return for which values of its names a size is 0, trying those of a period if need be.

    Returns
    -------
    bool, Solutions or None
        True: for all values.  False: for none.  None: not determined, for some in general.
    """
    constant = size.constant
    if constant is not None:
        return constant == 0
    low, high = size.bounds(names)
    if low > 0 or high < 0:
        return False
    common = math.gcd(*(factor for monomial, factor in size.terms if monomial))
    if size.offset % common:
        return False
    found = size.names()
    period = period_of(size)
    if len(found) != 1 or not period or period > longest or math.isinf(names[found[0].text][0]):
        return None
    return _zeros_of_one(size, found[0], period, names[found[0].text])


def _zeros_of_one(
    size: SizeExpression, name: Name, period: int, ends: Bounds
) -> bool | Solutions | None:
    """Find the zeros of a size that grows by the same number over each period of one name."""
    first = max(0, int(ends[0]))
    at = {x: size.evaluate({name.text: x}) for x in range(first, first + period)}
    growth = size.evaluate({name.text: first + period}) - at[first]
    if growth:
        values = []
        for x, value in at.items():
            steps, rest = divmod(-value, growth)
            if not rest and steps >= 0 and x + steps * period <= ends[1]:
                values.append(x + steps * period)
        return Solutions(name, 0, tuple(sorted(values))) if values else False
    zero = {x % period for x, value in at.items() if not value and x <= ends[1]}
    if not zero:
        return False
    if len(zero) == period:
        return True
    return shortest(Solutions(name, period, tuple(sorted(zero))))


def never_negative(
    size: SizeExpression, names: Mapping[str, Bounds], longest: int = LONGEST
) -> bool:
    """Whether a size of at most one name is known not to be negative for any value of it."""
    if size.bounds(names)[0] >= 0:
        return True
    found, period = size.names(), period_of(size)
    if len(found) != 1 or not period or period > longest or math.isinf(names[found[0].text][0]):
        return False
    name, (low, high) = found[0], names[found[0].text]
    first = max(0, int(low))
    # Over each period it grows by the same number.
    growth = size.evaluate({name.text: first + period}) - size.evaluate({name.text: first})
    return growth >= 0 and all(
        size.evaluate({name.text: x}) >= 0 for x in range(first, first + period) if x <= high
    )


def shortest(found: Solutions) -> Solutions:
    """Return solutions with the shortest period."""
    zero = set(found.values)
    for shorter in _divisors(found.period):
        kept = {x % shorter for x in zero}
        if len(kept) * (found.period // shorter) == len(zero):
            return Solutions(found.name, shorter, tuple(sorted(kept)))
    return found


def both(a: Solutions, b: Solutions) -> Solutions | None:
    """Return the values that are in both, of one name; None if their period would be too long."""
    if not a.period or not b.period:
        finite, other = (a, b) if not a.period else (b, a)
        return Solutions(a.name, 0, tuple(x for x in finite.values if x in other))
    period = math.lcm(a.period, b.period)
    if period > LONGEST:
        return None
    first, second = set(a.values), set(b.values)
    kept = tuple(x for x in range(period) if x % a.period in first and x % b.period in second)
    found = shortest(Solutions(a.name, period, kept)) if kept else Solutions(a.name, 0, ())
    return with_others(found, (x for x in (*a.others, *b.others) if x in a and x in b))


def _divisors(number: int) -> Iterator[int]:
    return (n for n in range(1, number + 1) if number % n == 0)


def period_of(size: SizeExpression) -> int:
    """Return a period after which a size has grown by a fixed number; 0 if there is none."""
    period = 1
    for monomial, _ in size.terms:
        if len(monomial) > 1:
            return 0
        for atom in monomial:
            if isinstance(atom, Excess):
                return 0
            if isinstance(atom, Floor):
                divisor = atom.divisor.constant
                inner = period_of(atom.numerator)
                if divisor is None or not inner:
                    return 0
                period = math.lcm(period, inner * divisor)
    return period
