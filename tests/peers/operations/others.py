"""Attention, Fourier transforms, sampling and other operations."""

from __future__ import annotations

import itertools

import numpy as np

from .dsl import Case, c, f32, i64, o, p, s64


def cases():
    yield Case("convert_like", lambda x, y: o[1].convert_like(x, y), (f32(2, 3), p("i32", 4)))
    yield Case("identity", lambda x: o[16].identity(x), (f32(2, 3),))
    for rows, columns, diagonal in ((3, 4, 0), (3, 4, -1), (2, 5, 3)):
        yield Case(
            f"eye-{rows}-{columns}-{diagonal}",
            lambda r, k, d: o[9].eye(r, k, d, "f32"),
            (s64(rows), s64(columns), s64(diagonal)),
        )
    yield Case(
        "eye-batch",
        lambda r, k, d, b: o[9].eye(r, k, d, "i32", b),
        (s64(2), s64(3), s64(1), i64(2, 1)),
    )
    for data, target in (((1, 2, 5, 7), (3, 2)), ((2, 3, 8), (3,)), ((1, 2, 4, 5, 6), (2, 3, 4))):
        yield Case(
            f"adaptive_avg_pool-{data}",
            lambda x, t: o[8].adaptive_avg_pool(x, t),
            (f32(*data), i64(*target)),
        )
        yield Case(
            f"adaptive_max_pool-{data}",
            lambda x, t: o[8].adaptive_max_pool(x, t, "i32"),
            (f32(*data), i64(*target)),
        )
    yield from samples()
    yield from draws()
    yield from products()
    yield from transforms()


def samples():
    for mode, beyond, corners in itertools.product(
        ("bilinear", "bicubic", "nearest"), ("zeros", "border", "reflection"), (True, False)
    ):
        attributes = {"mode": mode, "padding_mode": beyond, "align_corners": corners}
        yield Case(
            f"grid_sample-{mode}-{beyond}-{corners}",
            lambda x, g, a=attributes: o[9].grid_sample(x, g, a),
            (f32(2, 3, 5, 6), f32(2, 4, 7, 2, low=-1.7, high=1.7)),
            tolerance=1e-4,
        )


def draws():
    """OpenVINO draws other random numbers, so one class is almost certain in each draw."""
    weights = np.array([[1e-4, 1, 1e-8], [1, 1e-8, 1e-4]])
    for again, logarithms, kind in itertools.product((True, False), (True, False), ("i32", "i64")):
        for count in (i64(2), s64(1)):
            values = np.log(weights) if logarithms else weights
            yield Case(
                f"multinomial-{again}-{logarithms}-{kind}-{count.values}",
                lambda x, n, a=(kind, again, logarithms, 1, 2): o[13].multinomial(x, n, *a),
                (p("f32", 2, 3, values=values), count),
            )


def products():
    for equation, shapes in [
        ("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
        ("ij->ji", ((2, 3),)), ("i,i->", ((3,), (3,))), ("bij,bj->bi", ((2, 3, 4), (2, 4))),
        ("...ij,jk->...ik", ((2, 3, 4), (4, 5))), ("ij,ij->i", ((2, 3), (2, 3))),
        ("abc,cd,de->abe", ((2, 3, 4), (4, 5), (5, 2))),
    ]:  # fmt: skip
        yield Case(
            f"einsum-{equation}",
            lambda *x, e=equation: o[7].einsum(list(x), e),
            tuple(f32(*shape) for shape in shapes),
        )
    query, key, value = f32(2, 3, 5, 8), f32(2, 3, 6, 8), f32(2, 3, 6, 8)
    for causal in (True, False):
        yield Case(
            f"attention-{causal}",
            lambda q, k, v, a=causal: o[13].scaled_dot_product_attention(q, k, v, causal=a),
            (query, key, value),
        )
    yield Case(
        "attention-mask",
        lambda q, k, v, m: o[13].scaled_dot_product_attention(q, k, v, m),
        (query, key, value, f32(5, 6)),
        lenient="takes the mask's dim for that of the queries",
    )
    yield Case(
        "attention-mask-scale",
        lambda q, k, v, m, s: o[13].scaled_dot_product_attention(q, k, v, m, s),
        (query, key, value, f32(2, 1, 5, 6), c(np.array([0.3]))),
        lenient="takes the mask's dim for that of the queries",
    )


def transforms():
    for name, version, data in [
        ("dft", 7, (3, 4, 6, 2)), ("idft", 7, (3, 4, 6, 2)), ("rdft", 9, (3, 4, 6)),
        ("irdft", 9, (3, 4, 6, 2)),
    ]:  # fmt: skip
        for axes, sizes in (([2], None), ([0, 2], None), ([1, 2], [3, 8]), ([2], [5])):
            if (name, sizes) == ("rdft", [3, 8]):
                # OpenVINO does not fill a real signal with zeros.
                continue
            inputs = (f32(*data), i64(*axes)) + ((i64(*sizes),) if sizes else ())
            yield Case(
                f"{name}-{axes}-{sizes}",
                lambda *x, n=name, v=version: getattr(o[v], n)(*x),
                inputs,
                tolerance=1e-4,
            )
