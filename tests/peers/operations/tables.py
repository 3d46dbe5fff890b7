"""Sums of rows of tables, sparse rows, and the beams of a beam search."""

from __future__ import annotations

import itertools

import numpy as np

from .dsl import Case, c, i64, node, p


def cases():
    yield from embeddings()
    yield from sparse()
    yield from beams()


def embeddings():
    table = (6, 3, 2)
    for kind, default, weighted in itertools.product(("f32", "i32"), (None, 0, -1), (False, True)):
        if weighted and default is None:
            continue  # the default is the input before the weights
        more = () if default is None else (c(default, "i32"),)
        weights = (p(kind, 5),) if weighted else ()
        tail = (*more, *weights)
        bags = (c([0, 2, 5, 3, 0], "i32"), c([0, 2, 2], "i32"))
        for version, name, reductions in (
            (3, "EmbeddingBagOffsetsSum", [{}]),
            (15, "EmbeddingBagOffsets", [{"reduction": "sum"}, {"reduction": "mean"}]),
        ):
            for attributes in reductions:
                if weighted and attributes.get("reduction") == "mean":
                    continue
                yield Case(
                    f"{name}-{kind}-{default}-{weighted}-{attributes.get('reduction')}",
                    lambda *i, v=version, n=name, a=attributes: node(n, v, i, **a),
                    (p(kind, *table, low=-4, high=4), *bags, *tail),
                )
        if default != -1:
            yield Case(
                f"embedding_segments_sum-{kind}-{default}-{weighted}",
                lambda *i: node("EmbeddingSegmentsSum", 3, i),
                (
                    p(kind, *table, low=-4, high=4), c([0, 2, 5, 3, 0], "i32"),
                    c([0, 0, 2, 2, 2], "i32"), c(4, "i32"), *tail,
                ),
            )  # fmt: skip
    for kind, weighted in itertools.product(("f32", "i32"), (False, True)):
        packed = c([[0, 1, 2], [5, 5, 3]], "i32")
        for version, name, attributes in (
            (3, "EmbeddingBagPackedSum", {}),
            (15, "EmbeddingBagPacked", {"reduction": "sum"}),
            (15, "EmbeddingBagPacked", {"reduction": "mean"}),
        ):
            if not (weighted and attributes.get("reduction") == "mean"):
                yield Case(
                    f"{name}-{kind}-{weighted}-{attributes.get('reduction')}",
                    lambda *i, v=version, n=name, a=attributes: node(n, v, i, **a),
                    (p(kind, *table, low=-4, high=4), packed, *[p(kind, 2, 3)] * weighted),
                )


def sparse():
    for kind, indices in itertools.product(
        ("f32", "i64"), ([[0, 1], [0, 3], [2, 0], [3, 1]], [[3, 1], [0, 3], [0, 1], [2, 0]])
    ):
        yield Case(
            f"sparse_fill_empty_rows-{kind}-{indices[0]}",
            lambda v, s, i, d: node("SparseFillEmptyRows", 16, (v, s, i, d)),
            (p(kind, 4), i64(5, 6), p("i64", 4, 2, values=indices), p(kind)),
            dynamic=False,
        )


def beams():
    rng = np.random.default_rng(0)
    for kind in ("i32", "f32"):
        yield Case(
            f"gather_tree-{kind}",
            lambda s, q, m, e: node("GatherTree", 1, (s, q, m, e)),
            (
                p(kind, 6, 2, 3, values=rng.integers(0, 6, (6, 2, 3))),
                p(kind, 6, 2, 3, values=rng.integers(0, 3, (6, 2, 3))),
                p(kind, 2, values=[6, 4]),
                p(kind, values=5),
            ),
        )
