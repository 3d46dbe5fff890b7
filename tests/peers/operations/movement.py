"""Operations that move elements, and operations that compute shapes."""

from __future__ import annotations

import numpy as np

from .dsl import Case, c, f32, i64, node, o, p, s64


def cases():
    yield from gathers()
    yield from slices()
    yield from joins()
    yield from shapes()
    yield from reductions()
    yield from pads()


def gathers():
    for name, data, indices, axis in [
        ("a", (4, 5), [[0, 3], [2, 1]], 0), ("b", (4, 5), [4], 1), ("c", (2, 3, 4), 2, -1),
        ("d", (2, 3, 4), [[1, 0]], 1),
    ]:  # fmt: skip
        for version in (1, 7, 8):
            yield Case(
                f"gather{version}-{name}",
                lambda x, i, a, v=version: o[v].gather(x, i, a),
                (f32(*data), c(indices, "i64"), s64(axis)),
            )
    for version, batch, axis in [(7, 1, 1), (7, 1, 2), (8, 1, 2), (8, -1, 2), (8, 2, 2), (7, 0, 1)]:
        yield Case(
            f"gather{version}-batch{batch}-axis{axis}",
            lambda x, i, a, v=version, b=batch: o[v].gather(x, i, a, b),
            (f32(2, 3, 4, 5), p("i64", 2, 3, low=0, high=2, fixed=batch < 0), s64(axis)),
        )
    yield Case(
        "gather8-negative-and-outside",
        lambda x, i, a: o[8].gather(x, i, a),
        (f32(4, 5), p("i32", 6, values=[-1, -4, 3, 4, -5, 0]), s64(0)),
    )


def slices():
    for name, data, start, stop, step, axes in [
        ("plain", (5, 6), [1], [4], [1], [1]), ("negative", (5, 6), [-3], [-1], [1], [0]),
        ("back", (5, 6), [9, 4], [-9, 0], [-1, -2], [1, 0]), ("far", (7,), [-99], [99], [3], [0]),
        ("max", (7,), [2], [2**63 - 1], [2], [0]), ("empty", (7,), [5], [2], [1], [0]),
        ("min", (7,), [6], [-(2**63)], [-1], [0]), ("mixed", (9, 3), [-5], [7], [1], [0]),
        ("mixed2", (9, 3), [2], [-3], [1], [0]), ("mixed3", (9, 3), [-2], [3], [-1], [-2]),
    ]:  # fmt: skip
        yield Case(
            f"slice-{name}",
            lambda x, a, b, s, k: o[8].slice(x, a, b, s, k),
            (f32(*data), i64(*start), i64(*stop), i64(*step), i64(*axes)),
        )
    yield Case(
        "slice-no-axes",
        lambda x, a, b, s: o[8].slice(x, a, b, s),
        (f32(5, 6), i64(1, 2), i64(3, 5), i64(1, 1)),
    )
    for name, data, begin, end, stride, masks in [
        ("plain", (5, 6), [1, 2], [4, 5], [1, 2], ([0, 0], [0, 0])),
        ("masks", (5, 6), [1, 2], [4, 5], [2, 1], ([1, 0], [0, 1])),
        ("back", (5, 6), [4, 5], [0, -7], [-1, -2], ([0, 0], [0, 0])),
        ("new", (5, 6), [0, 1], [0, 4], [1, 1], ([0, 0], [0, 0], [1, 0])),
        ("shrink", (5, 6), [2, 1], [3, 4], [1, 1], ([0, 0], [0, 0], [0, 0], [1, 0])),
        ("shrink-", (5, 6), [0, -2], [3, 9], [1, 1], ([1, 0], [1, 0], [0, 0], [0, 1])),
        ("ellipsis", (2, 3, 4, 5), [0, 1], [0, 4], [1, 2],
         ([0, 0], [0, 0], [0, 0], [0, 0], [1, 0])),
        ("short", (5, 6, 7), [1], [3], [1], ([0], [0])),
        ("outside", (5,), [-9], [9], [1], ([0], [0])),
    ]:  # fmt: skip
        yield Case(
            f"strided_slice-{name}",
            lambda x, a, b, s, m=masks: o[1].strided_slice(x, a, b, s, *m),
            (f32(*data), i64(*begin), i64(*end), i64(*stride)),
        )
    yield Case(
        "strided_slice-no-stride",
        lambda x, a, b: node(
            "StridedSlice",
            1,
            (x, a, b),
            begin_mask=[0],
            end_mask=[0],
            new_axis_mask=[],
            shrink_axis_mask=[],
            ellipsis_mask=[],
        ),
        (f32(5, 6), i64(1), i64(3)),
    )


