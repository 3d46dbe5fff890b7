"""Convolution-1 against loops over the definition, and SciPy."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
import scipy.signal

from deconv_ir.kernels import pack_convolution

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def convolve(data, kernel, strides, dilations, pads, output, groups):
    """Compute a convolution by loops over its definition."""
    n, c = data.shape[:2]
    per_group = kernel.shape[0] // groups
    result = np.zeros((n, kernel.shape[0], *output), np.float64)
    for y in np.ndindex(*output):
        for k in np.ndindex(*kernel.shape[2:]):
            x = [
                s * i + d * j - p
                for s, i, d, j, p in zip(strides, y, dilations, k, pads, strict=True)
            ]
            if all(0 <= xi < extent for xi, extent in zip(x, data.shape[2:], strict=True)):
                for o in range(kernel.shape[0]):
                    g = o // per_group
                    part = data[(slice(None), slice(g * c // groups, (g + 1) * c // groups), *x)]
                    result[(slice(None), o, *y)] += (
                        part.astype(np.float64) @ kernel[(o, slice(None), *k)]
                    )
    return result


PROBLEMS = [
    ((2, 4, 9), (6, 4, 3), (2,), (1,), (1,), (5,), 1),
    ((1, 4, 6, 7), (4, 2, 3, 2), (1, 2), (2, 1), (2, -1), (5, 3), 2),
    ((2, 4, 5, 6), (8, 1, 3, 3), (1, 1), (1, 1), (1, 1), (5, 6), 4),
    ((1, 2, 4, 5, 4), (3, 2, 2, 2, 3), (1, 2, 1), (1, 1, 1), (0, 1, 3), (3, 3, 8), 1),
    ((2, 3, 4, 4), (5, 3, 1, 1), (1, 1), (1, 1), (0, 0), (4, 4), 1),
]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("scratch", [1 << 10, 64 << 20])
def test_convolution_is_its_definition(problem, scratch: int) -> None:
    data_shape, kernel_shape, strides, dilations, pads, output, groups = problem
    data, kernel, bias = normal(*data_shape), normal(*kernel_shape), normal(kernel_shape[0])
    expected = convolve(data, kernel, strides, dilations, pads, output, groups)
    expected += bias.reshape(-1, *(1 for _ in output))
    found = pack_convolution(
        kernel,
        strides=strides,
        dilations=dilations,
        groups=groups,
        bias=bias,
        scratch_bytes=scratch,
    ).run(data, pads, output)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64])
def test_convolution_of_integers_is_exact(dtype) -> None:
    info = np.iinfo(dtype)
    data = RNG.integers(info.min, info.max, (1, 3, 6), dtype, endpoint=True)
    kernel = RNG.integers(info.min, info.max, (2, 3, 3), dtype, endpoint=True)
    found = pack_convolution(kernel, strides=(1,), dilations=(1,)).run(data, (0,), (4,))
    for o, y in itertools.product(range(2), range(4)):
        exact = sum(
            int(data[0, c, y + k]) * int(kernel[o, c, k]) for c in range(3) for k in range(3)
        )
        assert (exact - int(found[0, o, y])) % 2**info.bits == 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_convolution_in_half_precision_is_rounded_once(dtype) -> None:
    data, kernel = normal(1, 8, 6).astype(dtype), normal(4, 8, 3).astype(dtype)
    how = {"strides": (1,), "dilations": (1,)}
    wide = pack_convolution(kernel.astype(np.float32), **how).run(
        data.astype(np.float32), (0,), (4,)
    )
    np.testing.assert_array_equal(
        pack_convolution(kernel, **how).run(data, (0,), (4,)), wide.astype(dtype)
    )


def test_convolution_against_scipy(run) -> None:
    data, kernel = normal(1, 1, 7, 8), normal(1, 1, 3, 4)
    expected = scipy.signal.correlate2d(data[0, 0], kernel[0, 0], "valid")
    np.testing.assert_allclose(run("Convolution", data, kernel)[0, 0], expected, atol=1e-5)


# X, K, stride, auto_pad -> pad_begin, Y (Convolution-1 and pooling, 'auto_pad').
AUTO_PADS = [
    (5, 3, 2, "same_upper", 1, 3),
    (6, 3, 2, "same_upper", 0, 3),
    (6, 3, 2, "same_lower", 1, 3),
    (6, 2, 1, "same_lower", 1, 6),
    (6, 1, 3, "same_upper", 0, 2),
    (7, 3, 2, "valid", 0, 3),
]


@pytest.mark.parametrize(("x", "k", "stride", "auto_pad", "begin", "y"), AUTO_PADS)
def test_auto_pad(
    run, infer, x: int, k: int, stride: int, auto_pad: str, begin: int, y: int
) -> None:
    """The values of the pads attributes are ignored."""
    attributes = {"strides": stride, "pads_begin": 9, "pads_end": 9, "auto_pad": auto_pad}
    assert infer("Convolution", f"f32[1,1,{x}]", f"f32[1,1,{k}]", **attributes) == f"[1,1,{y}]"
    data, kernel = normal(1, 1, x), normal(1, 1, k)
    expected = convolve(data, kernel, (stride,), (1,), (begin,), (y,), 1)
    np.testing.assert_allclose(run("Convolution", data, kernel, **attributes), expected, atol=1e-5)
