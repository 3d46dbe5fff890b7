"""Dims and shapes as text, and the intersection of two of them."""

from __future__ import annotations

import pytest

from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.shapes import (
    compatible,
    element_count,
    format_shape,
    intersect,
    parse_dim,
    parse_shape,
    static,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3),
        (" 11 ", 11),
        ("0", 0),
        ("-1", Interval(0, None)),
        ("?", Interval(0, None)),
        ("1..8", Interval(1, 8)),
        ("3..", Interval(3, None)),
        ("..3", Interval(0, 3)),
        ("4..4", 4),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_dim(text: str, expected: int | Interval) -> None:
    assert parse_dim(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "x", "-2", "1.0", "1e3", "3..1", "..", "9223372036854775808", "9" * 4400, "٣", "+1"],
)
def test_no_dim(text: str) -> None:
    with pytest.raises(ValueError, match=r"dim|empty"):
        parse_dim(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "[]"),
        ("1,3,?,2..8", "[1,3,?,2..8]"),
        ("4, 6", "[4,6]"),
        ("...", "[...]"),
        ("[1,2]", "[1,2]"),
    ],
)
def test_shape(text: str, shown: str) -> None:
    assert format_shape(parse_shape(text)) == shown


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("1,3", "1,3", "[1,3]"),
        ("1,?", "?,3", "[1,3]"),
        ("2..8", "5..", "[5..8]"),
        ("...", "1,2", "[1,2]"),
        ("1,2", "...", "[1,2]"),
        ("1,3", "1,4", None),
        ("1,3", "1,3,1", None),
        ("2..4", "5..9", None),
    ],
)
def test_intersection_of_shapes(a: str, b: str, common: str | None) -> None:
    first, second = parse_shape(a), parse_shape(b)
    assert compatible(first, second) is (common is not None)
    if common is None:
        with pytest.raises(ValueError, match="are incompatible"):
            intersect(first, second)
    else:
        assert format_shape(intersect(first, second)) == common


def test_static() -> None:
    assert static((1, 2)) == (1, 2)
    with pytest.raises(ValueError, match="rank"):
        static(None)
    with pytest.raises(ValueError, match="dynamic"):
        static((1, Interval(1, 2)))


def test_element_count_never_wraps() -> None:
    assert element_count((2**40, 2**40)) == 2**80
