"""The loop oracle: a transposed convolution, computed by its definition.

It shares no code with the fast kernels, so that it can verify them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deconv_ir.ir.dtypes import Array


def naive(
    data: Array,
    filter: Array,  # noqa: A002 - the documents' name
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    pads_begin: Sequence[int],
    output: Sequence[int],
    bias: Array | None = None,
) -> Array:
    """Transposed convolution straight from ``output[s*x + d*k - pad] += data[x] * filter[k]``.

    Data are ``[N, groups * in, *X]``, the filter ``[groups * in, out, *K]`` of the same dtype,
    the bias ``[groups * out]``, the result ``[N, groups * out, *output]``.  Floats are summed in
    f64 and rounded once; integers are summed modulo 2^64 and truncated, which is modulo 2^bits.
    """
    integer = np.issubdtype(data.dtype, np.integer)
    wide = np.uint64 if integer else np.float64
    n, channels = data.shape[:2]
    grouped = data.astype(wide).reshape(n, groups, channels // groups, *data.shape[2:])
    weights = filter.astype(wide).reshape(groups, channels // groups, *filter.shape[1:])
    total = np.zeros((n, groups, filter.shape[1], *output), wide)
    with np.errstate(all="ignore"):
        for x in np.ndindex(*data.shape[2:]):
            for k in np.ndindex(*filter.shape[2:]):
                y = tuple(
                    s * xi + d * ki - p
                    for s, xi, d, ki, p in zip(strides, x, dilations, k, pads_begin, strict=True)
                )
                if all(0 <= yi < size for yi, size in zip(y, output, strict=True)):
                    product = grouped[(..., None, *x)] * weights[(..., *k)]
                    total[(..., *y)] += product.sum(axis=2, dtype=wide)
        result = total.reshape(n, groups * filter.shape[1], *output)
        if bias is not None:
            result += bias.astype(wide).reshape(-1, *(1 for _ in output))
        return result.astype(data.dtype)


def naive_convolution(
    data: Array,
    filter: Array,  # noqa: A002 - the documents' name
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    pads_begin: Sequence[int],
    output: Sequence[int],
    bias: Array | None = None,
) -> Array:
    """Convolution straight from ``output[y] += data[s*y + d*k - pad] * filter[k]``.

    The filter is ``[groups * out, in, *K]``; the rest is as in `naive`.
    """
    wide = np.uint64 if np.issubdtype(data.dtype, np.integer) else np.float64
    n, channels = data.shape[:2]
    outputs = filter.shape[0] // groups
    grouped = data.astype(wide).reshape(n, groups, 1, channels // groups, *data.shape[2:])
    weights = filter.astype(wide).reshape(groups, outputs, *filter.shape[1:])
    total = np.zeros((n, groups, outputs, *output), wide)
    with np.errstate(all="ignore"):
        for y in np.ndindex(*output):
            for k in np.ndindex(*filter.shape[2:]):
                x = tuple(
                    s * yi + d * ki - p
                    for s, yi, d, ki, p in zip(strides, y, dilations, k, pads_begin, strict=True)
                )
                if all(0 <= xi < size for xi, size in zip(x, data.shape[2:], strict=True)):
                    product = grouped[(..., *x)] * weights[(..., *k)]
                    total[(..., *y)] += product.sum(axis=3, dtype=wide)
        result = total.reshape(n, groups * outputs, *output)
        if bias is not None:
            result += bias.astype(wide).reshape(-1, *(1 for _ in output))
        return result.astype(data.dtype)
