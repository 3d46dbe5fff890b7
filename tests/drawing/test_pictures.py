"""Arrays as pictures of the page."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from drawn_pictures import decoded

from deconv_ir.drawing.page.pictures import colours, pictures_of
from deconv_ir.drawing.palette import DIVERGING, SEQUENTIAL
from deconv_ir.drawing.png import indexed_png

MAX_BYTES = 1 << 20


@pytest.mark.parametrize("anchors", [SEQUENTIAL, DIVERGING])
def test_another_reader_reads_the_images(anchors: tuple[str, ...]) -> None:
    image = pytest.importorskip("PIL.Image", reason="the diagrams extra is not installed")
    shades = np.array([[0, 253], [254, 255]], np.uint8)
    read = image.open(io.BytesIO(indexed_png(shades, colours(anchors))))
    ends = [
        tuple(int(text[k : k + 2], 16) for k in (1, 3, 5)) for text in (anchors[0], anchors[-1])
    ]
    pixels = [read.convert("RGB").getpixel(at) for at in ((0, 0), (1, 0), (0, 1), (1, 1))]
    assert pixels == [*ends, (0x80, 0x80, 0x80), (0xFF, 0, 0xFF)]


def test_feature_maps_stand_side_by_side() -> None:
    array = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    (picture,) = pictures_of(array, MAX_BYTES)
    assert (picture["low"], picture["high"]) == (0, 59)
    assert picture["note"] == "the first of 2"
    shown = decoded(picture)
    assert shown.shape == (2 * 5 + 1, 2 * 6 + 1)
    for k, (y, x) in enumerate(((1, 1), (1, 7), (6, 1))):
        expected = np.round(array[0, k] / 59 * 253)
        np.testing.assert_array_equal(shown[y : y + 4, x : x + 5], expected)
    assert (shown[6:, 7:] == 254).all()  # only three maps exist


def test_volumes_are_shown_as_slices() -> None:
    array = np.random.default_rng(0).standard_normal((1, 2, 9, 4, 4))
    (picture,) = pictures_of(array, MAX_BYTES)
    assert "slices 0, 2, 3, 5, 6, 8 of 9; 2 of 2 channels" in picture["note"]
    assert decoded(picture).shape == (2 * 5 + 1, 6 * 5 + 1)


def test_signals_are_lines_that_keep_their_peaks() -> None:
    signal = np.zeros((1, 2, 10_000), np.float16)
    signal[0, 1, 7777] = 5
    (picture,) = pictures_of(signal, MAX_BYTES)
    assert [len(line) for line in picture["line"]] == [300, 300]
    assert [max(line) for line in picture["line"]] == [0, 5]


def test_what_is_not_finite_has_a_colour_of_its_own() -> None:
    array = np.array([[[[1.0, math.nan], [math.inf, 3.0]]]])
    (picture,) = pictures_of(array, MAX_BYTES)
    assert (picture["low"], picture["high"]) == (1, 3)
    assert decoded(picture)[1:3, 1:3].tolist() == [[0, 255], [255, 253]]
    (picture,) = pictures_of(np.full((1, 1, 2, 2), np.nan), MAX_BYTES)
    assert picture["low"] == "nan"


def test_differences_have_zero_in_the_middle() -> None:
    array = np.array([[[[-1.0, 0.0], [0.5, 0.0]]]])
    (picture,) = pictures_of(array, MAX_BYTES, signed=True)
    assert decoded(picture)[1:3, 1:3].tolist() == [[0, 126], [190, 126]]


@pytest.mark.parametrize("limit", [400, 4000, 20_000])
def test_pictures_keep_to_their_size(limit: int) -> None:
    array = np.random.default_rng(0).standard_normal((1, 64, 128, 128)).astype(np.float32)
    found = pictures_of(array, limit)
    assert bool(found) == (limit > 400)
    for picture in found:
        assert len(str(picture)) <= limit
        assert "channels" in picture["note"]


@pytest.mark.parametrize(
    "array",
    [np.zeros((0, 3)), np.array(["a"]), np.zeros((1, 1, 1, 1, 1, 2)), np.array([1j])],
    ids=["empty", "strings", "six axes", "complex"],
)
def test_what_cannot_be_drawn_is_left_out(array: np.ndarray) -> None:
    assert pictures_of(array, MAX_BYTES) == []


def test_all_kinds_of_numbers() -> None:
    import ml_dtypes

    for dtype in (np.bool_, np.int8, np.uint64, np.float64, ml_dtypes.bfloat16):
        (picture,) = pictures_of(np.array([[[[0, 1], [1, 0]]]]).astype(dtype), MAX_BYTES)
        assert decoded(picture)[1:3, 1:3].tolist() == [[0, 253], [253, 0]]


@pytest.mark.parametrize(
    "values", [[0.86597, 0.86599, 0.86601], [1e308, -1e308], [5.0, 5.0], [0.0]]
)
def test_lines_of_a_narrow_range(values: list[float]) -> None:
    """A chart shows a range as high as itself, so points differ by a thousandth of it at most."""
    (picture,) = pictures_of(np.array(values), MAX_BYTES)
    (points,) = picture["line"]
    span = max(values) / 2 - min(values) / 2
    for point, value in zip(points, values, strict=True):
        assert abs(point / 2 - value / 2) <= span / 1000
