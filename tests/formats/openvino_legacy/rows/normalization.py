"""BatchNormalization, Norm, Normalize, GRN, MVN and SoftMax."""

from __future__ import annotations

import numpy as np

from .. import oracles
from .row import SQUARE, Array, Row, real


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def mvn(x: Array, axes: tuple[int, ...], eps: float, *, variance: bool) -> Array:
    centered = x - x.mean(axes, keepdims=True)
    scale = np.sqrt((centered**2).mean(axes, keepdims=True) + eps) if variance else 1
    return centered / scale


MEAN, VARIANCE = real(3), np.abs(real(3)) + 0.1
L2 = np.sqrt((SQUARE**2).sum(1, keepdims=True) + 0.01)
NORMALIZATIONS: list[Row] = [
    (
        "BatchNormalization",
        [SQUARE],
        {"epsilon": 0.001},
        {"weights": VARIANCE, "biases": MEAN},
        [(SQUARE - MEAN.reshape(3, 1, 1)) / np.sqrt(VARIANCE.reshape(3, 1, 1) + 0.001)],
    ),
    (
        "Norm",
        [SQUARE],
        {"alpha": 0.5, "beta": 0.75, "local-size": 3, "region": "across"},
        {},
        [oracles.norm(SQUARE, 0.5, 0.75, 3, across=True)],
    ),
    (
        "Norm",
        [SQUARE],
        {"alpha": 0.5, "beta": 0.75, "local_size": 3, "region": "same"},
        {},
        [oracles.norm(SQUARE, 0.5, 0.75, 3, across=False)],
    ),
    (
        "Normalize",
        [SQUARE],
        {"across_spatial": 0, "channel_shared": 0, "eps": 0.01},
        {"weights": np.float32([1, 2, 3])},
        [SQUARE / L2 * np.float32([1, 2, 3]).reshape(3, 1, 1)],
    ),
    (
        "Normalize",
        [SQUARE],
        {"across_spatial": 0, "channel_shared": 1, "eps": 0.01},
        {"weights": np.float32([3])},
        [SQUARE / L2 * 3],
    ),
    (
        "Normalize",
        [SQUARE],
        {"across_spatial": 1, "eps": 0.01},
        {},
        [SQUARE / np.sqrt((SQUARE**2).sum((1, 2, 3), keepdims=True) + 0.01)],
    ),
    (
        "GRN",
        [SQUARE],
        {"bias": 0.5},
        {},
        [SQUARE / np.sqrt((SQUARE**2).sum(1, keepdims=True) + 0.5)],
    ),
    (
        "MVN",
        [SQUARE],
        {"across_channels": 0, "normalize_variance": 1, "eps": 1e-5},
        {},
        [mvn(SQUARE, (2, 3), 1e-5, variance=True)],
    ),
    (
        "MVN",
        [SQUARE],
        {"across_channels": 1, "normalize_variance": 0, "eps": 1e-5},
        {},
        [mvn(SQUARE, (1, 2, 3), 1e-5, variance=False)],
    ),
    ("SoftMax", [SQUARE], {"axis": 2}, {}, [softmax(SQUARE, 2)]),
    ("SoftMax", [SQUARE], {}, {}, [softmax(SQUARE, 1)]),
    ("LogSoftmax", [SQUARE], {"axis": -1}, {}, [np.log(softmax(SQUARE, 3))]),
]
