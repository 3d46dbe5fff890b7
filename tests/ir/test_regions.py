"""Boxes, and the regions of windows found by trying every element."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from deconv_ir.ir.boxes import hull, inside, nearest_element, partial_axes
from deconv_ir.ir.geometry import Axis, transposed_reach, window_reach


def test_boxes() -> None:
    assert hull([((0, 2), (4, 5)), ((1, 3), (4, 6))]) == ((0, 3), (4, 6))
    assert inside(((3, 5),), ((2, 9),)) == (slice(1, 3),)
    assert partial_axes(((0, 3), (0, 2)), (3, 3)) == (1,)
    assert nearest_element((-4, -2), 3) == (0, 1)
    assert nearest_element((7, 9), 3) == (2, 3)
    assert nearest_element((7, 9), 0) == (0, 0)


AXES = st.tuples(
    st.integers(1, 4), st.integers(1, 4), st.integers(-5, 9), st.integers(1, 9), st.integers(1, 6)
)
SPANS = st.tuples(st.integers(0, 12), st.integers(1, 6))


@settings(max_examples=300, deadline=None)
@given(AXES, SPANS)
def test_reach_is_that_of_the_sums_written_out(
    axis: tuple[int, ...], span: tuple[int, int]
) -> None:
    stride, dilation, pad, data, kernel = axis
    first, count = span
    wanted = range(first, first + count)
    windows = {
        x
        for y in wanted
        for k in range(kernel)
        for x in range(data)
        if x == stride * y + dilation * k - pad
    }
    transposed = {
        x
        for y in wanted
        for k in range(kernel)
        for x in range(data)
        if stride * x + dilation * k == y + pad
    }
    for reach, expected in ((window_reach, windows), (transposed_reach, transposed)):
        found = reach(Axis(stride, dilation), pad, data, kernel, (first, first + count))
        assert found == ((min(expected), max(expected) + 1) if expected else None)
