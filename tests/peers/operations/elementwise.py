"""Elementwise operations."""

from __future__ import annotations

from .dsl import Case, c, f32, node, o, p

UNARY = [
    ("abs", 1, -2, 2), ("negative", 1, -2, 2), ("sign", 1, -2, 2), ("floor", 1, -3, 3),
    ("ceiling", 1, -3, 3), ("relu", 1, -2, 2), ("exp", 1, -3, 3), ("log", 1, 0.1, 9),
    ("sqrt", 1, 0.1, 9), ("sin", 1, -4, 4), ("cos", 1, -4, 4), ("tan", 1, -1, 1),
    ("asin", 1, -0.9, 0.9), ("acos", 1, -0.9, 0.9), ("atan", 1, -3, 3), ("sinh", 1, -2, 2),
    ("cosh", 1, -2, 2), ("tanh", 1, -2, 2), ("asinh", 4, -2, 2), ("acosh", 4, 1.1, 4),
    ("atanh", 4, -0.9, 0.9), ("erf", 1, -2, 2), ("sigmoid", 1, -9, 9), ("softplus", 4, -9, 30),
    ("mish", 4, -9, 9), ("hswish", 4, -5, 5), ("hsigmoid", 5, -5, 5), ("softsign", 9, -3, 3),
]  # fmt: skip
BINARY = [
    ("add", 1), ("subtract", 1), ("multiply", 1), ("maximum", 1), ("minimum", 1), ("mod", 1),
    ("floor_mod", 1), ("squared_difference", 1), ("equal", 1), ("not_equal", 1), ("greater", 1),
    ("greater_equal", 1), ("less", 1), ("less_equal", 1), ("divide", 1),
]  # fmt: skip
EXACT = ("abs", "negative", "sign", "floor", "ceiling", "relu")


def cases():
    for name, version, low, high in UNARY:
        for kind in ("f32", "f16", "bf16"):
            yield Case(
                f"{name}-{kind}",
                lambda x, n=name, v=version: getattr(o[v], n)(x),
                (p(kind, 2, 3, 4, low=low, high=high),),
            )
        if name in EXACT:
            yield Case(
                f"{name}-i32",
                lambda x, n=name, v=version: getattr(o[v], n)(x),
                (p("i32", 2, 3, 4, low=-9, high=9),),
            )
    shapes = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((4,), (2, 1, 4)), ((), (2, 3))]
    for name, version in BINARY:
        for a, b in shapes:
            for kind in ("f32", "i32"):
                yield Case(
                    f"{name}-{kind}-{a}-{b}",
                    lambda x, y, n=name, v=version: getattr(o[v], n)(x, y),
                    (
                        p(kind, *a, low=-7, high=7),
                        p(kind, *b, low=1 if "mod" in name or name == "divide" else -7, high=7),
                    ),
                    fault="cuts the quotient toward zero, whatever m_pythondiv"
                    if (name, kind) == ("divide", "i32")
                    else "",
                )
        yield Case(
            f"{name}-none",
            lambda x, y, n=name, v=version: getattr(o[v], n)(x, y, auto_broadcast="none"),
            (f32(2, 3), f32(2, 3, low=1, high=3)),
        )
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield Case(
            name,
            lambda x, y, n=name: getattr(o[1], n)(x, y),
            (p("boolean", 2, 3), p("boolean", 3)),
        )
    yield Case("xor", lambda x, y: node("Xor", 1, (x, y)), (p("boolean", 2, 3), p("boolean", 3)))
    yield Case("logical_not", lambda x: o[1].logical_not(x), (p("boolean", 2, 3),))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield Case(
            name,
            lambda x, y, n=name: getattr(o[13], n)(x, y),
            (p("i32", 2, 3, low=-9, high=9), p("i32", 3, low=-9, high=9)),
        )
    yield Case("bitwise_not", lambda x: o[13].bitwise_not(x), (p("i32", 4, low=-9, high=9),))
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        yield Case(
            name,
            lambda x, y, n=name: getattr(o[15], n)(x, y),
            (p("i32", 2, 3, low=0, high=99), p("i32", 3, low=0, high=5)),
        )
    yield Case("power-f32", lambda x, y: o[1].power(x, y), (f32(2, 3, low=0.1, high=3), f32(3)))
    yield Case(
        "power-i32",
        lambda x, y: o[1].power(x, y),
        (p("i32", 2, 3, low=-5, high=5), p("i32", 3, low=0, high=4)),
    )
    for mode in ("half_to_even", "half_away_from_zero"):
        values = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 1.2, -1.7]
        yield Case(
            f"round-{mode}",
            lambda x, m=mode: o[5].round(x, m),
            (f32(9, values=values),),
            fault="rounds 0.49999997 to 1" if mode == "half_away_from_zero" else "",
        )
    for name in ("is_nan", "is_finite"):
        values = [float("nan"), float("inf"), -float("inf"), 0, 1]
        yield Case(name, lambda x, n=name: getattr(o[10], n)(x), (f32(5, values=values),))
    for flags in ({}, {"detect_negative": False}, {"detect_positive": False}):
        yield Case(
            f"is_inf-{flags}", lambda x, f=flags: o[10].is_inf(x, f), (f32(5, values=values),)
        )
    yield from activations()


