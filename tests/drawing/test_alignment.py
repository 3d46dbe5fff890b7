"""The picture of the axes of a transposed convolution."""

from __future__ import annotations

import pytest

from deconv_ir.drawing.alignment import AxisPicture, draw
from deconv_ir.drawing.pen import Dot, Lines, Rect, Word
from deconv_ir.drawing.png import write_png


def test_sources_are_those_of_the_definition() -> None:
    """full[t] is the sum over s*x + d*k == t."""
    line = AxisPicture(4, 3, 2, 3, 0, 0, 0, 13)
    expected: list[list[int]] = [[] for _ in range(13)]
    for x in range(4):
        for k in range(3):
            expected[2 * x + 3 * k].append(x)
    assert [line.sources(t) for t in range(line.natural)] == [sorted(e) for e in expected]


# Numbers of axes: data, kernel, stride, dilation, output_padding, pad_begin, pad_end, output.
AXES = {
    "pads": [(4, 3, 2, 1, 0, 1, 1, 7)],
    "output_padding": [(3, 3, 3, 1, 2, 0, 0, 11)],
    "zeros at both ends": [(12, 4, 2, 1, 0, -10, -10, 46)],
    "two axes": [(3, 2, 2, 1, 0, 0, 1, 5), (4, 3, 1, 2, 0, 2, 0, 6)],
    "three axes": [(3, 2, 2, 1, 0, 0, 0, 6), (4, 3, 1, 2, 0, 2, 2, 4), (2, 1, 3, 1, 0, 0, 0, 4)],
}


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_everything_is_inside_the_picture(axes: list[tuple[int, ...]]) -> None:
    picture = draw([AxisPicture(*numbers) for numbers in axes], "axes")
    for stroke in picture.strokes:
        match stroke:
            case Rect(x, y, width, height):
                points = [(x, y), (x + width, y + height)]
            case Lines(paths):
                points = [point for path in paths for point in path]
            case Dot(x, y):
                points = [(x, y)]
            case Word(x, y, text, style, _, anchor):
                # A letter of DejaVu Sans is 0.6 of its size wide.
                width = 0.58 * style.size * len(text) * (not stroke.turned)
                share = {"start": 0, "middle": 0.5, "end": 1}[anchor]
                points = [(x - share * width, y), (x + (1 - share) * width, y)]
        assert all(0 <= x <= picture.width and 0 <= y <= picture.height for x, y in points), stroke


def test_it_is_drawn_as_png_as_well() -> None:
    pytest.importorskip("PIL.Image", reason="the diagrams extra is not installed")
    assert write_png(draw([AxisPicture(*AXES["pads"][0])], "axis")).startswith(b"\x89PNG")
