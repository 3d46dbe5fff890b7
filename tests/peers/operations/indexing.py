"""Operations with indices, orders, blocks and levels."""

from __future__ import annotations

import itertools

import numpy as np

from .dsl import Case, c, f32, i64, node, o, p, s64


def cases():
    yield from scatters()
    yield from gathers()
    yield from blocks()
    yield from orders()
    yield from picks()
    yield from levels()


def scatters():
    for axis, indices in [(0, [3, 0]), (1, [[1], [2]]), (-1, [0, 4, 2])]:
        shape = [4, 5, 6]
        shape[axis : axis % 3 + 1] = np.shape(indices)
        yield Case(
            f"scatter_update-{axis}",
            lambda x, i, u, a: o[3].scatter_update(x, i, u, a),
            (f32(4, 5, 6), c(indices, "i64"), f32(*shape), s64(axis)),
            lenient="does not compare updates with data",
        )
    for indices, updates in [
        ([[0, 1], [3, 4]], (2, 6)),
        ([[2], [0]], (2, 5, 6)),
        ([[1, 1, 1]], (1,)),
    ]:
        yield Case(
            f"scatter_nd_update3-{updates}",
            lambda x, i, u: o[4].scatter_nd_update(x, i, u),
            (f32(4, 5, 6), c(indices, "i64"), f32(*updates)),
            lenient="does not compare updates with data",
        )
    for reduction in ("none", "sum", "sub", "prod", "min", "max"):
        for kind in ("f32", "i32"):
            yield Case(
                f"scatter_nd_update15-{reduction}-{kind}",
                lambda x, i, u, r=reduction: o[15].scatter_nd_update(x, i, u, r),
                (
                    p(kind, 4, 5, low=-5, high=5),
                    c([[0], [3]] if reduction == "none" else [[0], [3], [0]], "i64"),
                    p(kind, 2 if reduction == "none" else 3, 5, low=-5, high=5),
                ),
                lenient="does not compare updates with data",
            )
    where = [[0, 1, 4], [2, 0, -1]]
    for axis in (1, -1):
        yield Case(
            f"scatter_elements_update3-{axis}",
            lambda x, i, u, a: o[3].scatter_elements_update(x, i, u, a),
            (f32(4, 5), c(where, "i64"), f32(2, 3), s64(axis)),
            lenient="does not compare indices with updates",
        )
    for reduction, initial in itertools.product(
        ("none", "sum", "prod", "min", "max", "mean"), (True, False)
    ):
        for kind in ("f32", "i32"):
            yield Case(
                f"scatter_elements_update12-{reduction}-{initial}-{kind}",
                lambda x, i, u, a, r=reduction, k=initial: o[12].scatter_elements_update(
                    x, i, u, a, r, k
                ),
                (
                    p(kind, 4, 5, low=-9, high=9),
                    c([[0, 0, 4], [2, 2, 2]] if reduction != "none" else where, "i64"),
                    p(kind, 2, 3, low=-9, high=9),
                    s64(1),
                ),
                lenient="does not compare indices with updates",
                fault="cuts an integer mean toward zero"
                if (reduction, kind) == ("mean", "i32")
                else "",
            )


def gathers():
    yield Case(
        "gather_elements",
        lambda x, i: o[6].gather_elements(x, i, 1),
        (f32(3, 5), p("i64", 3, 4, low=0, high=4)),
    )
    yield Case(
        "gather_elements-negative",
        lambda x, i: o[6].gather_elements(x, i, -2),
        (f32(3, 5), p("i32", 2, 5, low=-3, high=2)),
        lenient="takes other dims that differ",
    )
    for version, batch in itertools.product((5, 8), (0, 1, 2)):
        yield Case(
            f"gather_nd{version}-{batch}",
            lambda x, i, v=version, b=batch: o[v].gather_nd(x, i, b),
            (f32(2, 3, 4, 5), p("i64", 2, 3, 1, low=0, high=1)),
        )
        yield Case(
            f"gather_nd{version}-deep-{batch}",
            lambda x, i, v=version, b=batch: o[v].gather_nd(x, i, b),
            (f32(2, 3, 4, 5), p("i64", 2, 3, 2, low=0, high=1)),
        )