def activations():
    yield Case("clamp-f32", lambda x: o[1].clamp(x, -1.0, 0.7), (f32(3, 4),))
    yield Case("clamp-i32", lambda x: o[1].clamp(x, -1.5, 3.7), (p("i32", 3, 9, low=-9, high=9),))
    yield Case("elu", lambda x: o[1].elu(x, 0.7), (f32(3, 9),))
    yield Case("elu-f16", lambda x: o[1].elu(x, 0.7), (p("f16", 3, 9),))
    yield Case("selu", lambda x, a, b: o[1].selu(x, a, b), (f32(3, 9), c(1.6), c(1.05)))
    yield Case(
        "hard_sigmoid", lambda x, a, b: o[1].hard_sigmoid(x, a, b), (f32(3, 9), c(0.3), c(0.4))
    )
    yield Case("swish", lambda x: o[4].swish(x), (f32(3, 9),))
    yield Case("swish-beta", lambda x, b: o[4].swish(x, b), (f32(3, 9), c(0.7)))
    yield Case("gelu2", lambda x: o[2].gelu(x), (f32(3, 9),))
    for mode in ("erf", "tanh"):
        for kind in ("f32", "f16"):
            yield Case(f"gelu7-{mode}-{kind}", lambda x, m=mode: o[7].gelu(x, m), (p(kind, 3, 9),))
    for data, slope in [
        ((2, 3, 4, 5), (3,)), ((2, 3, 4, 5), (1,)), ((2, 3, 4, 5), (1, 3, 1, 1)),
        ((2, 3), (3,)), ((2, 3, 4), (3, 4)), ((2, 3, 4, 4), (4,)), ((5,), (1,)),
    ]:  # fmt: skip
        yield Case(
            f"prelu-{data}-{slope}", lambda x, s: o[1].prelu(x, s), (f32(*data), f32(*slope))
        )
    for destination in ("f16", "i32", "u8", "boolean", "f64"):
        yield Case(
            f"convert-{destination}",
            lambda x, d=destination: o[1].convert(x, d),
            (f32(3, 4, low=0, high=200),),
        )
    yield Case(
        "select",
        lambda k, a, b: o[1].select(k, a, b),
        (p("boolean", 2, 1), f32(3), f32(2, 3)),
    )
    yield Case(
        "select-none",
        lambda k, a, b: o[1].select(k, a, b, "none"),
        (p("boolean", 2, 3), p("i32", 2, 3), p("i32", 2, 3)),
    )
    for name in ("add", "multiply", "maximum"):
        yield Case(
            f"{name}-pdpd",
            lambda x, y, n=name: getattr(o[1], n)(x, y, auto_broadcast="pdpd"),
            (f32(2, 3, 4), f32(2, 3)),
            dynamic=False,
        )
