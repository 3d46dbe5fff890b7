"""The regions that layers need, by trying every element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import IR

import deconv_ir
from deconv_ir import Model
from deconv_ir.ir.boxes import Box, hull, inside, nearest_element, partial_axes
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


def layer(kind: str, inputs: list[np.ndarray], attributes: dict[str, str], version: str) -> Model:
    ir = IR()
    sources = [ir.parameter("x", "1,1,13"), *map(ir.const, inputs)]
    ir.result(ir.layer(kind, sources, attributes, version=version))
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), accuracy="direct", warn=False)


WINDOW = {"strides": "2", "dilations": "2", "pads_begin": "3", "pads_end": "1"}
FILTER = np.array([[[1.0, 2.0, 3.0]]], np.float32)
PADS = [np.array(pads, np.int64) for pads in ([0, 0, 3], [0, 0, 2])]
MINIMAL = [
    ("Convolution", [FILTER], WINDOW, "opset1"),
    ("ConvolutionBackpropData", [FILTER], WINDOW, "opset1"),
    ("ConvolutionBackpropData", [FILTER], WINDOW | {"strides": "3", "dilations": "1"}, "opset1"),
    ("AvgPool", [], WINDOW | {"kernel": "3", "exclude-pad": "true"}, "opset16"),
    ("Pad", PADS, {"pad_mode": "reflect"}, "opset12"),
    ("Pad", PADS, {"pad_mode": "edge"}, "opset12"),
    (
        "Interpolate",
        [np.array([29], np.int64), np.ones(1, np.float32), np.array([2], np.int64)],
        {"mode": "linear", "shape_calculation_mode": "sizes"},
        "opset4",
    ),
    ("Slice", [np.array([v]) for v in (11, 1, -2, 2)], {}, "opset8"),
    ("ReLU", [], {}, "opset1"),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "version"), MINIMAL)
def test_regions_are_minimal(
    kind: str, inputs: list[np.ndarray], attributes: dict[str, str], version: str
) -> None:
    """The first and the last element of each region change the tile; no element beyond does."""
    model = layer(kind, inputs, attributes, version)
    tiles = model.tiled()
    x = np.random.default_rng(0).uniform(1, 2, (1, 1, 13)).astype(np.float32)
    (y,) = model.run(x).values()
    for start in range(y.shape[2]):
        for stop in range(start + 1, min(start + 4, y.shape[2]) + 1):
            box: Box = ((0, 1), (0, 1), (start, stop))
            low, high = tiles.tile(box).inputs["x"][2]
            changed = set()
            for at in range(13):
                other = x.copy()
                other[..., at] = np.inf  # which a weight of 0 shows as well
                if not np.array_equal(
                    *(a[..., start:stop] for a in (y, *model.run(other).values()))
                ):
                    changed.add(at)
            assert changed <= set(range(low, high))
            if changed:
                assert {low, high - 1} <= changed
            else:
                assert high - low == 1  # an array that nothing reads