def joins():
    for axis in (1, -2):
        yield Case(
            f"concat{axis}",
            lambda *x, a=axis: o[1].concat(list(x), a),
            (f32(2, 3, 4), f32(2, 1, 4), f32(2, 5, 4)),
        )
    yield Case("concat-one", lambda x: o[1].concat([x], 0), (p("i32", 3),))
    for axis in (1, -2):
        yield Case(f"split{axis}", lambda x, a: o[1].split(x, a, 3), (f32(2, 6, 4), s64(axis)))
    for lengths in ([1, 2, 3], [2, -1, 1], [-1], [6, 0]):
        yield Case(
            f"variadic_split{lengths}",
            lambda x, a, n: o[1].variadic_split(x, a, n),
            (f32(2, 6), s64(1), i64(*lengths)),
            dynamic=0 not in lengths,
        )
    for axes in ([0], [1], [-1, 0]):
        yield Case(f"unsqueeze{axes}", lambda x, a: o[1].unsqueeze(x, a), (f32(2, 3), i64(*axes)))
    for axes in ([0], [-2], [0, 2]):
        for version in (1, 15):
            yield Case(
                f"squeeze{version}-{axes}",
                lambda x, a, v=version: o[v].squeeze(x, a),
                (f32(1, 3, 1, 4), i64(*axes)),
                lenient="keeps an axis that is not 1",
            )
    yield Case("squeeze1-all", lambda x: node("Squeeze", 1, [x]), (f32(1, 3, 1, 4),))
    yield Case(
        "squeeze15-skip", lambda x, a: o[15].squeeze(x, a, True), (f32(1, 3, 1, 4), i64(0, 1))
    )
    for order in ([2, 0, 1], [0, 1, 2], []):
        yield Case(
            f"transpose{order}", lambda x, a: o[1].transpose(x, a), (f32(2, 3, 4), i64(*order))
        )


def shapes():
    for data, target in [((1, 3), [2, 3]), ((3,), [2, 2, 3]), ((), [2]), ((2, 1), [2, 5])]:
        for version in (1, 3):
            yield Case(
                f"broadcast{version}-{data}-{target}",
                lambda x, t, v=version: o[v].broadcast(x, t),
                (f32(*data), i64(*target)),
            )
    for data, target in [((3, 1), [2, 1, 4]), ((2, 3), [1]), ((2, 3, 4), [3, 1])]:
        yield Case(
            f"broadcast3-bidirectional-{data}-{target}",
            lambda x, t: o[3].broadcast(x, t, broadcast_spec="BIDIRECTIONAL"),
            (f32(*data), i64(*target)),
        )
    for data, target, axes in [((3,), [2, 3, 4], [1]), ((2, 4), [2, 3, 4], [0, 2])]:
        for version in (1, 3):
            yield Case(
                f"broadcast{version}-explicit-{data}-{target}",
                lambda x, t, a, v=version: o[v].broadcast(x, t, a, "EXPLICIT"),
                (f32(*data), i64(*target), i64(*axes)),
            )
    for data, repeats in [((2, 3), [2, 1]), ((3,), [2, 2]), ((2, 3, 4), [2]), ((), [3])]:
        yield Case(
            f"tile-{data}-{repeats}", lambda x, r: o[1].tile(x, r), (f32(*data), i64(*repeats))
        )
    for start, stop, step in [(0, 5, 1), (5, 0, -2), (2, 2, 1), (0, 7, 3)]:
        for kind in ("i64", "f32"):
            yield Case(
                f"range4-{start}-{stop}-{step}-{kind}",
                lambda a, b, s, k=kind: node("Range", 4, (a, b, s), output_type=k),
                (s64(start), s64(stop), s64(step)),
            )
    yield Case("range1", lambda a, b, s: o[1].range(a, b, s), (s64(1), s64(8), s64(3)))
    yield Case("shape_of1", lambda x: o[1].shape_of(x), (f32(2, 3, 4),))
    yield Case(
        "range4-floats",
        lambda a, b, s: node("Range", 4, (a, b, s), output_type="f32"),
        (c(0.5), c(3.1), c(0.3)),
    )
    yield Case(
        "range4-parameters",
        lambda a, b, s: node("Range", 4, (a, b, s), output_type="i64"),
        (p("i64", values=2), p("i64", values=9), p("i64", values=3)),
    )
    for kind in ("i32", "i64"):
        yield Case(f"shape_of-{kind}", lambda x, k=kind: o[3].shape_of(x, k), (f32(2, 3, 4),))
    for target, zero in [([0, -1], True), ([6, 4], False), ([-1], False), ([2, 0, 2, 2], True)]:
        yield Case(
            f"reshape-{target}",
            lambda x, t, z=zero: o[1].reshape(x, t, z),
            (f32(2, 3, 4), i64(*target)),
            dynamic=target != [6, 4],
            lenient="takes a -1 for 1 or greater, also without elements" if target == [-1] else "",
        )
    yield from chains()