def blocks():
    for mode in ("blocks_first", "depth_first"):
        for data in ((1, 3, 4, 6), (2, 2, 4), (1, 2, 2, 4, 6)):
            yield Case(
                f"space_to_depth-{mode}-{data}",
                lambda x, m=mode: o[1].space_to_depth(x, m, 2),
                (f32(*data),),
            )
        for data in ((1, 8, 3, 2), (2, 4, 3), (1, 16, 2, 3, 1)):
            yield Case(
                f"depth_to_space-{mode}-{data}",
                lambda x, m=mode: o[1].depth_to_space(x, m, 2),
                (f32(*data),),
            )
    for data, block, begin, end in [
        ((2, 3, 3, 5), (1, 1, 2, 3), (0, 0, 1, 0), (0, 0, 0, 1)),
        ((1, 2, 4), (1, 1, 2), (0, 0, 2), (0, 0, 0)),
        ((1, 2, 4, 4, 4), (1, 2, 2, 1, 4), (0,) * 5, (0,) * 5),
    ]:
        yield Case(
            f"space_to_batch-{data}",
            lambda x, b, s, e: o[2].space_to_batch(x, b, s, e),
            (f32(*data), i64(*block), i64(*begin), i64(*end)),
        )
    for data, block, begin, end in [
        ((12, 3, 2, 2), (1, 1, 2, 3), (0, 0, 1, 0), (0, 0, 0, 1)),
        ((4, 2, 3), (1, 1, 2), (0, 0, 2), (0, 0, 1)),
    ]:
        yield Case(
            f"batch_to_space-{data}",
            lambda x, b, s, e: o[2].batch_to_space(x, b, s, e),
            (f32(*data), i64(*block), i64(*begin), i64(*end)),
        )
    for axis, group in ((1, 3), (-1, 2)):
        yield Case(
            f"shuffle_channels-{axis}",
            lambda x, a=axis, g=group: node("ShuffleChannels", 3, [x], axis=a, group=g),
            (f32(2, 6, 4),),
        )


def orders():
    for axes in ([0], [1, -1], []):
        yield Case(
            f"reverse-{axes}",
            lambda x, a: node("Reverse", 1, (x, a), mode="index"),
            (f32(2, 3, 4), i64(*axes)),
        )
    for batch, axis in ((0, 1), (1, 0), (-1, 0)):
        yield Case(
            f"reverse_sequence-{batch}-{axis}",
            lambda x, n, b=batch, a=axis: o[1].reverse_sequence(x, n, b, a),
            (f32(3, 3, 3), p("i32", 3, values=[1, 3, 2])),
        )
    for shift, axes in (([1], [0]), ([2, -1], [1, -1]), ([5], [1]), ([1, 1], [0, 0])):
        yield Case(
            f"roll-{shift}-{axes}",
            lambda x, s, a: o[7].roll(x, s, a),
            (f32(2, 3, 4), i64(*shift), i64(*axes)),
        )
    for exclusive, reverse in itertools.product((True, False), repeat=2):
        for kind in ("f32", "i32"):
            yield Case(
                f"cum_sum-{exclusive}-{reverse}-{kind}",
                lambda x, a, e=exclusive, r=reverse: o[3].cumsum(x, a, e, r),
                (p(kind, 2, 5, low=-3, high=3), s64(-1)),
            )
    for axis in (0, -1, 1):
        yield Case(
            f"one_hot1-{axis}",
            lambda i, d, a, b, k=axis: o[1].one_hot(i, d, a, b, k),
            (p("i64", 2, 3, low=0, high=5), s64(4), c(2.0), c(-1.0)),
        )
    yield Case(
        "one_hot16",
        lambda i, d, a, b: o[16].one_hot(i, d, a, b, 0, "normalize"),
        (p("i64", 5, values=[0, -1, 3, 4, -5]), s64(4), c(2.0), c(-1.0)),
    )


def picks():
    for version, mode, sort in itertools.product((1, 3, 11), ("max", "min"), ("value", "index")):
        for axis, k in ((1, 3), (-1, 1), (0, 2)):
            yield Case(
                f"topk{version}-{mode}-{sort}-{axis}",
                lambda x, n, v=version, m=mode, s=sort, a=axis: o[v].topk(x, n, a, m, s),
                (f32(2, 5, 7), s64(k)),
            )
    yield Case(
        "topk11-stable",
        lambda x, n: o[11].topk(x, n, 1, "max", "value", "i64", True),
        (p("i32", 2, 9, low=0, high=3), s64(5)),
    )
    yield Case("nonzero", lambda x: o[3].non_zero(x, "i64"), (p("i32", 3, 4, low=0, high=1),))


def levels():
    for levels_, low, high in ((256, -1.0, 1.0), (16, 0.0, 1.5), (2, -0.5, 0.5)):
        yield Case(
            f"fake_quantize-{levels_}",
            lambda x, a, b, d, e, n=levels_: o[1].fake_quantize(x, a, b, d, e, n),
            (f32(2, 3, 4), c(low), c(high), c(low), c(high)),
        )
    yield Case(
        "fake_quantize-channels",
        lambda x, a, b, d, e: o[1].fake_quantize(x, a, b, d, e, 255),
        (
            f32(2, 3, 4),
            c(np.array([-1, -2, -0.5]).reshape(1, 3, 1)),
            c(np.array([1, 1.5, 0.5]).reshape(1, 3, 1)),
            c([[[-3.0]]]),
            c([[[5.0]]]),
        ),
    )
