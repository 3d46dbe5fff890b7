"""Named tuples that are cheap to create behave as those of typing."""

from __future__ import annotations

import copy
import inspect
import pickle
import types
import typing
from typing import Any

import pytest

from deconv_ir import named


class Cheap(named.NamedTuple):
    first: int
    second: "str" = "b"  # noqa: UP037
    third: tuple[int, ...] = (3,)

    @property
    def twice(self) -> int:
        return 2 * self.first


class Usual(typing.NamedTuple):
    first: int
    second: "str" = "b"  # noqa: UP037
    third: tuple[int, ...] = (3,)

    @property
    def twice(self) -> int:
        return 2 * self.first


@pytest.mark.parametrize(
    "of",
    [
        lambda c: tuple(c(1)),
        lambda c: tuple(c(first=1, third=(2,))),
        lambda c: (c(1) == (1, "b", (3,)), hash(c(1)) == hash((1, "b", (3,)))),
        lambda c: repr(c(1, "x")).removeprefix(c.__name__),
        lambda c: (c(1).first, c(1).second, c(1).twice, c(5)[0]),
        lambda c: c(1)._replace(second="y") == (1, "y", (3,)),
        lambda c: type(c(1)._replace(first=2)) is c,
        lambda c: c(1)._asdict(),
        lambda c: c._make([1, 2, 3]) == (1, 2, 3),
        lambda c: (c._fields, c._field_defaults, c.__match_args__),
        lambda c: type(pickle.loads(pickle.dumps(c(1)))) is c,
        lambda c: copy.deepcopy(c(1)) == c(1),
        lambda c: [(p.name, p.default) for p in inspect.signature(c).parameters.values()],
        lambda c: typing.get_type_hints(c),
        lambda c: c.__doc__.removeprefix(c.__name__),
        lambda c: (type(c) is type, c.__module__ == __name__, hasattr(c(1), "__dict__")),
    ],
)
def test_it_behaves_as_the_one_of_typing(of: Any) -> None:
    assert of(Cheap) == of(Usual)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: c(),
        lambda c: c(1, 2, 3, 4),
        lambda c: c(1, fourth=4),
        lambda c: c._make([]),
        lambda c: c(1)._replace(fourth=4),
        lambda c: setattr(c(1), "first", 2),
        lambda c: setattr(c(1), "fourth", 2),
    ],
)
def test_it_refuses_what_the_one_of_typing_refuses(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)) as usual:
        wrong(Usual)
    with pytest.raises(usual.type):
        wrong(Cheap)


def test_a_class_with_more_fields_than_are_shared() -> None:
    names = [f"name{i}" for i in range(40)]
    body = {"__annotations__": dict.fromkeys(names, int), "__module__": __name__}
    many = types.new_class("Many", (named.NamedTuple,), {}, lambda ns: ns.update(body))
    assert [getattr(many(*range(40)), name) for name in names] == list(range(40))


def test_fields_without_default_come_first() -> None:
    with pytest.raises(TypeError, match="follows"):

        class Wrong(named.NamedTuple):
            first: int = 1
            second: int  # type: ignore[misc]
