"""Sizes as expressions of named sizes in a normal form: ``2*H + 1``, ``floor(H/2)``, ``min(H, 9)``.

A size is a sum of products of atoms with integer factors.  An atom is a name, the floor of a
quotient of two sizes, or the excess of one size over another: ``min(H, 9)`` is H minus its excess
over 9.  `SizeExpression` has the rules that keep equal sizes equal: multiples of a constant divisor
leave the floor, floors of floors are joined, a divisor that divides is cancelled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

Bounds = tuple[float, float]
"""Smallest and largest value; the infinities are for sizes without a bound."""

MOST_TERMS = 8
"""Maximum number of terms of a size that is shown."""
MOST_ATOMS = 24
"""Maximum number of atoms of a size that is shown, those within floors included."""


_MOST_EXCESSES = 4
"""Maximum number of excesses for which both cases are considered."""


class TooLargeError(ArithmeticError):
    """An expression that would have too many terms."""


class Name(NamedTuple):
    """A named size.

    Attributes
    ----------
    order : int
        Its place in sums and products.
    text : str
    """

    order: int
    text: str

    def __str__(self) -> str:
        return self.text


class Floor(NamedTuple):
    """The floor of a quotient of two sizes."""

    numerator: SizeExpression
    divisor: SizeExpression

    def __str__(self) -> str:
        divisor = self.divisor.constant
        if divisor is not None:
            rest = self.numerator.offset
            if rest == divisor - 1:
                return f"ceil({_over(self.numerator - rest, divisor)})"
            return f"floor({_over(self.numerator, divisor)})"
        bottom = str(self.divisor)
        return f"floor({_over(self.numerator, bottom if bottom.isalnum() else f'({bottom})')})"


def _over(numerator: SizeExpression, divisor: object) -> str:
    top = str(numerator)
    return f"({top})/{divisor}" if len(numerator.summands()) > 1 else f"{top}/{divisor}"


class Excess(NamedTuple):
    """The excess of a size over another: their difference, or 0 if that is negative."""

    difference: SizeExpression

    def __str__(self) -> str:
        return f"max({self.difference}, 0)"


Atom = Name | Floor | Excess
Monomial = tuple[Atom, ...]
"""A product of atoms, sorted; empty: 1."""


def _rank(atom: Atom) -> tuple[int, int, str]:
    if isinstance(atom, Name):
        return 0, atom.order, atom.text
    return 1 if isinstance(atom, Floor) else 2, 0, str(atom)


class SizeExpression:
    """A size: a sum of products of names and floors, with integer factors; immutable.

    Its text is a Python expression with ``floor`` and ``ceil`` of quotients, which are exact, and
    ``min`` and ``max``.

    Parameters
    ----------
    terms : iterable of (Monomial, int)
        Products and their factors.

    Attributes
    ----------
    terms : tuple of (Monomial, int)
        Products, each once, and their factors, none of them 0; the constant is last.

    Examples
    --------
    >>> from deconv_ir.ir.size_expression import Name, SizeExpression
    >>> height = SizeExpression.of(Name(0, "H"))
    >>> print((height - 1) * 2 + 3)
    2*H + 1
    >>> print((height + 2 - 3).floor_divide(SizeExpression.number(2)) + 1)
    ceil(H/2)
    >>> (height * 2 + 1).evaluate({"H": 5})
    11
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Iterable[tuple[Monomial, int]]) -> None:
        merged: dict[Monomial, int] = {}
        for monomial, factor in terms:
            merged[monomial] = merged.get(monomial, 0) + factor
        if len(merged) > 4 * MOST_TERMS:
            raise TooLargeError
        found = [(m, f) for m, f in merged.items() if f]
        if len(found) > 1:
            found.sort(key=lambda term: (-len(term[0]), tuple(map(_rank, term[0]))))
        self.terms: tuple[tuple[Monomial, int], ...] = tuple(found)
        self._hash = hash(self.terms)

    @staticmethod
    def number(value: int) -> SizeExpression:
        """Return a constant."""
        return SizeExpression((((), int(value)),))

    @staticmethod
    def of(atom: Atom) -> SizeExpression:
        """Return the size that an atom is."""
        return SizeExpression((((atom,), 1),))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizeExpression) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    @property
    def offset(self) -> int:
        """The constant term."""
        return self.terms[-1][1] if self.terms and not self.terms[-1][0] else 0

    @property
    def constant(self) -> int | None:
        """The value, if there is no name in it; None otherwise."""
        if not self.terms:
            return 0
        return self.terms[0][1] if not self.terms[0][0] else None

    @property
    def name(self) -> Name | None:
        """The name, if the size is one; None otherwise."""
        if len(self.terms) == 1:
            monomial, factor = self.terms[0]
            if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Name):
                return monomial[0]
        return None

    def __add__(self, other: SizeExpression | int) -> SizeExpression:
        return SizeExpression((*self.terms, *_sized(other).terms))

    def __neg__(self) -> SizeExpression:
        return self.times(-1)

    def __sub__(self, other: SizeExpression | int) -> SizeExpression:
        return SizeExpression((*self.terms, *_sized(other).times(-1).terms))

    def __rsub__(self, other: int) -> SizeExpression:
        return SizeExpression.number(other) - self

    def __mul__(self, other: SizeExpression | int) -> SizeExpression:
        if isinstance(other, int):
            return self.times(other)
        if len(self.terms) * len(other.terms) > MOST_TERMS**2:
            raise TooLargeError
        products = []
        for a, x in self.terms:
            for b, y in other.terms:
                if len(a) + len(b) > MOST_ATOMS:
                    raise TooLargeError
                products.append((tuple(sorted((*a, *b), key=_rank)), x * y))
        return SizeExpression(products)

    def times(self, factor: int) -> SizeExpression:
        """Multiply by a number."""
        return SizeExpression((m, factor * f) for m, f in self.terms)

    def floor_divide(self, divisor: SizeExpression) -> SizeExpression:
        """Divide by a positive size, rounding down."""
        by = divisor.constant
        if by is None:
            exact = self._quotient(divisor)
            return exact if exact is not None else SizeExpression.of(Floor(self, divisor))
        return self._floor_over(by)

    def _floor_over(self, divisor: int) -> SizeExpression:
        if divisor < 1:
            raise TooLargeError  # no size is divided by a negative number
        outside: list[tuple[Monomial, int]] = []
        inside: list[tuple[Monomial, int]] = []
        for monomial, factor in self.terms:
            if monomial:
                whole = abs(factor) // divisor * (1 if factor > 0 else -1)
                outside.append((monomial, whole))
                inside.append((monomial, factor - whole * divisor))
            else:
                outside.append((monomial, factor // divisor))
                inside.append((monomial, factor % divisor))
        whole_part, rest = SizeExpression(outside), SizeExpression(inside)
        if rest.constant is not None:
            return whole_part  # a number below the divisor
        if rest.terms[0][1] < 0:  # floor(-a/b) is -floor((a + b - 1)/b)
            return whole_part - (-rest + (divisor - 1))._floor_over(divisor)
        common = math.gcd(divisor, *(f for m, f in rest.terms if m))
        if common > 1:
            reduced = SizeExpression((m, f // common) for m, f in rest.terms)
            return whole_part + reduced._floor_over(divisor // common)
        # A floor of a floor is one floor, of the product of the divisors.
        monomial, factor = rest.terms[0]
        only = len(rest.terms) == 1 or (len(rest.terms) == 2 and not rest.terms[1][0])
        if only and factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Floor):
            inner = monomial[0]
            by = inner.divisor.constant
            if by is not None:
                joined = inner.numerator + rest.offset * by
                return whole_part + joined._floor_over(by * divisor)
        return whole_part + SizeExpression.of(Floor(rest, SizeExpression.number(divisor)))

    def _quotient(self, divisor: SizeExpression) -> SizeExpression | None:
        """Divide by a size that divides the terms; None if it does not."""
        quotient: list[tuple[Monomial, int]] = []
        rest = self
        lead, lead_factor = divisor.terms[0]
        for _ in range(MOST_TERMS + 1):
            if not rest.terms:
                return SizeExpression(quotient)
            monomial, factor = rest.terms[0]
            left = list(monomial)
            for atom in lead:
                if atom not in left:
                    return None
                left.remove(atom)
            if factor % lead_factor:
                return None
            part = SizeExpression(((tuple(left), factor // lead_factor),))
            quotient += part.terms
            rest = rest - part * divisor
        return None

    def excess(self) -> SizeExpression:
        """Return the size, or 0 if it is negative."""
        constant = self.constant
        if constant is not None:
            return SizeExpression.number(max(0, constant))
        if self.terms[0][1] < 0:  # one atom for a difference and its negative
            return self + (-self).excess()
        common = math.gcd(*(factor for _, factor in self.terms))
        reduced = SizeExpression((m, f // common) for m, f in self.terms)
        return SizeExpression((((Excess(reduced),), common),))

    def minimum(self, other: SizeExpression) -> SizeExpression:
        """Return the smaller of two sizes."""
        return self - (self - other).excess()

    def maximum(self, other: SizeExpression) -> SizeExpression:
        """Return the larger of two sizes."""
        return other + (self - other).excess()

    def solved(self) -> Iterator[tuple[Name, SizeExpression]]:
        """Iterate over names, the last first, and the sizes that they have where this one is 0.

        Sizes from which something is subtracted are left out.
        """
        common = math.gcd(*(factor for _, factor in self.terms)) or 1
        for name in reversed(self.names()):
            for monomial, factor in self.terms:
                if monomial != (name,) or abs(factor) != common:
                    continue
                sign = -1 if factor > 0 else 1
                rest = [(m, sign * f // common) for m, f in self.terms if m != monomial]
                other = SizeExpression(rest)
                is_sum = other.offset >= 0 and all(f > 0 for _, f in rest)
                if is_sum and name not in other.names():
                    yield name, other

    def without_common_factor(self, other: SizeExpression) -> tuple[SizeExpression, SizeExpression]:
        """Return two sizes without the numbers and names by which every term is multiplied."""
        terms = (*self.terms, *other.terms)
        if not self.terms or not other.terms:
            return self, other
        common = list(terms[0][0])
        for monomial, _ in terms[1:]:
            left = list(monomial)
            kept: list[Atom] = []
            for atom in common:
                if isinstance(atom, Name) and atom in left:
                    left.remove(atom)
                    kept.append(atom)
            common = kept
        factor = math.gcd(*(f for _, f in terms))
        by = SizeExpression(((tuple(a for a in common if isinstance(a, Name)), factor),))
        first, second = self._quotient(by), other._quotient(by)
        return (self, other) if first is None or second is None else (first, second)

    def atoms(self) -> Iterator[Atom]:
        """Iterate over all atoms, those within floors included."""
        for monomial, _ in self.terms:
            for atom in monomial:
                yield atom
                if not isinstance(atom, Name):
                    for inner in atom:
                        yield from inner.atoms()

    def names(self) -> tuple[Name, ...]:
        """Return the names, in their order."""
        return tuple(sorted({a for a in self.atoms() if isinstance(a, Name)}))

    @property
    def is_large(self) -> bool:
        """Whether there are too many terms or atoms to be read."""
        if len(self.terms) > MOST_TERMS:
            return True
        return any(count >= MOST_ATOMS for count, _ in enumerate(self.atoms()))

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the size for values of the names.

        Raises
        ------
        KeyError
            A name has no value.
        """
        total = 0
        for monomial, factor in self.terms:
            for atom in monomial:
                if isinstance(atom, Name):
                    factor *= values[atom.text]
                elif isinstance(atom, Excess):
                    factor *= max(0, atom.difference.evaluate(values))
                else:
                    divisor = atom.divisor.evaluate(values)
                    factor *= atom.numerator.evaluate(values) // divisor if divisor else 0
            total += factor
        return total

    def replace(self, sizes: Mapping[Name, SizeExpression]) -> SizeExpression:
        """Return the expression with other sizes in place of names."""
        total = SizeExpression.number(0)
        for monomial, factor in self.terms:
            product = SizeExpression.number(factor)
            for atom in monomial:
                if isinstance(atom, Name):
                    product = product * sizes.get(atom, SizeExpression.of(atom))
                elif isinstance(atom, Excess):
                    product = product * atom.difference.replace(sizes).excess()
                else:
                    product = product * atom.numerator.replace(sizes).floor_divide(
                        atom.divisor.replace(sizes)
                    )
            total = total + product
        return total

    def bounds(self, names: Mapping[str, Bounds]) -> Bounds:
        """Return bounds of the size by those of the names; they need not be the tightest."""
        excesses = [t for t in self.terms if len(t[0]) == 1 and isinstance(t[0][0], Excess)]
        if 0 < len(excesses) <= _MOST_EXCESSES:
            # The larger of two sizes, or with a negative factor the smaller one.
            ((atom,), factor), *_ = excesses
            assert isinstance(atom, Excess)
            rest = self - SizeExpression.of(atom).times(factor)
            sides = rest.bounds(names), (rest + atom.difference.times(factor)).bounds(names)
            outer = max if factor > 0 else min
            return outer(side[0] for side in sides), outer(side[1] for side in sides)
        low = high = 0.0
        for monomial, factor in self.terms:
            ends = (1.0, 1.0)
            for atom in monomial:
                ends = _product(ends, _atom_bounds(atom, names))
            ends = _product(ends, (factor, factor))
            low, high = low + ends[0], high + ends[1]
        return low, high

    def summands(self) -> list[tuple[str, int]]:
        """Return the texts of the summands, and their factors; those of numbers are empty."""
        terms = dict(self.terms)
        found: list[tuple[str, int]] = []
        for monomial, factor in self.terms:
            if not monomial or not isinstance(monomial[-1], Excess):
                continue
            if terms.pop(monomial, None) is not None:
                text, factor = _extreme(monomial, factor, terms)
                found.append((text, factor))
        plain = [("*".join(map(str, monomial)), factor) for monomial, factor in terms.items()]
        constant = [plain.pop()] if plain and not plain[-1][0] else []
        return [*plain, *found, *constant]

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        summands = self.summands()
        # A negative first term is written after a positive one.
        first = next((i for i, (_, factor) in enumerate(summands) if factor > 0), 0)
        for product, factor in (summands[first], *summands[:first], *summands[first + 1 :]):
            size = abs(factor)
            shown = str(size) if not product else product if size == 1 else f"{size}*{product}"
            sign = " - " if factor < 0 else " + "
            text = text + sign + shown if text else ("-" if factor < 0 else "") + shown
        return text

    def __repr__(self) -> str:
        return str(self)


def _sized(value: SizeExpression | int) -> SizeExpression:
    return value if isinstance(value, SizeExpression) else SizeExpression.number(value)


def _extreme(monomial: Monomial, factor: int, terms: dict[Monomial, int]) -> tuple[str, int]:
    """Write a product with an excess as a minimum or maximum, with terms that it takes."""
    *others, atom = monomial
    assert isinstance(atom, Excess)
    taken: list[tuple[Monomial, int]] = []
    for inner, own in atom.difference.terms:
        at = tuple(sorted((*others, *inner), key=_rank))
        wanted = -factor * own
        # A number is taken where one is left: max(H, 9) + 6 rather than max(H - 9, 0) + 15.
        if terms.get(at) == wanted or (factor > 0 and not inner and at in terms):
            taken.append((inner, wanted // abs(factor)))
            terms[at] -= wanted
            if not terms[at]:
                del terms[at]
    size = SizeExpression(taken)
    if not taken:
        sides, kind = [atom.difference, size], "max"
    elif factor > 0:
        sides, kind = [size + atom.difference, size], "max"
    else:
        sides, kind, factor = [size, size - atom.difference], "min", -factor
    sides.sort(key=lambda side: side.constant is not None)
    return "*".join((*map(str, others), f"{kind}({sides[0]}, {sides[1]})")), factor


def _product(a: Bounds, b: Bounds) -> Bounds:
    ends = [0.0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(ends), max(ends)


def _atom_bounds(atom: Atom, names: Mapping[str, Bounds]) -> Bounds:
    if isinstance(atom, Name):
        return names[atom.text]
    if isinstance(atom, Excess):
        low, high = atom.difference.bounds(names)
        return max(0.0, low), max(0.0, high)
    low, high = atom.numerator.bounds(names)
    divisor = atom.divisor.constant
    if divisor is None:
        least, _ = atom.divisor.bounds(names)
        if least < 1 or low < 0:
            return -math.inf, math.inf
        return 0.0, high if math.isinf(high) else high // least
    return (
        low if math.isinf(low) else low // divisor,
        high if math.isinf(high) else high // divisor,
    )


_BY_RANK = {1: "N", 2: "NL", 3: "NCL", 4: "NCHW", 5: "NCDHW"}
_CHANNELS_LAST = {3: "NLC", 4: "NHWC", 5: "NDHWC"}


def axis_names(dynamic: tuple[bool, ...], layout: str | None) -> list[str]:
    """Return a name for each axis of an input: of its layout, or by position and rank."""
    rank = len(dynamic)
    if layout is not None and len(layout) == rank:
        return list(layout.upper())
    letters = _BY_RANK.get(rank)
    if rank in _CHANNELS_LAST and dynamic[1] and not dynamic[-1]:
        letters = _CHANNELS_LAST[rank]
    return list(letters) if letters else ["N", *(f"D{axis}" for axis in range(1, rank))]
