"""Records are frozen, constructed by keyword, and equal if their fields are."""

from __future__ import annotations

import copy
import pickle
from functools import cached_property
from typing import Any

import pytest

from deconv_ir.ir.record import Record, field


class Point(Record):
    x: int = field()
    y: int = field(default=0)
    name = "no field"

    @cached_property
    def double(self) -> int:
        return 2 * self.x


class Solid(Point):
    z: int = field(default=7)


class Twin(Record):
    x: int = field()
    y: int = field(default=0)


def test_fields_of_the_bases_come_first() -> None:
    assert list(Solid.fields) == ["x", "y", "z"]
    assert list(Point.fields) == ["x", "y"]
    assert repr(Solid(z=1, x=2)) == "Solid(x=2, y=0, z=1)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Point needs a value for 'x'"),
        ({"y": 1}, "Point needs a value for 'x'"),
        ({"x": 1, "z": 1}, "Point has no field 'z'"),
        ({"x": 1, "name": ""}, "Point has no field 'name'"),
    ],
)
def test_values_are_given_by_field(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Point(**given)


def test_is_equal_by_type_and_fields() -> None:
    one, other = Point(x=1), Point(y=0, x=1)
    assert one.double == 2  # cached values do not count
    assert one == other
    assert hash(one) == hash(other)
    assert one != Point(x=1, y=1)
    assert one != Twin(x=1)
    assert len({one, other, Point(x=2), Twin(x=1)}) == 3


def test_fields_cannot_be_set_or_deleted() -> None:
    point: Any = Point(x=1)
    with pytest.raises(AttributeError, match="frozen: cannot set 'x'"):
        point.x = 2
    with pytest.raises(AttributeError, match="frozen: cannot set 'other'"):
        point.other = 2
    with pytest.raises(AttributeError, match="frozen: cannot delete 'x'"):
        del point.x
    assert point == Point(x=1)


def test_replace_makes_another() -> None:
    one = Point(x=1, y=2)
    assert one.double == 2
    other = one.replace(x=5)
    assert (other.x, other.y, other.double) == (5, 2, 10)
    assert one.x == 1
    with pytest.raises(TypeError, match="no field 'double'"):
        one.replace(double=1)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_survives_a_copy(again: Any) -> None:
    assert again(Solid(x=1, z=3)) == Solid(x=1, z=3)
