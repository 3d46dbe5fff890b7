"""Convolution, Deconvolution, Pooling, FullyConnected and Gemm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import oracles
from .row import FC, FLAT, SQUARE, Array, Const, Row, X, real

W = real(4, 6, 3, 2)
GROUPED = real(4, 3, 3, 2)
B = real(4)
UP = real(6, 4, 3, 4)
UP_GROUPED = real(6, 2, 3, 4)
VOLUME = real(1, 2, 3, 4, 5)


def conv(**options: Any) -> Array:
    return oracles.convolution(X, **options)


def bias(found: Array, b: Array = B) -> Array:
    return found + b.reshape(1, -1, *(1,) * (found.ndim - 2))


KERNEL = {"kernel": "3,2", "output": 4}
OLD_KERNEL = {"kernel-y": 3, "kernel-x": 2, "output": 4}
FULL = {"strides": "2,1", "pads_begin": "1,0", "pads_end": "2,1"}
OLD_FULL = {"stride-y": 2, "stride-x": 1, "pad-y": 1, "pad-x": 0, "pad-b": 2, "pad-r": 1}

CONVOLUTIONS: list[Row] = [
    # Without offsets, it is a convolution.
    (
        "DeformableConvolution",
        [X, np.zeros((2, 12, 5, 7), np.float32)],
        {**KERNEL, "deformable_group": 1},
        {"weights": W, "biases": B},
        [bias(conv(w=W, strides=(1, 1), begin=(0, 0), end=(0, 0)))],
    ),
    (
        "Convolution",
        [X],
        {**KERNEL, **FULL},
        {"weights": W, "biases": B},
        [bias(conv(w=W, strides=(2, 1), begin=(1, 0), end=(2, 1)))],
    ),
    (
        "Convolution",
        [X],
        KERNEL,
        {"weights": W},
        [conv(w=W, strides=(1, 1), begin=(0, 0), end=(0, 0))],
    ),
    # pads_end follows pads_begin (`parseParams`)
    (
        "Convolution",
        [X],
        {**KERNEL, "pads_begin": "1,1", "dilations": "2,3"},
        {"weights": W},
        [conv(w=W, strides=(1, 1), begin=(1, 1), end=(1, 1), dilations=(2, 3))],
    ),
    (
        "Convolution",
        [X],
        {**KERNEL, "group": 2},
        {"weights": GROUPED, "biases": B},
        [bias(conv(w=GROUPED, strides=(1, 1), begin=(0, 0), end=(0, 0), group=2))],
    ),
    # same_upper: an odd pad is at the end (`getPaddingsImpl`)
    (
        "Convolution",
        [X],
        {**KERNEL, "strides": "2,1", "auto_pad": "same_upper"},
        {"weights": W},
        [conv(w=W, strides=(2, 1), begin=(1, 0), end=(1, 1))],
    ),
    (
        "Convolution",
        [X],
        {**KERNEL, "strides": "2,1", "auto_pad": "same_lower"},
        {"weights": W},
        [conv(w=W, strides=(2, 1), begin=(1, 1), end=(1, 0))],
    ),
    (
        "Convolution",
        [X],
        {**KERNEL, **FULL, "auto_pad": "valid"},
        {"weights": W},
        [conv(w=W, strides=(2, 1), begin=(0, 0), end=(0, 0))],
    ),
    (
        "Convolution",
        [X, Const(W, "f4"), Const(B, "f4")],
        KERNEL,
        {},
        [bias(conv(w=W, strides=(1, 1), begin=(0, 0), end=(0, 0)))],
    ),
    (
        "Convolution",
        [VOLUME],
        {"kernel": "2,2,2", "output": 3},
        {"weights": (V := real(3, 2, 2, 2, 2))},
        [oracles.convolution(VOLUME, V, (1, 1, 1), (0, 0, 0), (0, 0, 0))],
    ),
]

DECONVOLUTIONS: list[Row] = [
    (
        "Deconvolution",
        [X],
        {"kernel": "3,4", "output": 4, "strides": "2,3", "pads_begin": "1,2", "pads_end": "0,1"},
        {"weights": UP, "biases": B},
        [bias(oracles.deconvolution(X, UP, (2, 3), (1, 2), (14, 22)))],
    ),
    (
        "Deconvolution",
        [X],
        {"kernel": "3,4", "output": 4},
        {"weights": UP},
        [oracles.deconvolution(X, UP, (1, 1), (0, 0), (9, 11))],
    ),
    (
        "Deconvolution",
        [X],
        {"kernel": "3,4", "output": 4, "strides": "2,2", "group": 2},
        {"weights": UP_GROUPED, "biases": B},
        [bias(oracles.deconvolution(X, UP_GROUPED, (2, 2), (0, 0), (15, 18), group=2))],
    ),
    (
        "Deconvolution",
        [X],
        {"kernel": "3,4", "output": 4, "dilations": "2,1", "strides": "2,2"},
        {"weights": UP},
        [oracles.deconvolution(X, UP, (2, 2), (0, 0), (17, 18), (2, 1))],
    ),
    # The output has the input's extent times the stride (`getPaddingsImpl`).
    (
        "Deconvolution",
        [X],
        {"kernel": "3,4", "output": 4, "strides": "2,1", "auto_pad": "same_upper"},
        {"weights": UP},
        [oracles.deconvolution(X, UP, (2, 1), (0, 1), (14, 8))],
    ),
    (
        "Deconvolution",
        [X],
        {"kernel": "3,4", "output": 4, "strides": "2,1", "auto_pad": "same_lower"},
        {"weights": UP},
        [oracles.deconvolution(X, UP, (2, 1), (1, 2), (14, 8))],
    ),
    (
        "Deconvolution",
        [X],
        {"kernel": "3,4", "output": 4, "strides": "4,5", "auto_pad": "same_upper"},
        {"weights": UP},
        [oracles.deconvolution(X, UP, (4, 5), (0, 0), (28, 40))],
    ),
    (
        "Deconvolution",
        [X],
        {"kernel": "3,4", "output": 4, "strides": "2,2", "pads_begin": "1,1", "auto_pad": "valid"},
        {"weights": UP},
        [oracles.deconvolution(X, UP, (2, 2), (0, 0), (15, 18))],
    ),
    (
        "Deconvolution",
        [X],
        {
            "kernel": "3,4",
            "output": 4,
            "strides": "2,2",
            "pads_begin": "1,1",
            "pads_end": "1,1",
            "output_padding": "1,0",
        },
        {"weights": UP},
        [oracles.deconvolution(X, UP, (2, 2), (1, 1), (14, 16))],
    ),
    (
        "Deconvolution",
        [VOLUME],
        {"kernel": "2,2,2", "output": 3, "strides": "2,2,2"},
        {"weights": (U := real(2, 3, 2, 2, 2))},
        [oracles.deconvolution(VOLUME, U, (2, 2, 2), (0, 0, 0), (6, 8, 10))],
    ),
]
OLD_WINDOWS: list[Row] = [
    (
        "Convolution",
        [X],
        {**OLD_KERNEL, **OLD_FULL},
        {"weights": W, "biases": B},
        [bias(conv(w=W, strides=(2, 1), begin=(1, 0), end=(2, 1)))],
    ),
    # pad-b follows pad-y, and a stride of 0 is 1 (`parseParams`)
    (
        "Convolution",
        [X],
        {**OLD_KERNEL, "pad-y": 1, "pad-x": 1, "stride-x": 0, "dilation-x": 2},
        {"weights": W},
        [conv(w=W, strides=(1, 1), begin=(1, 1), end=(1, 1), dilations=(1, 2))],
    ),
    (
        "Deconvolution",
        [X],
        {
            "kernel-y": 3,
            "kernel-x": 4,
            "output": 4,
            "stride-y": 2,
            "stride-x": 3,
            "pad-y": 1,
            "pad-x": 2,
            "pad-b": 0,
            "pad-r": 1,
        },
        {"weights": UP, "biases": B},
        [bias(oracles.deconvolution(X, UP, (2, 3), (1, 2), (14, 22)))],
    ),
    (
        "Pooling",
        [X],
        {
            "kernel-y": 3,
            "kernel-x": 2,
            "stride-y": 2,
            "stride-x": 2,
            "pool-method": "max",
            "pad-y": 0,
            "pad-x": 0,
        },
        {},
        [oracles.pooling(X, (3, 2), (2, 2), (0, 0), (3, 4), np.max)],
    ),
]


def pool(
    function: Any, sizes: Sequence[int], kernel: Sequence[int] = (3, 3), **options: Any
) -> Any:
    strides = options.pop("strides", (2, 2))
    return oracles.pooling(
        X, kernel, strides, options.pop("begin", (0, 0)), sizes, function, **options
    )


POOLINGS: list[Row] = [
    (
        "Pooling",
        [X],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max"},
        {},
        [pool(np.max, (3, 3))],
    ),
    (
        "Pooling",
        [X],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max", "rounding_type": "ceil"},
        {},
        [pool(np.max, (3, 4))],
    ),
    # Without rounding_type, the declared dims tell.
    (
        "Pooling",
        [X],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max"},
        {},
        [pool(np.max, (3, 4))],
    ),
    (
        "Pooling",
        [X],
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "1,1",
            "pads_end": "1,1",
            "pool-method": "avg",
            "exclude-pad": "true",
        },
        {},
        [pool(np.mean, (4, 4), begin=(1, 1))],
    ),
    (
        "Pooling",
        [X],
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "1,1",
            "pads_end": "1,1",
            "pool-method": "avg",
            "exclude-pad": "false",
            "rounding_type": "floor",
        },
        {},
        [pool(np.mean, (4, 4), begin=(1, 1), exclude=False, end=(1, 1))],
    ),
    # Without pads, the part of a window that is outside does not count.
    (
        "Pooling",
        [X],
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pool-method": "avg",
            "exclude-pad": "false",
            "rounding_type": "ceil",
        },
        {},
        [pool(np.mean, (3, 4))],
    ),
    (
        "Pooling",
        [X],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max", "auto_pad": "same_upper"},
        {},
        [pool(np.max, (4, 4), begin=(1, 0))],
    ),
    (
        "Pooling",
        [X],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max", "auto_pad": "same_lower"},
        {},
        [pool(np.max, (4, 4), begin=(1, 1))],
    ),
]

BIAS5 = real(5)
PRODUCTS: list[Row] = [
    (
        "FullyConnected",
        [X],
        {"out-size": 5},
        {"weights": FC, "biases": BIAS5},
        [X.reshape(2, -1) @ FC.T + BIAS5],
    ),
    ("FullyConnected", [FLAT], {"out-size": 5}, {"weights": FC}, [FLAT @ FC.T]),
    (
        "InnerProduct",
        [FLAT],
        {"out-size": 5},
        {"weights": FC, "biases": BIAS5},
        [FLAT @ FC.T + BIAS5],
    ),
    (
        "FullyConnected",
        [SQUARE[0]],
        {"out-size": 5},
        {"weights": (C := real(5, 5))},
        [SQUARE[0] @ C.T],
    ),
    (
        "Gemm",
        [SQUARE, SQUARE],
        {"transpose_b": 1, "alpha": 0.5},
        {},
        [0.5 * SQUARE @ SQUARE.swapaxes(2, 3)],
    ),
    (
        "Gemm",
        [FLAT, Const(FC, "f4"), Const(BIAS5.reshape(1, 5), "f4")],
        {"transpose_b": "true", "beta": 2},
        {},
        [FLAT @ FC.T + 2 * BIAS5],
    ),
    (
        "Gemm",
        [SQUARE[0], SQUARE[1]],
        {"transpose_a": "true"},
        {},
        [SQUARE[0].swapaxes(1, 2) @ SQUARE[1]],
    ),
]
