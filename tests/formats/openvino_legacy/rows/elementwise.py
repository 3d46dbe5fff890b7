"""Eltwise, Power, ScaleShift, quantization, and activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import oracles
from .row import COLUMN, FC, FLAT, POSITIVE, SQUARE, Array, Const, Row, real

ELEMENTWISE: list[Row] = [
    ("Eltwise", [SQUARE, POSITIVE], {"operation": "sum"}, {}, [SQUARE + POSITIVE]),
    ("Eltwise", [SQUARE, POSITIVE], {}, {}, [SQUARE + POSITIVE]),
    (
        "Eltwise",
        [SQUARE, POSITIVE, COLUMN],
        {"operation": "sum", "coeff": "1,-0.5,2"},
        {},
        [SQUARE - POSITIVE / 2 + 2 * COLUMN],
    ),
    ("Eltwise", [SQUARE, POSITIVE], {"operation": "sub"}, {}, [SQUARE - POSITIVE]),
    ("Eltwise", [SQUARE, COLUMN], {"operation": "mul", "coeff": ""}, {}, [SQUARE * COLUMN]),
    ("Eltwise", [SQUARE, POSITIVE], {"operation": "prod"}, {}, [SQUARE * POSITIVE]),
    ("Eltwise", [SQUARE, POSITIVE], {"operation": "div"}, {}, [SQUARE / POSITIVE]),
    (
        "Eltwise",
        [SQUARE, POSITIVE, COLUMN],
        {"operation": "max"},
        {},
        [np.maximum(np.maximum(SQUARE, POSITIVE), COLUMN)],
    ),
    ("Eltwise", [SQUARE, POSITIVE], {"operation": "min"}, {}, [np.minimum(SQUARE, POSITIVE)]),
    ("Eltwise", [SQUARE, POSITIVE], {"operation": "squared_diff"}, {}, [(SQUARE - POSITIVE) ** 2]),
    ("Eltwise", [SQUARE, POSITIVE], {"operation": "floor_mod"}, {}, [np.mod(SQUARE, POSITIVE)]),
    ("Eltwise", [POSITIVE, SQUARE], {"operation": "pow"}, {}, [POSITIVE**SQUARE]),
    *(
        (
            "Eltwise",
            [np.round(SQUARE), np.round(POSITIVE)],
            {"operation": name},
            {},
            [function(np.round(SQUARE), np.round(POSITIVE)).astype(np.float32)],
        )
        for name, function in {
            "less": np.less,
            "less_equal": np.less_equal,
            "greater": np.greater,
            "greater_equal": np.greater_equal,
            "equal": np.equal,
            "not_equal": np.not_equal,
            "logical_and": np.logical_and,
            "logical_or": np.logical_or,
            "logical_xor": np.logical_xor,
        }.items()
    ),
    ("Power", [POSITIVE], {"power": 2, "scale": 0.1, "shift": 5}, {}, [(5 + 0.1 * POSITIVE) ** 2]),
    ("Power", [SQUARE], {"power": 1, "scale": -1, "shift": 0}, {}, [-SQUARE]),
    ("Power", [SQUARE], {"power": 1, "scale": 1, "shift": 0}, {}, [SQUARE]),
    (
        "Power",
        [np.int32([1, 2, 3])],
        {"power": 1, "scale": 3, "shift": 1},
        {},
        [np.int32([4, 7, 10])],
    ),
    (
        "ScaleShift",
        [SQUARE],
        {},
        {"weights": real(3) * 0 + np.float32([1, 2, 3]), "biases": np.float32([3, 2, 1])},
        [SQUARE * np.float32([1, 2, 3]).reshape(3, 1, 1) + np.float32([3, 2, 1]).reshape(3, 1, 1)],
    ),
    (
        "ScaleShift",
        [SQUARE],
        {},
        {"biases": np.float32([3, 2, 1])},
        [SQUARE + np.float32([3, 2, 1]).reshape(3, 1, 1)],
    ),
    ("ScaleShift", [SQUARE], {"broadcast": 1}, {"weights": np.float32([3])}, [SQUARE * 3]),
    ("ScaleShift", [FLAT], {}, {"weights": FC[0]}, [FLAT * FC[0]]),
    (
        "Select",
        [
            np.int32([[0, 0], [1, 0], [1, 1]]),
            Const([[-1, 0], [1, 2], [3, 4]]),
            Const([[11, 10], [9, 8], [7, 6]]),
        ],
        {},
        {},
        [np.int32([[11, 10], [1, 8], [3, 4]])],
    ),
    (
        "FakeQuantize",
        [SQUARE, *(Const(v, "f4") for v in ([-1.0], [1.0], [-2.0], [2.0]))],
        {"levels": 5},
        {},
        [np.round((np.clip(SQUARE, -1, 1) + 1) / 2 * 4) / 4 * 4 - 2],
    ),
    (
        "Quantize",
        [SQUARE, *(Const(v, "f4") for v in ([0.0], [0.0], [-1.0], [1.0]))],
        {"levels": 2},
        {},
        [np.where(SQUARE > 0, np.float32(1), np.float32(-1))],
    ),
    # A threshold for each channel, which equals the upper limit in one of them.
    (
        "FakeQuantize",
        [
            SQUARE,
            Const(np.reshape([-0.5, 0.25, -1], (1, 3, 1, 1)), "f4"),
            Const(np.reshape([0.5, 0.25, 0.4], (1, 3, 1, 1)), "f4"),
            *(Const(v, "f4") for v in ([-3.0], [2.0])),
        ],
        {"levels": 2},
        {},
        [np.where(np.reshape([0, 0.25, -0.3], (3, 1, 1)) < SQUARE, np.float32(2), np.float32(-3))],
    ),
    ("Copy", [SQUARE], {}, {}, [SQUARE]),
]


def slope(x: Array, by: Any) -> Array:
    return np.where(x < 0, x * np.asarray(by, np.float32), x)


UNIT = np.clip(SQUARE / 4, -0.99, 0.99)
ACTIVATIONS: list[Row] = [
    ("ReLU", [SQUARE], {}, {}, [np.maximum(SQUARE, 0)]),
    ("ReLU", [SQUARE], {"negative_slope": "0.100000"}, {}, [slope(SQUARE, 0.1)]),
    ("ReLU6", [SQUARE * 9], {}, {}, [np.clip(SQUARE * 9, 0, 6)]),
    ("ReLU6", [SQUARE], {"n": 1}, {}, [np.clip(SQUARE, 0, 1)]),
    (
        "PReLU",
        [SQUARE],
        {"channel_shared": 0},
        {"weights": np.float32([0.1, -0.2, 0.3])},
        [slope(SQUARE, np.reshape([0.1, -0.2, 0.3], (3, 1, 1)))],
    ),
    (
        "PReLU",
        [SQUARE],
        {"channel_shared": 1},
        {"weights": np.float32([0.25])},
        [slope(SQUARE, 0.25)],
    ),
    ("Clamp", [SQUARE], {"min": -0.5, "max": 0.75}, {}, [np.clip(SQUARE, -0.5, 0.75)]),
    ("ELU", [SQUARE], {"alpha": 0.5}, {}, [np.where(SQUARE < 0, 0.5 * np.expm1(SQUARE), SQUARE)]),
    ("Elu", [SQUARE], {}, {}, [np.where(SQUARE < 0, np.expm1(SQUARE), SQUARE)]),
    ("Activation", [SQUARE], {"type": "sigmoid"}, {}, [oracles.sigmoid(SQUARE)]),
    ("Activation", [SQUARE], {"type": "tanh"}, {}, [np.tanh(SQUARE)]),
    (
        "Activation",
        [SQUARE],
        {"type": "elu", "alpha": 1},
        {},
        [np.where(SQUARE < 0, np.expm1(SQUARE), SQUARE)],
    ),
    ("Activation", [SQUARE * 9], {"type": "relu6"}, {}, [np.clip(SQUARE * 9, 0, 6)]),
    ("Activation", [np.round(SQUARE)], {"type": "not"}, {}, [(np.round(SQUARE) == 0) * 1.0]),
    ("Activation", [SQUARE], {"type": "exp"}, {}, [np.exp(SQUARE)]),
    ("Activation", [SQUARE], {"type": "relu", "negative_slope": 0.5}, {}, [slope(SQUARE, 0.5)]),
    ("Not", [np.round(SQUARE)], {}, {}, [(np.round(SQUARE) == 0) * 1.0]),
    ("HardSigmoid", [SQUARE], {"alpha": 0.3, "beta": 0.4}, {}, [np.clip(0.3 * SQUARE + 0.4, 0, 1)]),
    (
        "Selu",
        [SQUARE],
        {"alpha": 2, "gamma": 1.5},
        {},
        [np.where(SQUARE > 0, 1.5 * SQUARE, 1.5 * 2 * np.expm1(SQUARE))],
    ),
    ("Swish", [SQUARE], {"alpha": 2}, {}, [SQUARE * oracles.sigmoid(2 * SQUARE)]),
    ("SoftPlus", [SQUARE], {}, {}, [np.log1p(np.exp(SQUARE))]),
    ("Softsign", [SQUARE], {}, {}, [SQUARE / (1 + np.abs(SQUARE))]),
    ("Reciprocal", [POSITIVE], {}, {}, [1 / POSITIVE]),
    ("Mish", [SQUARE], {}, {}, [SQUARE * np.tanh(np.log1p(np.exp(SQUARE)))]),
    ("HSwish", [SQUARE], {}, {}, [SQUARE * np.clip(SQUARE + 3, 0, 6) / 6]),
    *(
        (
            kind,
            [UNIT if kind in ("Acos", "Asin", "Atanh") else POSITIVE + 1],
            {},
            {},
            [function(UNIT if kind in ("Acos", "Asin", "Atanh") else POSITIVE + 1)],
        )
        for kind, function in {
            "Abs": np.abs,
            "Acos": np.arccos,
            "Acosh": np.arccosh,
            "Asin": np.arcsin,
            "Asinh": np.arcsinh,
            "Atan": np.arctan,
            "Atanh": np.arctanh,
            "Ceil": np.ceil,
            "Ceiling": np.ceil,
            "Cos": np.cos,
            "Cosh": np.cosh,
            "Exp": np.exp,
            "Floor": np.floor,
            "Log": np.log,
            "Logistic": oracles.sigmoid,
            "Neg": np.negative,
            "Sigmoid": oracles.sigmoid,
            "Sign": np.sign,
            "Sin": np.sin,
            "Sinh": np.sinh,
            "Sqrt": np.sqrt,
            "Tan": np.tan,
            "TanH": np.tanh,
            "Tanh": np.tanh,
        }.items()
    ),
    ("Erf", [np.float32([0, 1, -0.5])], {}, {}, [np.float32([0, 0.8427008, -0.5204999])]),
]
