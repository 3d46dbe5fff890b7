"""Ints that record how they were computed, so that any shape rule gives expressions.

A shape rule is arithmetic on the dims of its inputs.  `SymbolicSize` is an int that stands for a
named size: it has the value of one example, takes part in that arithmetic, and its results have
the expression of their computation.  Comparisons follow the example, except equality: two sizes
are equal if their expressions are.  Where a rule needs two sizes to be equal, `intersect_dims` asks
`SymbolicSize.equate`, which notes the condition.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import NamedTuple

from deconv_ir.ir.size_expression import (
    Bounds,
    Name,
    SizeExpression,
    TooLargeError,
)
from deconv_ir.ir.size_solutions import (
    LONGEST,
    Solutions,
    never_negative,
    period_of,
    with_others,
    zeros,
)

MOST_EFFORT = 1 << 16
"""Maximum number of values for which differences of sizes are computed in one trace."""
MOST_CONDITIONS = 1 << 8
"""Maximum number of conditions of one trace."""
MOST_ORDERS = 8
"""Maximum number of comparisons of one layer that are noted."""


UNTRACKED = Name(-1, "?")
"""The name in the expression of a size whose computation is not known."""


class Condition(NamedTuple):
    """Two sizes that a layer needs to be equal, and that are equal for some sizes of the inputs.

    Attributes
    ----------
    layer : int
        Index of the layer.
    left, right : SizeExpression
    solutions : Solutions or None
        The sizes for which they are equal; None: not determined.
    divisor : SizeExpression or None
        The size of which `left` must be a multiple, if that is the condition.
    broadcasts : bool
        Whether one of them may be 1 instead.
    """

    layer: int
    left: SizeExpression
    right: SizeExpression
    solutions: Solutions | None
    divisor: SizeExpression | None = None
    broadcasts: bool = False

    def __str__(self) -> str:
        if self.divisor is not None:
            return f"{self.left} a multiple of {self.divisor}"
        left, right = self.left.without_common_factor(self.right)
        return f"{left} = {right}" + (" (or 1)" if self.broadcasts else "")


class SizeSpace:
    """The names of one trace, their example values, and what was found out about them.

    Attributes
    ----------
    values : dict of str to int
        The example: the value of each name.
    bounds : dict of str to (float, float)
        The smallest and the largest value of each name.
    bindings : dict of Name to SizeExpression
        Names that stand for other sizes, in a form without such names.
    conditions : list of Condition
    never : set of int
        Indices of layers that need two sizes to be equal that never are.
    has_new_bindings : bool
        Whether a name was found to stand for another size since the trace began.
    doubtful : set of int
        Those of them that depend on an assumption.
    assumed : set of Name
        Names of sizes of which one is broadcast to another: it could be 1 instead.
    divides : bool
        Whether remainders are taken to be 0 even where those of the example are not.
    orders : dict of SizeExpression to int
        Differences whose sign the rule asked for and that may have another one, and their value.
    layer : int
        Index of the layer whose rule runs.
    """

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.bounds: dict[str, Bounds] = {UNTRACKED.text: (-math.inf, math.inf)}
        self.owners: dict[str, int | None] = {UNTRACKED.text: None}
        self.bindings: dict[Name, SizeExpression] = {}
        self.conditions: list[Condition] = []
        self.never: set[int] = set()
        self.doubtful: set[int] = set()
        self.assumed: set[Name] = set()
        self.has_new_bindings = False
        self._effort = MOST_EFFORT
        self.divides = False
        self.layer = -1
        self.orders: dict[SizeExpression, int] = {}
        self._noted: set[tuple[int, SizeExpression]] = set()
        self._zeros: dict[SizeExpression, bool | Solutions | None] = {}

    def begin(self) -> None:
        """Forget what a trace found, except for the bindings."""
        self.has_new_bindings = False
        self._effort = MOST_EFFORT
        self.conditions.clear()
        self.never.clear()
        self.doubtful.clear()
        self._noted.clear()
        self._zeros.clear()

    def add_name(self, text: str, value: int, ends: Bounds, owner: int | None) -> Name:
        """Add a name; `owner` is the Parameter whose dim it is."""
        name = Name(len(self.values), text)
        self.values[text], self.bounds[text], self.owners[text] = value, ends, owner
        return name

    def untracked(self, value: int) -> SymbolicSize:
        """Return a size of which only the value in the example is known."""
        return SymbolicSize.make(self, SizeExpression.of(UNTRACKED), value)

    def size(self, expression: SizeExpression) -> SymbolicSize:
        """Return the size of an expression."""
        return SymbolicSize.make(self, expression, expression.evaluate(self.values))

    def bind(
        self, left: SizeExpression, right: SizeExpression, *, is_assumed: bool = False
    ) -> bool:
        """Let a name stand for another size, if two sizes are equal only then.

        Return whether the sizes are equal then.  Sizes made before keep the name: the trace must be
        repeated, see `has_new_bindings`.
        """
        if self.has_new_bindings:
            left, right = left.replace(self.bindings), right.replace(self.bindings)
            if left == right:
                return True
        for name, other in (left - right).solved():
            low, high = self.bounds[name.text]
            least, most = other.bounds(self.bounds)
            if least > high or most < low:
                continue
            if self._is_one_input(name, other) or (
                self.owners[name.text] is not None and self.is_unknown(other)
            ):
                continue
            meaning = {name: other}
            self.bindings = {k: v.replace(meaning) for k, v in self.bindings.items()}
            self.bindings[name] = other
            if is_assumed:
                self.assumed |= {name, *other.names()}
            if other.name is not None:
                self.bounds[other.name.text] = max(low, least), min(high, most)
            self.has_new_bindings = True
            return True
        return False

    def is_unknown(self, size: SizeExpression) -> bool:
        """Whether a size depends on a name that is not a dim of an input."""
        return any(self.owners[name.text] is None for name in size.names())

    def _is_one_input(self, name: Name, other: SizeExpression) -> bool:
        """Whether both are sizes of one input, so that their equality is worth a word."""
        owner = self.owners[name.text]
        return owner is not None and any(self.owners[n.text] == owner for n in other.names())

    def larger(self, a: SizeExpression, b: SizeExpression) -> SizeExpression | None:
        """Return which of two sizes is never smaller than the other; None if it is not known."""
        for one, other in ((a, b), (b, a)):
            longest = min(LONGEST, self._effort)
            self._effort -= min(period_of(one - other), longest)
            if never_negative(one - other, self.bounds, longest):
                return one
        return None

    def ask_order(self, difference: SizeExpression, value: int) -> None:
        """Note that a rule depends on the order of two sizes, unless it is always the same."""
        low, high = difference.bounds(self.bounds)
        if low <= 0 <= high and len(self.orders) < MOST_ORDERS:
            self.orders.setdefault(difference, value)

    def note(
        self,
        left: SizeExpression,
        right: SizeExpression,
        divisor: SizeExpression | None = None,
        *,
        broadcasts: bool = False,
    ) -> bool:
        """Note that two sizes must be equal; return whether they can be.

        With `broadcasts`, one of them may be 1 instead.
        """
        difference = left - right
        found = self.zeros(difference)
        if found is True:
            return True
        if broadcasts:
            for side in (left, right):
                found = _either(found, self._not_empty(self.zeros(side - 1), left, right))
        if found is False:
            self.never.add(self.layer)
            if self._is_assumed(left) or self._is_assumed(right):
                self.doubtful.add(self.layer)
            return False
        if found is True:
            return True
        key = (self.layer, difference)
        if key not in self._noted and len(self.conditions) < MOST_CONDITIONS:
            self._noted.add(key)
            self.conditions.append(Condition(self.layer, left, right, found, divisor, broadcasts))
        return True

    def _is_assumed(self, size: SizeExpression) -> bool:
        """Whether a size depends on one that may be 1 instead."""
        meant = {n for name in self.assumed if (b := self.bindings.get(name)) for n in b.names()}
        return not (self.assumed | meant).isdisjoint(size.names())

    def _not_empty(
        self, found: bool | Solutions | None, *sides: SizeExpression
    ) -> bool | Solutions | None:
        """Return the solutions of one name with which no side is 0."""
        if not isinstance(found, Solutions) or found.period:
            return found
        name = found.name.text
        if any({n.text for n in side.names()} - {name} for side in sides):
            return found
        kept = tuple(x for x in found.values if all(side.evaluate({name: x}) > 0 for side in sides))
        return found._replace(values=kept) if kept else False

    def zeros(self, size: SizeExpression) -> bool | Solutions | None:
        """Return for which sizes one is 0; see `size_solutions.zeros`."""
        if size not in self._zeros:
            longest = min(LONGEST, self._effort)
            self._zeros[size] = zeros(size, self.bounds, longest)
            self._effort -= min(period_of(size), longest)
        return self._zeros[size]


class SymbolicSize(int):
    """An int with the expression of which it is the value in the example of its space."""

    space: SizeSpace
    expression: SizeExpression

    @staticmethod
    def make(space: SizeSpace, expression: SizeExpression, value: int) -> SymbolicSize:
        """Return the size of an expression with its value."""
        made = int.__new__(SymbolicSize, value)
        made.space, made.expression = space, expression
        return made

    @property
    def is_flag(self) -> bool:
        """Whether it is known to be 0 or 1 at all sizes."""
        bounds = self.space.bounds
        return never_negative(self.expression, bounds) and never_negative(
            1 - self.expression, bounds
        )

    def equate(self, other: int) -> int | None:
        """Return the common value of two sizes that must be equal; None if they never are."""
        left, right = self.expression, expression_of(other)
        if not self.space.bind(left, right) and not self.space.note(left, right):
            return None
        return other if len(str(right)) < len(str(left)) else self

    def broadcast(self, other: int) -> int | None:
        """Return the size to which two are broadcast that are not known to be equal, or 1.

        Names of different inputs are taken to be equal.
        """
        left, right = self.expression, expression_of(other)
        number = right.constant
        if number is not None:
            # It is that number, whether the size is equal or 1.
            fits = left.name is not None or self.space.note(left, right, broadcasts=True)
            return other if fits else None
        if self.space.bind(left, right, is_assumed=True):
            return other if len(str(right)) < len(str(left)) else self
        if not self.space.note(left, right, broadcasts=True):
            return None
        return self.extreme(other, is_largest=True)

    def extreme(self, other: int, *, is_largest: bool) -> int:
        """Return the larger of two sizes, or the smaller one."""
        left, right = self.expression, expression_of(other)
        try:
            larger = self.space.larger(left, right)
            if larger is not None:
                return self if (larger is left) == is_largest else other
            found = left.maximum(right) if is_largest else left.minimum(right)
        except TooLargeError:
            return self.space.untracked((max if is_largest else min)(int(self), int(other)))
        return self.space.size(found)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SymbolicSize):
            return self.space is other.space and self.expression == other.expression
        return isinstance(other, int) and self.expression.constant == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        constant = self.expression.constant
        return hash((id(self.space), self.expression)) if constant is None else hash(constant)

    def __bool__(self) -> bool:
        return self.expression.constant != 0

    # The example decides an order; the result is compared with that of sizes in the other order.

    def __lt__(self, other: int) -> bool:
        return self._ordered(other, int.__lt__)

    def __le__(self, other: int) -> bool:
        return self._ordered(other, int.__le__)

    def __gt__(self, other: int) -> bool:
        return self._ordered(other, int.__gt__)

    def __ge__(self, other: int) -> bool:
        return self._ordered(other, int.__ge__)

    def _ordered(self, other: int, on_values: Callable[[int, int], bool]) -> bool:
        if isinstance(other, int):
            with contextlib.suppress(TooLargeError):
                difference = self.expression - expression_of(other)
                self.space.ask_order(difference, int.__sub__(self, other))
        return on_values(self, other)

    def __add__(self, other: int) -> int:
        return self._joined(other, int.__add__, SizeExpression.__add__)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return self._joined(other, int.__sub__, SizeExpression.__sub__)

    def __rsub__(self, other: int) -> int:
        return self._joined(other, int.__rsub__, lambda a, b: b - a)

    def __mul__(self, other: int) -> int:
        return self._joined(other, int.__mul__, SizeExpression.__mul__)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        return self._joined(other, int.__floordiv__, _floor_divide)

    def __rfloordiv__(self, other: int) -> int:
        return self._joined(other, int.__rfloordiv__, lambda a, b: _floor_divide(b, a))

    def __mod__(self, other: int) -> int:
        return self._remainder(self, other)

    def __rmod__(self, other: int) -> int:
        return self._remainder(other, self)

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __rdivmod__(self, other: int) -> tuple[int, int]:
        return other // self, other % self

    def __neg__(self) -> int:
        return SymbolicSize.make(self.space, -self.expression, int.__neg__(self))

    def __pos__(self) -> int:
        return self

    def __abs__(self) -> int:
        return self if int.__ge__(self, 0) else -self

    def __pow__(self, other: int, modulus: int | None = None) -> int:  # type: ignore[override]
        if modulus is None and type(other) is int and 0 <= other <= 8:
            return math.prod([self] * other) if other else 1
        return int.__pow__(self, other, modulus)

    def _joined(
        self,
        other: int,
        on_values: Callable[[int, int], int],
        on_expressions: Callable[[SizeExpression, SizeExpression], SizeExpression],
    ) -> int:
        value = on_values(self, other)
        if not isinstance(value, int):
            return NotImplemented
        try:
            expression = on_expressions(self.expression, expression_of(other))
        except TooLargeError:
            return self.space.untracked(value)
        return SymbolicSize.make(self.space, expression, value)

    def _remainder(self, a: int, b: int) -> int:
        if not (isinstance(a, int) and isinstance(b, int)):
            return NotImplemented
        value = int.__mod__(a, b)
        left, right = expression_of(a), expression_of(b)
        try:
            whole = left.floor_divide(right) * right
            rest = left - whole
        except TooLargeError:
            return self.space.untracked(value)
        if rest.constant is not None:
            return rest.constant
        if (value == 0 or self.space.divides) and self.space.zeros(rest) is not True:
            # Rules ask for a remainder to find out whether it is 0, and do not use it then.
            return Remainder.of(self.space, left, right, whole, value)
        return SymbolicSize.make(self.space, rest, value)

    def __str__(self) -> str:
        return str(self.expression)

    def __repr__(self) -> str:
        return str(self.expression)

    def __format__(self, spec: str) -> str:
        return format(str(self.expression), spec)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int.__add__(self, 0),)


class Remainder(SymbolicSize):
    """A remainder that is taken to be 0; a rule that asks whether it is notes the condition."""

    _sides: tuple[SizeExpression, SizeExpression, SizeExpression]

    @staticmethod
    def of(
        space: SizeSpace,
        left: SizeExpression,
        divisor: SizeExpression,
        whole: SizeExpression,
        value: int,
    ) -> Remainder:
        """Return the remainder of a size by a divisor, of which `whole` is a multiple."""
        made = int.__new__(Remainder, value)
        made.space, made.expression, made._sides = space, left - whole, (left, whole, divisor)
        return made

    def __bool__(self) -> bool:
        return not self.space.note(*self._sides)

    def __eq__(self, other: object) -> bool:
        if type(other) is int and other == 0:
            return not self
        return SymbolicSize.__eq__(self, other)

    __hash__ = SymbolicSize.__hash__


def _either(a: bool | Solutions | None, b: bool | Solutions | None) -> bool | Solutions | None:
    """Return the sizes that are solutions of one of two."""
    if a is False or b is False:
        return b if a is False else a
    if isinstance(a, Solutions) and isinstance(b, Solutions) and not b.period:
        return with_others(a, b.values)
    return True if True in (a, b) else None


def expression_of(value: int) -> SizeExpression:
    """Return the expression of a size; of any other int, the number."""
    return value.expression if isinstance(value, SymbolicSize) else SizeExpression.number(value)


def _floor_divide(a: SizeExpression, b: SizeExpression) -> SizeExpression:
    constant = b.constant
    if constant is not None and constant < 0:
        a, b = -a, -b
    return a.floor_divide(b)
