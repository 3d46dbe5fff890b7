"""conv_transpose: the function for NumPy users."""

from __future__ import annotations

import numpy as np
import pytest

import deconv_ir
from deconv_ir import conv_transpose
from deconv_ir.kernels import naive


def test_example_of_the_docstring() -> None:
    found = conv_transpose(np.array([[[1.0, 2, 3]]]), np.array([[[1.0, 10]]]), strides=2)
    assert found.tolist() == [[[1, 10, 2, 20, 3, 30]]]


@pytest.mark.parametrize("spatial", [1, 2, 3, 4])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_against_the_loop_kernel(spatial: int, groups: int) -> None:
    rng = np.random.default_rng([spatial, groups])
    x = rng.integers(-5, 6, (2, 4, *[3] * spatial))
    w = rng.integers(-5, 6, (4, 2, *[2] * spatial))
    bias = rng.integers(-5, 6, 2 * groups)
    # 3*(3-1) + (2-1)*2 + 1 - 1 - 2 + 1 = 7
    found = conv_transpose(
        x, w, bias, strides=3, dilations=2, pads_begin=1, pads_end=2, output_padding=1,
        groups=groups,
    )  # fmt: skip
    expected = naive(
        x, w, strides=(3,) * spatial, dilations=(2,) * spatial, groups=groups,
        pads_begin=(1,) * spatial, output=(7,) * spatial, bias=bias,
    )  # fmt: skip
    assert np.array_equal(found, expected)


def test_output_shape_and_auto_pad() -> None:
    # the probe of the semantics
    x, w = np.array([[[1, 2, 3]]]), np.array([[[1, 10, 100, 1000]]])
    found = conv_transpose(x, w, strides=2, output_shape=[5], auto_pad="same_upper")
    assert found.ravel().tolist() == [102, 1020, 203, 2030, 300]
    found = conv_transpose(x, w, strides=2, output_shape=[5], semantics="openvino")
    assert found.ravel().tolist() == [1, 10, 102, 1020, 203]


X, W = np.zeros((1, 2, 5)), np.zeros((2, 3, 3))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"strides": 0}, "strides must be >= 1"),
        ({"strides": 1.5}, "strides must be whole numbers"),
        ({"strides": "2"}, "strides must be whole numbers"),
        ({"strides": (1, 2)}, "strides must have 1 elements"),
        ({"pads_begin": -1}, "pads_begin must be >= 0"),
        ({"groups": 3}, "groups=3"),
        ({"groups": 0}, "groups=0"),
        ({"auto_pad": "same"}, "auto_pad must be one of"),
        ({"output_shape": (1, 2)}, "output_shape must have shape [1]"),
        ({"pads_begin": 20}, "negative extent"),
        ({"bias": np.zeros(2)}, "bias must have shape"),
        ({"filter": np.zeros((3, 3, 3))}, "channels do not fit"),
        ({"filter": np.zeros((2, 3))}, "rank 3 or greater"),
        ({"filter": np.zeros((2, 3, 3), np.float32)}, "element types differ"),
        ({"x": np.zeros((1, 2))}, "rank 3 or greater"),
        ({"x": np.zeros((1, 2, 5), bool), "filter": np.zeros((2, 3, 3), bool)}, "numeric"),
        ({"x": np.zeros((1, 2, 5), "c8"), "filter": np.zeros((2, 3, 3), "c8")}, "complex64"),
        ({"semantics": "x"}, "semantics must be"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict, words: str) -> None:
    with pytest.raises(deconv_ir.DeconvError) as caught:
        conv_transpose(**({"x": X, "filter": W} | arguments))
    assert words in str(caught.value)
