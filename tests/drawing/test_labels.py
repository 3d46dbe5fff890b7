"""The texts of tensors cover neither lines nor boxes nor each other."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from drawn_networks import graph_of, random_network, sketch
from lxml import etree
from support import IR

import deconv_ir
from deconv_ir.drawing.graph.sketch import svg_of
from deconv_ir.ir.graph import Graph

DRAWN = Path(__file__).parents[1] / "fixtures/drawn"
Box = tuple[float, float, float, float]


def fork(ways: int) -> Graph:
    """A tensor that goes to several layers, whose outputs meet again."""
    ir = IR()
    x = ir.layer("ReLU", [ir.parameter("x", "1,8,24,24")], outputs=("1,8,24,24",), name="relu")
    kinds = itertools.islice(itertools.cycle(("Abs", "Exp", "Sigmoid")), ways)
    branches = [ir.layer(kind, [x], outputs=("1,8,24,24",), name=f"b{k}")
                for k, kind in enumerate(kinds)]  # fmt: skip
    dims = f"1,{8 * ways},24,24"
    both = ir.layer("Concat", branches, {"axis": "1"}, outputs=(dims,), name="all")
    ir.result(both, "y")
    return graph_of(ir)


def split() -> Graph:
    """Two tensors leave a box at one point; the lines of both meet again."""
    ir = IR()
    import numpy as np

    x = ir.parameter("x", "1,24,8,8")
    axis = ir.const(np.array(1), "axis")
    at, first = ir.layer("Split", [x, axis], {"num_splits": "2"}, outputs=("1,12,8,8",) * 2)
    parts = [ir.layer(kind, [(at, first + k)], outputs=("1,12,8,8",), name=kind)
             for k, kind in enumerate(("Abs", "Exp"))]  # fmt: skip
    ir.result(ir.layer("Add", parts, outputs=("1,12,8,8",), name="sum"), "y")
    return graph_of(ir)


def labels_and_curves(svg: str) -> tuple[list[Box], list[list[tuple[float, float]]]]:
    """Read an SVG: the rectangles of labels, 9.5 pixels high, and points of the curves."""
    root = etree.fromstring(svg.encode())
    labels = []
    for text in root.iter("{*}text"):
        if text.get("font-size") == "9.5":
            x, y, count = float(text.get("x")), float(text.get("y")), len(text.text)
            labels.append((x, y - 6.5, x + 5 * count, y))
    curves = []
    for path in root.iter("{*}path"):
        if path.get("fill") != "none":
            continue
        n = [float(v) for v in re.findall(r"-?[\d.]+", path.get("d"))]
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = zip(n[::2], n[1::2], strict=True)
        points = []
        for k in range(201):
            t = k / 200
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            points.append((
                sum(w * v for w, v in zip(weights, (x0, x1, x2, x3), strict=True)),
                sum(w * v for w, v in zip(weights, (y0, y1, y2, y3), strict=True)),
            ))  # fmt: skip
        curves.append(points)
    return labels, curves


FORKS = {
    **{f"{ways} ways": fork(ways) for ways in (2, 3, 4)},
    "split": split(),
    "If": deconv_ir.load(DRAWN / "if_with_loop.xml", warn=False).graph,
}


@pytest.mark.parametrize("name", FORKS)
def test_labels_at_forks_are_beside_the_lines(name: str) -> None:
    labels, curves = labels_and_curves(svg_of(sketch(FORKS[name])))
    assert labels
    for left, top, right, bottom in labels:
        for points in curves:
            assert not any(left < x < right and top < y < bottom for x, y in points)
    for a, b in itertools.combinations(labels, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_few_labels_of_a_tangle_cover_a_line() -> None:
    covered = total = 0
    for seed in range(4):
        labels, curves = labels_and_curves(svg_of(sketch(graph_of(random_network(seed, 60)))))
        total += len(labels)
        covered += sum(
            any(left < x < right and top < y < bottom for points in curves for x, y in points)
            for left, top, right, bottom in labels
        )
    assert covered < total / 4