def chains():
    """Yield shapes computed in the graph that end in a Reshape or a Broadcast."""

    def const(values):
        return o[1].constant(np.array(values, np.int64))

    def dims(x, *axes):
        return o[8].gather(o[3].shape_of(x), const(list(axes)),
                           const(0))  # fmt: skip

    def flatten(x):
        whole = o[1].reduce_prod(dims(x, 1, 2), const([0]), True)
        return o[1].reshape(x, o[1].concat([dims(x, 0), whole], 0), False)

    def double(x):
        twice = o[1].multiply(dims(x, 0, 1), const([2, 1]))
        target = o[1].concat([twice, dims(x, 2)], 0)
        return o[3].broadcast(o[1].constant(np.float32(1)), target)

    def padded(x):
        more = o[1].subtract(o[1].add(dims(x, 2), const([7])), dims(x, 1))
        more = o[1].maximum(more, const([1]))
        return o[3].broadcast(o[1].constant(np.float32(1)), more)

    def halved(x):
        half = o[1].divide(dims(x, 1, 2), const([2]))
        rest = o[1].floor_mod(dims(x, 0), const([3]))
        return o[3].broadcast(o[1].constant(np.float32(1)), o[1].concat([half, rest], 0))

    def cut(x):
        shape = o[3].shape_of(x)
        tail = o[1].strided_slice(shape, const([1]), const([3]),
                                  const([1]), [0], [0])  # fmt: skip
        return o[3].broadcast(o[1].constant(np.float32(1)), tail)

    def selected(x):
        shape = o[3].shape_of(x)
        asked = const([-1, 5, -1])
        keep = o[1].equal(asked, const(-1))
        return o[3].broadcast(o[1].constant(np.float32(1)), o[1].select(keep, shape, asked))

    def sliced(x):
        end = o[1].subtract(dims(x, 1), const([1]))
        one = const([1])
        return o[8].slice(x, const([0]), end, one, one)

    def split(x):
        shape = o[1].convert(o[3].shape_of(x), "i32")
        n, h, w = o[1].split(shape, const(0), 3).outputs()
        return o[1].reshape(x, o[1].concat([w, h, n], 0), False)

    def ranged(x):
        n = o[1].squeeze(dims(x, 1), const([0]))
        return o[4].range(const(1), n, const(2), "i64")

    def unsqueezed(x):
        h = o[8].gather(o[3].shape_of(x), const(1), const(0))
        h = o[1].unsqueeze(h, const(0))
        tiled = o[1].tile(h, const([2]))
        return o[3].broadcast(o[1].constant(np.float32(1)), tiled)

    for build in (
        flatten,
        double,
        padded,
        halved,
        cut,
        selected,
        sliced,
        split,
        ranged,
        unsqueezed,
    ):
        yield Case(f"chain-{build.__name__}", build, (f32(2, 3, 4),))


def reductions():
    for name, version in [
        ("sum", 1), ("mean", 1), ("max", 1), ("min", 1), ("prod", 1), ("l1", 4), ("l2", 4),
    ]:  # fmt: skip
        for axes, keep in [([1], True), ([0, -1], False), ([], False), ([0, 1, 2], False)]:
            for kind in ("f32", "f16", "i32"):
                if (kind == "f16" and len(axes) != 1) or (name, kind, axes) == ("l2", "i32", []):
                    continue
                yield Case(
                    f"reduce_{name}-{kind}-{axes}-{keep}",
                    lambda x, a, n=name, v=version, k=keep: getattr(o[v], f"reduce_{n}")(x, a, k),
                    (p(kind, 2, 3, 4, low=-3, high=3), i64(*axes)),
                    fault="" if axes else "refuses a constant empty list of axes",
                )
    for name in ("logical_and", "logical_or"):
        yield Case(
            f"reduce_{name}",
            lambda x, a, n=name: getattr(o[1], f"reduce_{n}")(x, a, False),
            (p("boolean", 2, 3, 4), i64(1)),
        )


def pads():
    for mode in ("constant", "edge", "reflect", "symmetric"):
        for version in (1, 12):
            yield Case(
                f"pad{version}-{mode}",
                lambda x, b, e, m=mode, v=version: o[v].pad(x, b, e, m),
                (f32(2, 5, 6), i64(0, 2, 1), i64(0, 1, 3)),
                dynamic=mode in ("constant", "edge"),
            )
        yield Case(
            f"pad12-{mode}-negative",
            lambda x, b, e, m=mode: o[12].pad(x, b, e, m),
            (f32(2, 5, 6), i64(0, -2, 1), i64(0, 1, -3)),
            dynamic=False,
        )
    for version in (1, 12):
        yield Case(
            f"pad{version}-value",
            lambda x, b, e, k, v=version: o[v].pad(x, b, e, "constant", k),
            (f32(2, 5), i64(1, 2), i64(0, 1), c(1.5)),
        )
