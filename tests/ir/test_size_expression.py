"""Expressions of named sizes: their normal form, their values, and where two are equal."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from deconv_ir.ir.shapes import larger, smaller
from deconv_ir.ir.size_expression import Name, SizeExpression, axis_names
from deconv_ir.ir.size_solutions import both, never_negative, zeros
from deconv_ir.ir.symbolic_size import SizeSpace, expression_of

SIZES = {"N": (1.0, math.inf), "H": (1.0, math.inf), "W": (1.0, math.inf)}


def named(n: int, h: int, w: int) -> tuple[SizeSpace, list[int]]:
    """Return a space, and the sizes N, H and W with these values."""
    space = SizeSpace()
    values = {"N": n, "H": h, "W": w}
    names = [space.add_name(text, values[text], SIZES[text], 0) for text in SIZES]
    return space, [space.size(SizeExpression.of(name)) for name in names]


# Arithmetic of shape rules, and its normal form worked out by hand.
FORMS: list[tuple[Callable[..., int], str]] = [
    (lambda n, h, w: (h - 1) * 2 + 3, "2*H + 1"),
    (lambda n, h, w: (h + 2 * 1 - 3) // 2 + 1, "ceil(H/2)"),
    (lambda n, h, w: -(-h // 4), "ceil(H/4)"),
    (lambda n, h, w: (h + 1) // 4, "floor((H + 1)/4)"),
    (lambda n, h, w: h // 2 // 2 // 2, "floor(H/8)"),
    (lambda n, h, w: 6 * h // 4, "H + floor(H/2)"),
    (lambda n, h, w: (h // 2 + 3) // 5, "floor((H + 6)/10)"),
    (lambda n, h, w: n * h * w * 64 // (h * w), "64*N"),
    (lambda n, h, w: (n * h + n) // (h + 1), "N"),
    (lambda n, h, w: h * w // n, "floor(H*W/N)"),
    (lambda n, h, w: h * w // (n + 1), "floor(H*W/(N + 1))"),
    (lambda n, h, w: w - 2 * h, "W - 2*H"),
    (lambda n, h, w: 10 - h, "10 - H"),
    (lambda n, h, w: (h + 1) * (h - 1), "H*H - 1"),
    (lambda n, h, w: h % 2, "H - 2*floor(H/2)"),
    (lambda n, h, w: max(0, h + 7) - sum([h, 7]), "0"),
    (lambda n, h, w: smaller(h, 9), "min(H, 9)"),
    (lambda n, h, w: 2 * larger(h, 9) + 5, "2*max(H, 9) + 5"),
    (lambda n, h, w: larger(h - 9, 0), "max(H - 9, 0)"),
    (lambda n, h, w: h - larger(0, h - 9), "min(H, 9)"),
    (lambda n, h, w: 3 * smaller(h, 9) - smaller(27, 3 * h), "0"),
    (lambda n, h, w: larger(h, w) + smaller(w, h), "H + W"),
    (lambda n, h, w: n * smaller(h, w) + 1, "N*min(H, W) + 1"),
    (lambda n, h, w: larger(h, 9) // 2, "ceil(max(H - 9, 0)/2) + 4"),
    (lambda n, h, w: -larger(h, 9), "min(-H, -9)"),
    (lambda n, h, w: smaller(larger(h, 1), h + w), "H"),
]


@pytest.mark.parametrize(("rule", "text"), FORMS, ids=[text for _, text in FORMS])
def test_normal_form(rule: Callable[..., int], text: str) -> None:
    _, sizes = named(6, 41, 59)
    found = rule(*sizes)
    assert str(found) == text
    assert int(found) == rule(6, 41, 59)
    if "/" not in text:
        assert int(found) == eval(text, {}, {"N": 6, "H": 41, "W": 59})


def test_random_arithmetic_has_the_values_of_ints() -> None:
    """Oracle: the same arithmetic on Python's ints."""
    draw = random.Random(1)
    for _ in range(300):
        _, sizes = named(8, 840, 1680)
        values = {"N": draw.randint(1, 9), "H": draw.randint(1, 99), "W": draw.randint(1, 99)}
        plain = list(values.values())
        for _ in range(draw.randint(1, 7)):
            i, j, number = (
                draw.randrange(len(plain)),
                draw.randrange(len(plain)),
                draw.randint(1, 7),
            )
            operation = draw.choice(
                (
                    lambda a, b, n: a + b,
                    lambda a, b, n: a - n,
                    lambda a, b, n: n * a,
                    lambda a, b, n: a // n,
                    lambda a, b, n: -(-(a + b) // n),
                    lambda a, b, n: n - a,
                    lambda a, b, n: smaller(a, b),
                    lambda a, b, n: larger(a, 9 * n),
                )
            )
            sizes.append(operation(sizes[i], sizes[j], number))
            plain.append(operation(plain[i], plain[j], number))
        functions = {"floor": math.floor, "ceil": math.ceil}
        for size, value in zip(sizes, plain, strict=True):
            expression = expression_of(size)
            assert expression.evaluate(values) == value
            low, high = expression.bounds({name: (x, x + 3) for name, x in values.items()})
            assert low <= value <= high
            if not expression.is_large:
                exact = {name: Fraction(x) for name, x in values.items()}
                assert eval(str(expression), functions, exact) == value


def test_sizes_are_equal_if_their_expressions_are() -> None:
    _, (_, h, w) = named(8, 840, 840)
    assert h != w
    assert h != 840
    assert 2 * h // 2 == h
    assert len({h, w, h + 0, 2 * h - h}) == 2
    assert hash(h - h) == hash(0)
    assert [h, w].index(w) == 1


ZEROS = [
    (lambda h, w: h - 16 * (h // 16), "H a multiple of 16"),
    (lambda h, w: h // 8 - 2 * (h // 16), "H % 16 in 0..7"),
    (lambda h, w: -(-h // 2) - h // 2, "H a multiple of 2"),
    (lambda h, w: 2 * h - 100, "H = 50"),
    (lambda h, w: h // 3 - 1, "H in 3..5"),
    (lambda h, w: h + 1 - h, False),
    (lambda h, w: 2 * h - 2 * w + 1, False),
    (lambda h, w: h + w, False),
    (lambda h, w: h // 2 + (h + 1) // 2 - h, True),
    (lambda h, w: h - w, None),
    (lambda h, w: smaller(h, 9) - 10, False),
    (lambda h, w: larger(h, 9) - 8, False),
    (lambda h, w: smaller(h, 9) - 5, None),
    (lambda h, w: larger(h, 9) - w, None),
]


@pytest.mark.parametrize(("rule", "expected"), ZEROS, ids=[str(e) for _, e in ZEROS])
def test_where_a_size_is_zero(rule: Callable[..., int], expected: object) -> None:
    _, (_, h, w) = named(8, 840, 1680)
    size = rule(h, w)
    found = zeros(size.expression, SIZES) if not isinstance(size, bool) else size  # type: ignore[attr-defined]
    assert (found if found in (True, False, None) else str(found)) == expected
    if isinstance(expected, str):
        holds = [x for x in range(1, 200) if rule(x, 0) == 0]
        assert [x for x in range(1, 200) if x in found] == holds  # type: ignore[operator]


def test_conditions_are_joined() -> None:
    _, (_, h, _) = named(8, 840, 1680)
    first, second, finite = (
        zeros(size.expression, SIZES)  # type: ignore[attr-defined]
        for size in (h % 4, h // 4 - 2 * (h // 8), h - 24)
    )
    assert str(both(first, second)) == "H a multiple of 8"  # type: ignore[arg-type]
    assert str(both(second, finite)) == "H = 24"  # type: ignore[arg-type]


def test_never_negative() -> None:
    _, (_, h, w) = named(8, 840, 1680)
    for size, expected in ((h - 2 * (h // 2), True), (h // 2 - h // 3, True), (h - 2, False)):
        assert never_negative(size.expression, SIZES) is expected  # type: ignore[attr-defined]
    assert not never_negative((h - w).expression, SIZES)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("shape", "layout", "expected"),
    [
        ("?", None, "N"),
        ("??", None, "N L"),
        ("??6", None, "N L C"),
        ("???", None, "N C L"),
        ("????", None, "N C H W"),
        ("???3", None, "N H W C"),
        ("?????", None, "N C D H W"),
        ("??????", None, "N D1 D2 D3 D4 D5"),
        ("????", "nhwc", "N H W C"),
        ("??", "tc", "T C"),
        ("??", "nchw", "N L"),  # of another rank
    ],
)
def test_names_of_axes(shape: str, layout: str | None, expected: str) -> None:
    assert " ".join(axis_names(tuple(dim == "?" for dim in shape), layout)) == expected


def test_a_name_has_the_order_of_its_axis() -> None:
    width, height = (SizeExpression.of(Name(i, text)) for i, text in ((3, "W"), (2, "H")))
    assert str(width + height) == "H + W"
    assert str(width * height) == "H*W"
