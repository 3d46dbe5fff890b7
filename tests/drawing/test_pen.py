"""The pen: each stroke as SVG and as PNG."""

from __future__ import annotations

import io
import typing
from itertools import pairwise

import numpy as np
import pytest
from lxml import etree

from deconv_ir.drawing.pen import (
    TEXT,
    TITLE,
    Curve,
    Dot,
    Lines,
    Picture,
    Point,
    Rect,
    Stroke,
    Word,
    moved,
    on_curve,
)
from deconv_ir.drawing.png import SCALE, write_png
from deconv_ir.drawing.svg import write_svg

RED = "#ff0000"
BLUE = "#0000ff"
TRIANGLE = [[(10, 10), (30, 10), (30, 20)], [(10, 30), (10, 40)]]

# A stroke, its element and some attributes in SVG, points of its colour, and points without it.
Case = tuple[Stroke, str, dict[str, str | None], list[Point], list[Point]]
STROKES: dict[str, Case] = {
    "rectangle": (
        Rect(10, 20, 30, 8, RED, BLUE),
        "rect",
        {"x": "10.0", "width": "30.0", "rx": "5", "stroke-width": "1.2", "stroke-dasharray": None},
        [(25, 24)],
        [(5, 24), (45, 24), (25, 32)],
    ),
    "rectangle without border": (
        Rect(10, 20, 30, 8, RED, None, corner=0),
        "rect",
        {"rx": None, "stroke": None, "fill": RED},
        [(25, 24), (10.5, 20.5)],
        [(9, 24)],
    ),
    "dashed border alone": (
        Rect(10, 20, 30, 8, None, RED, 1, 0, dashed=True),
        "rect",
        {"fill": "none", "stroke": RED, "stroke-dasharray": "2 1.6"},
        [(11, 20), (14.6, 20), (11, 28.2)],
        [(25, 24), (12.9, 20)],
    ),
    "curve": (
        Curve(20, 10, 20, 40, RED, arrow=True),
        "path",
        {"d": "M20.0 10.0C20.0 25.0 20.0 25.0 20.0 40.0", "marker-end": "url(#deconv-arrow)"},
        [(20, 15), (18, 34), (22, 34)],
        [(18, 15)],
    ),
    "lines": (
        Lines(TRIANGLE, RED, 1.5),
        "path",
        {"d": "M10.0 10.0 30.0 10.0 30.0 20.0M10.0 30.0 10.0 40.0", "stroke-width": "1.5"},
        [(20, 10), (30, 15), (10, 35)],
        [(20, 15), (10, 25)],
    ),
    "dot": (
        Dot(20, 30, 4, RED),
        "circle",
        {"cx": "20.0", "cy": "30.0", "r": "4.0", "fill": RED},
        [(20, 30), (23, 30), (20, 27)],
        [(24.6, 30), (23.5, 33.5)],
    ),
}


def element(stroke: Stroke) -> etree._Element:
    root = etree.fromstring(write_svg(Picture("a", 60, 60, [stroke])).encode())
    return root[-1]


def pixels(*strokes: Stroke) -> np.ndarray:
    image = pytest.importorskip("PIL.Image", reason="the diagrams extra is not installed")
    data = write_png(Picture("a", 60, 60, strokes))
    return np.asarray(image.open(io.BytesIO(data)).convert("RGB"))


def is_red(image: np.ndarray, x: float, y: float) -> bool:
    red, green, blue = image[round(y * SCALE), round(x * SCALE)]
    return bool(red > 200 and green < 100 and blue < 100)


def test_all_kinds_of_strokes_are_tested() -> None:
    kinds = {type(stroke) for stroke, *_ in STROKES.values()} | {Word}
    assert kinds == set(typing.get_args(Stroke))


@pytest.mark.parametrize("case", STROKES.values(), ids=STROKES)
def test_svg(case: Case) -> None:
    stroke, tag, attributes, _, _ = case
    found = element(stroke)
    assert etree.QName(found).localname == tag
    assert {name: found.get(name) for name in attributes} == attributes


@pytest.mark.parametrize("case", STROKES.values(), ids=STROKES)
def test_png(case: Case) -> None:
    stroke, *_, on, off = case
    for right in (0, 6):
        image = pixels(moved(stroke, right))
        assert all(is_red(image, x + right, y) for x, y in on)
        assert not any(is_red(image, x + right, y) for x, y in off)


@pytest.mark.parametrize(
    ("anchor", "turned", "box"),
    [
        # x from, x to, y from, y to: where the letters are, within a few pixels
        ("start", False, (30, 58, 22, 30)),
        ("middle", False, (16, 44, 22, 30)),
        ("end", False, (2, 30, 22, 30)),
        ("start", True, (22, 30, 2, 30)),
        ("middle", True, (22, 30, 16, 44)),
        ("end", True, (22, 30, 30, 58)),
    ],
)
def test_words_begin_or_end_at_their_anchor(
    anchor: str, turned: bool, box: tuple[int, int, int, int]
) -> None:
    word = Word(30, 30, "HHHH", TEXT, "#000000", anchor, turned=turned)
    found = element(word)
    assert (found.get("text-anchor"), found.get("font-size")) == (anchor, "10.5")
    assert found.get("transform") == ("rotate(-90 30.0 30.0)" if turned else None)
    ys, xs = np.nonzero(pixels(word).sum(axis=2) < 300)
    ends = [v / SCALE for v in (xs.min(), xs.max() + 1, ys.min(), ys.max() + 1)]
    assert ends == pytest.approx(box, abs=2)


def test_a_halo_hides_the_line_behind_a_word() -> None:
    line = Lines([[(0, 26), (60, 26)]], RED, 1)
    word = Word(20, 30, "H H", TEXT, "#000000", "start")
    plain, hidden = pixels(line, word), pixels(line, word._replace(halo=True))

    def red(image: np.ndarray) -> int:
        return int(np.count_nonzero((image[..., 0] > 200) & (image[..., 1] < 100)))

    assert red(hidden) < red(plain)
    assert element(Word(0, 0, "H", TEXT, RED, halo=True)).get("paint-order") == "stroke"
    assert element(Word(0, 0, "H", TITLE, RED)).get("font-weight") == "600"


@pytest.mark.parametrize("t", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_points_of_curves_by_de_casteljau(t: float) -> None:
    points = [np.array(p) for p in ((3, 7), (3, 18), (40, 18), (40, 29))]
    while len(points) > 1:
        points = [a + t * (b - a) for a, b in pairwise(points)]
    np.testing.assert_allclose(on_curve(3, 7, 40, 29, t), points[0])


@pytest.mark.parametrize("text", ['<b> & "c"', "\0\x1b\ud800", "]]>"])
def test_any_text_gives_a_valid_document(text: str) -> None:
    picture = Picture(text, 60, 60, [Word(0, 10, text, TEXT, RED)])
    root = etree.fromstring(write_svg(picture).encode())
    legal = text if text.isprintable() else "\N{REPLACEMENT CHARACTER}" * len(text)
    assert [e.text for e in (root[0], root[-1])] == [legal, legal]
