"""Run graphs of oneDNN, and compute convolutions by their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from onednn_forms import as_bytes

import deconv_ir

RNG = np.random.default_rng(20)


def scatter(
    data: Any,
    weights: Any,
    strides: Sequence[int],
    begin: Sequence[int],
    extents: Sequence[int],
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Any:
    """Compute a transposed convolution of [N, C, X...] and [I, O / groups, K...] by definition."""
    dilations = dilations or [1] * len(strides)
    batch, channels, *spatial = data.shape
    _, per_group, *kernel = weights.shape
    result = np.zeros(
        (batch, per_group * groups, *extents), object if data.dtype == object else float
    )
    share = channels // groups
    for c, x, k in itertools.product(range(channels), np.ndindex(*spatial), np.ndindex(*kernel)):
        y = [
            s * a + d * b - p for s, a, d, b, p in zip(strides, x, dilations, k, begin, strict=True)
        ]
        if all(0 <= v < e for v, e in zip(y, extents, strict=True)):
            first = c // share * per_group
            for n in range(batch):
                result[(n, slice(first, first + per_group), *y)] += (
                    data[(n, c, *x)] * weights[(c, slice(None), *k)]
                )
    return result


def gather(
    data: Any,
    weights: Any,
    strides: Sequence[int],
    begin: Sequence[int],
    extents: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
) -> Any:
    """Compute a convolution of [N, C, X...] and [O, I / groups, K...] by definition."""
    batch, _, *spatial = data.shape
    outputs, share, *kernel = weights.shape
    result = np.zeros((batch, outputs, *extents))
    for n, o, y, k in itertools.product(
        range(batch), range(outputs), np.ndindex(*extents), np.ndindex(*kernel)
    ):
        x = [
            s * a + d * b - p for s, a, d, b, p in zip(strides, y, dilations, k, begin, strict=True)
        ]
        if all(0 <= v < e for v, e in zip(x, spatial, strict=True)):
            first = o // (outputs // groups) * share
            result[(n, o, *y)] += (
                data[(n, slice(first, first + share), *x)] @ weights[(o, slice(None), *k)]
            )
    return result


def run(*operations: Any, arrays: Sequence[Any], **options: Any) -> list[Any]:
    """Run a graph on arrays in the order of its inputs."""
    model = deconv_ir.load(as_bytes(*operations), **options)
    return list(model.run(list(arrays)).values())


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def last(array: Any) -> Any:
    return np.moveaxis(array, 1, -1)


def close(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype(np.float64), wanted, tolerance, tolerance * 10)
