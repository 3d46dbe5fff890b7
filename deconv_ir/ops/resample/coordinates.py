"""Interpolation along axes: the elements and weights of each output element.

Every mode is separable: along each axis, an output element is a weighted sum
of a few input elements.  The coordinates of weights are computed in f32, as OpenVINO does.

Source: OpenVINO operation specifications, Interpolate-4 and Interpolate-11.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.ir.dtypes import Array

if TYPE_CHECKING:
    Taps = tuple[Array, Array]
    """Index and weight of each element, ``[output, taps]`` both."""


def coordinates(mode: str, scale: float, data: int, output: int, count: int | None = None) -> Array:
    """Return the position of each output element in the data, along one axis.

    `scale` is output extent over data extent, or the scale that the model gives instead; `count`
    is the number of elements that are wanted, by default all.
    """
    at = np.arange(output if count is None else count, dtype=np.float32)
    factor, half = np.float32(scale), np.float32(0.5)
    if mode == "asymmetric":
        return at / factor
    if mode == "tf_half_pixel_for_nn":
        return (at + half) / factor
    if mode == "align_corners":
        if output == 1:
            return np.zeros(1, np.float32)
        return at * (np.float32(data - 1) / np.float32(output - 1))
    if mode == "pytorch_half_pixel" and output == 1:
        return np.zeros(1, np.float32)
    return (at + half) / factor - half


def first_nearest_difference(
    coordinate_mode: str, mode: str, scale: float, data: int, output: int
) -> tuple[int, int, int] | None:
    """Return an output element, and the two elements of the data that are nearest.

    The first is by exact coordinates, the second by those in f32.  None: they agree, as far as the
    first million output elements show.
    """
    step = (data - 1) / max(1, output - 1) if coordinate_mode == "align_corners" else scale
    if max(data, output) < 1 << 22 and step and math.frexp(step)[0] == 0.5:
        return None  # products with powers of two, and quotients, are exact in f32
    count = min(output, 1 << 20)
    spec = nearest(coordinate_mode, mode, scale, data, output, count)
    found = nearest_in_f32(coordinate_mode, mode, scale, data, output, count)
    differing = np.flatnonzero(spec != found)
    if not differing.size:
        return None
    at = int(differing[0])
    return at, int(spec[at]), int(found[at])


def _ratio(mode: str, scale: Fraction, data: int, output: int) -> tuple[int, int, int]:
    """Return a, b and c: output element i is at ``(a*i + b) / c`` in the data."""
    if mode == "align_corners":
        return (data - 1, 0, output - 1) if output > 1 else (0, 0, 1)
    if mode == "pytorch_half_pixel" and output == 1:
        return 0, 0, 1
    p, q = scale.numerator, scale.denominator
    if mode == "asymmetric":
        return q, 0, p
    # (2*i + 1) / (2 * p / q), less 1/2 except for tf_half_pixel_for_nn
    return 2 * q, q if mode == "tf_half_pixel_for_nn" else q - p, 2 * p


def nearest(
    coordinate_mode: str,
    mode: str,
    scale: float,
    data: int,
    output: int,
    count: int | None = None,
) -> Array:
    """Return the index of the nearest element of each output element, along one axis.

    Coordinates are exact: those of given extents are fractions, and a scale that the model gives
    is the number that it stores.
    """
    exact = Fraction(output, data) if scale == output / data else Fraction(scale)
    a, b, c = _ratio(coordinate_mode, exact, data, output)
    fits = 2 * (a * output + abs(b) + c) < 1 << 62
    dtype = np.dtype(np.int64 if fits else object)
    at = np.arange(output if count is None else count).astype(dtype) * a + b
    if mode == "round_prefer_floor":
        index = -((c - 2 * at) // (2 * c))  # ceil(at - 1/2)
    elif mode == "round_prefer_ceil":
        index = (2 * at + c) // (2 * c)
    elif mode == "floor":
        index = at // c
    elif mode == "ceil" or scale < 1:
        index = -(-at // c)
    else:  # truncated: what is below 0 is clipped
        index = at // c
    clipped: Array = np.clip(index, 0, data - 1).astype(np.intp)
    return clipped


def nearest_in_f32(
    coordinate_mode: str,
    mode: str,
    scale: float,
    data: int,
    output: int,
    count: int | None = None,
) -> Array:
    """Return what `nearest` returns, with coordinates in f32 as the OpenVINO runtime has them."""
    index = _rounded_to(coordinates(coordinate_mode, scale, data, output, count), mode, scale)
    return np.clip(index, 0, data - 1).astype(np.intp)


def nearest_of_near(
    coordinate_mode: str, mode: str, scale: float, data: int, output: int
) -> tuple[Array, Array]:
    """Return the least and the largest index that `nearest` may have with rounded coordinates.

    Coordinates may be off by 8 eps of f32, of themselves and of one element.
    """
    exact = Fraction(output, data) if scale == output / data else Fraction(scale)
    a, b, c = _ratio(coordinate_mode, exact, data, output)
    at = np.arange(output) * (a / c) + b / c
    tolerance = 8 * 2.0**-23 * (np.abs(at) + 1)
    low, high = (_rounded_to(at + sign * tolerance, mode, scale) for sign in (-1, 1))
    return (
        np.clip(low, 0, data - 1).astype(np.intp),
        np.clip(high, 0, data - 1).astype(np.intp),
    )


def _rounded_to(at: Array, mode: str, scale: float) -> Array:
    """Round coordinates to indices."""
    half = at.dtype.type(0.5)
    found: Array
    if mode == "round_prefer_floor":
        found = np.ceil(at - half)
    elif mode == "round_prefer_ceil":
        found = np.floor(at + half)
    elif mode == "floor":
        found = np.floor(at)
    elif mode == "ceil" or scale < 1:
        found = np.ceil(at)
    else:
        found = np.trunc(at)
    return found


def linear_onnx(at: Array, data: int) -> Taps:
    """Two neighbours; beyond the ends, the last element."""
    inside = np.clip(at, 0, data - 1)
    first = inside.astype(np.intp)
    second = np.minimum(first + 1, data - 1)
    weight = inside - first
    return np.stack([first, second], 1), np.stack([1 - weight, weight], 1)


def linear(at: Array, scale: float, slope: float, data: int) -> Taps:
    """All elements under a triangle of this slope; weights sum to 1."""
    reach = 2 if scale > 1 else math.ceil(2.0 / slope)
    index = np.round(at).astype(np.intp)[:, None] + np.arange(-reach, reach + 1)
    weight = np.maximum(0, 1 - np.abs(slope * (at.astype(np.float64)[:, None] - index)))
    weight[(index < 0) | (index >= data)] = 0
    total = weight.sum(axis=1, keepdims=True)
    weight = np.divide(weight, total, out=np.zeros_like(weight), where=total != 0)
    return _drop_empty(np.clip(index, 0, data - 1), weight)


def cubic(at: Array, coefficient: float, data: int) -> Taps:
    """Four neighbours, weighted by the cubic convolution kernel; ends are repeated."""
    first = np.floor(at)
    t, a = (at - first).astype(np.float64), coefficient
    weight = np.stack(
        [
            a * (t - 1) ** 2 * t,
            ((a + 2) * t - (a + 3)) * t**2 + 1,
            (((-a - 2) * t + (2 * a + 3)) * t - a) * t,
            -a * t**2 * (t - 1),
        ],
        1,
    )
    index = first.astype(np.intp)[:, None] + np.arange(-1, 3)
    return np.clip(index, 0, data - 1), weight


def pillow(data: int, output: int, coefficient: float | None) -> Taps:
    """Resizing as in Pillow: the kernel is widened by the factor of downsampling.

    `coefficient` belongs to the cubic kernel; None: the triangle.
    """
    scale = data / output
    stretch = max(1.0, scale)
    support = (1.0 if coefficient is None else 2.0) * stretch
    centre = (np.arange(output) + 0.5) * scale
    first = np.maximum(0, np.trunc(centre - support + 0.5)).astype(np.intp)
    last = np.minimum(data, np.trunc(centre + support + 0.5)).astype(np.intp)
    index = first[:, None] + np.arange(int((last - first).max(initial=1)))
    distance = np.abs((index + 0.5 - centre[:, None]) / stretch)
    if coefficient is None:
        weight = np.maximum(0, 1 - distance)
    else:
        a, d = coefficient, distance
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = (((d - 5) * d + 8) * d - 4) * a
        weight = np.where(d < 1, near, np.where(d < 2, far, 0))
    weight[index >= last[:, None]] = 0
    weight /= weight.sum(axis=1, keepdims=True)
    return _drop_empty(np.minimum(index, data - 1), weight)


def _drop_empty(index: Array, weight: Array) -> Taps:
    """Leave out taps that no output element uses."""
    used = weight.any(axis=0)
    return index[:, used], weight[:, used]


def weigh(data: Array, taps: Taps, axis: int) -> Array:
    """Compute the weighted sums along an axis."""
    index, weight = taps
    shape = [1] * data.ndim
    shape[axis] = index.shape[0]
    result = np.zeros((*data.shape[:axis], index.shape[0], *data.shape[axis + 1 :]), data.dtype)
    for tap in range(index.shape[1]):
        part = np.take(data, index[:, tap], axis=axis)
        part *= weight[:, tap].astype(data.dtype).reshape(shape)
        result += part
    return result
