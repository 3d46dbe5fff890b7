"""Each layer of the table, with values of the catalogue or of loops over its formulas.

Source of the formulas: OpenVINO 2020.3, "Intermediate Representation Notation Reference Catalog".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from old_ir import OldIR

import deconv_ir
from deconv_ir.formats.openvino_legacy.table import TABLE
from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

from . import oracles

Array = np.ndarray
Row = tuple[str, Sequence[Any], Mapping[str, object], Mapping[str, Any], Sequence[Any]]
"""Type, inputs (a `Const` for constants), attributes, blobs and expected outputs."""

RNG = np.random.default_rng(7)


class Const:
    """An input that the file has as a Const."""

    def __init__(self, array: Any, kind: Any = np.int32) -> None:
        self.array = np.asarray(array, kind)


def real(*shape: int) -> Array:
    """Return random numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


def network_of(
    row: Row, version: int = 7, precision: str = "FP32"
) -> tuple[OldIR, dict[str, Array]]:
    """Return a network of one layer, and its inputs."""
    kind, inputs, attributes, blobs, expected = row
    ir = OldIR(version, precision)
    tensors, given = [], {}
    for number, array in enumerate(inputs):
        if isinstance(array, Const):
            tensors.append(ir.const(array.array))
            continue
        name = f"x{number}"
        types = {"int32": "I32", "int64": "I64"}
        tensors.append(ir.input(*array.shape, name=name, precision=types.get(str(array.dtype))))
        given[name] = array
    shapes = map(np.shape, expected)
    ir.layer(kind, tensors, *shapes, attributes=attributes, blobs=blobs, name="it")
    return ir, given


def single(row: Row, folder: Path, version: int = 7, precision: str = "FP32") -> list[Array]:
    """Run a network of one layer."""
    ir, given = network_of(row, version, precision)
    return list(deconv_ir.load(ir.write(folder)).run(given).values())


X = real(2, 6, 7, 8)
SQUARE = real(2, 3, 4, 5)
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

FLAT = real(2, 336)
FC = real(5, 336)
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

POSITIVE = np.abs(SQUARE) + 0.5
COLUMN = real(2, 3, 1, 1)
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

N34 = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def blocks(x: Array, b: int) -> Array:
    """The catalogue's formula of DepthToSpace, of two spatial axes."""
    n, c, h, w = x.shape
    split = x.reshape(n, b, b, c // b**2, h, w)
    return split.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // b**2, h * b, w * b)


DEEP = real(5, 4, 2, 3)
MOVES: list[Row] = [
    ("Concat", [SQUARE, POSITIVE], {"axis": 1}, {}, [np.concatenate([SQUARE, POSITIVE], 1)]),
    (
        "Concat",
        [SQUARE, POSITIVE, SQUARE],
        {"axis": -1},
        {},
        [np.concatenate([SQUARE, POSITIVE, SQUARE], 3)],
    ),
    ("Split", [SQUARE], {"axis": 0, "num_split": 2}, {}, list(np.split(SQUARE, 2))),
    ("Split", [SQUARE], {"axis": 3}, {}, [SQUARE[..., :4], SQUARE[..., 4:]]),
    ("Slice", [SQUARE], {"axis": 1}, {}, [SQUARE[:, :1], SQUARE[:, 1:]]),
    (
        "Crop",
        [X, POSITIVE[:, :, :4, :3]],
        {"axis": "2,3", "offset": "1,2"},
        {},
        [X[:, :, 1:5, 2:5]],
    ),
    ("Crop", [X], {"axis": "2,3", "offset": "0,3", "dim": "4,2"}, {}, [X[:, :, :4, 3:5]]),
    ("Crop", [X], {"axis": "2,3", "crop_begin": "1,0", "crop_end": "0,6"}, {}, [X[:, :, 1:, :2]]),
    # The catalogue's examples of Pad.
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "constant"},
        {},
        [np.pad(N34, [(0, 2), (1, 3)])],
    ),
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "constant", "pad_value": 666},
        {},
        [np.pad(N34, [(0, 2), (1, 3)], constant_values=666)],
    ),
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "edge"},
        {},
        [
            np.float32(
                [
                    [1, 1, 2, 3, 4, 4, 4, 4],
                    [5, 5, 6, 7, 8, 8, 8, 8],
                    *[[9, 9, 10, 11] + [12] * 4] * 3,
                ]
            )
        ],
    ),
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "reflect"},
        {},
        [
            np.float32(
                [
                    [2, 1, 2, 3, 4, 3, 2, 1],
                    [6, 5, 6, 7, 8, 7, 6, 5],
                    [10, 9, 10, 11, 12, 11, 10, 9],
                    [6, 5, 6, 7, 8, 7, 6, 5],
                    [2, 1, 2, 3, 4, 3, 2, 1],
                ]
            )
        ],
    ),
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "symmetric"},
        {},
        [
            np.float32(
                [
                    [1, 1, 2, 3, 4, 4, 3, 2],
                    [5, 5, 6, 7, 8, 8, 7, 6],
                    [9, 9, 10, 11, 12, 12, 11, 10],
                    [9, 9, 10, 11, 12, 12, 11, 10],
                    [5, 5, 6, 7, 8, 8, 7, 6],
                ]
            )
        ],
    ),
    ("Reshape", [SQUARE], {"dim": "0,-1,5"}, {}, [SQUARE.reshape(2, 12, 5)]),
    ("Reshape", [SQUARE, Const([0, -1, 4])], {}, {}, [SQUARE.reshape(2, 15, 4)]),
    ("Reshape", [SQUARE, Const([0, -1, 4], "f4")], {}, {}, [SQUARE.reshape(2, 15, 4)]),
    ("Reshape", [SQUARE], {"dim": ""}, {}, [SQUARE.reshape(6, 20)]),
    ("Reshape", [SQUARE], {"axis": 1, "dim": "-1", "num_axes": 2}, {}, [SQUARE.reshape(2, 12, 5)]),
    ("Flatten", [SQUARE], {"axis": 1, "end_axis": -1}, {}, [SQUARE.reshape(2, 60)]),
    ("Flatten", [SQUARE], {"axis": 1, "end_axis": 2}, {}, [SQUARE.reshape(2, 12, 5)]),
    ("Flatten", [SQUARE], {}, {}, [SQUARE.reshape(-1)]),
    ("Permute", [SQUARE], {"order": "0,2,3,1"}, {}, [SQUARE.transpose(0, 2, 3, 1)]),
    ("Squeeze", [COLUMN, Const([2, -1])], {}, {}, [COLUMN[:, :, 0, 0]]),
    ("Squeeze", [COLUMN, Const([2], "f4")], {}, {}, [COLUMN[:, :, 0]]),
    ("Squeeze", [COLUMN], {}, {}, [COLUMN[:, :, 0, 0]]),
    ("Unsqueeze", [N34, Const([0, 3])], {}, {}, [N34.reshape(1, 3, 4, 1)]),
    ("Tile", [SQUARE], {"axis": 3, "tiles": 3}, {}, [np.tile(SQUARE, (1, 1, 1, 3))]),
    # begin_mask and end_mask of 0: the bound is ignored; the catalogue's example is of this kind
    (
        "StridedSlice",
        [SQUARE, Const([0, 1, 0, 0]), Const([0, 2, 0, 0]), Const([1, 1, 1, 2])],
        {
            "begin_mask": "0,1,0,0",
            "end_mask": "0,1,0,0",
            "ellipsis_mask": "0,0,0,0",
            "new_axis_mask": "0,0,0,0",
            "shrink_axis_mask": "0,1,0,0",
        },
        {},
        [SQUARE[:, 1, :, ::2]],
    ),
    (
        "StridedSlice",
        [N34, Const([1, -3]), Const([3, 4])],
        {"begin_mask": "1,1", "end_mask": "1,1"},
        {},
        [N34[1:3, -3:4]],
    ),
    (
        "ShuffleChannels",
        [X],
        {"axis": 1, "group": 3},
        {},
        [X.reshape(2, 3, 2, 56).transpose(0, 2, 1, 3).reshape(X.shape)],
    ),
    ("DepthToSpace", [DEEP], {"block_size": 2}, {}, [blocks(DEEP, 2)]),
    ("SpaceToDepth", [blocks(DEEP, 2)], {"block_size": 2}, {}, [DEEP]),
    ("Shape", [SQUARE], {}, {}, [np.int32([2, 3, 4, 5])]),
    ("ShapeOf", [SQUARE], {}, {}, [np.int32([2, 3, 4, 5])]),
    ("Fill", [Const([3, 4]), Const(5.0, "f4")], {}, {}, [np.full((3, 4), 5, np.float32)]),
    ("Broadcast", [COLUMN, Const([2, 3, 4, 5])], {}, {}, [np.broadcast_to(COLUMN, SQUARE.shape)]),
    ("Range", [Const(5), Const(15), Const(1)], {}, {}, [np.arange(5, 15, dtype=np.int32)]),
    ("OneHot", [np.int32([0, 1, 2])], {"axis": -1, "depth": 3}, {}, [np.eye(3, dtype="f4")]),
    (
        "OneHot",
        [np.float32([1, 5])],
        {"axis": 0, "depth": 2, "on_value": 7, "off_value": -1},
        {},
        [np.float32([[-1, -1], [7, -1]])],
    ),
    (
        "ReverseSequence",
        [SQUARE, Const([2, 3])],
        {"batch_axis": 0, "seq_axis": 1},
        {},
        [np.stack([SQUARE[0, [1, 0, 2]], SQUARE[1, ::-1]])],
    ),
    (
        "Bucketize",
        [np.float32([0.5, 2, 9]), Const([1, 2, 3], "f4")],
        {"with_right_bound": "True"},
        {},
        [np.int32([0, 1, 3])],
    ),
]

ORDER = np.argsort(-SQUARE, 1, kind="stable")[:, :2]
TABLE_DATA = real(6, 12, 10, 4)
SELECTIONS: list[Row] = [
    ("ArgMax", [SQUARE], {"axis": 1, "top_k": 2, "out_max_val": 0}, {}, [ORDER.astype("f4")]),
    (
        "ArgMax",
        [SQUARE],
        {"axis": 1, "top_k": 1, "out_max_val": 1},
        {},
        [SQUARE.max(1, keepdims=True)],
    ),
    (
        "ArgMax",
        [SQUARE],
        {"top_k": 1, "out_max_val": 0},
        {},
        [SQUARE.reshape(2, -1).argmax(1).astype("f4").reshape(2, 1, 1)],
    ),
    (
        "ArgMax",
        [SQUARE],
        {"top_k": 1, "out_max_val": 1},
        {},
        [
            np.stack([SQUARE.reshape(2, -1).argmax(1), SQUARE.reshape(2, -1).max(1)], 1)
            .astype("f4")
            .reshape(2, 2, 1)
        ],
    ),
    (
        "TopK",
        [SQUARE, Const(2)],
        {"axis": 1, "mode": "max", "sort": "value"},
        {},
        [np.take_along_axis(SQUARE, ORDER, 1), ORDER.astype("i4")],
    ),
    (
        "TopK",
        [SQUARE, Const([1], "f4")],
        {"axis": -1, "mode": "min", "sort": "index"},
        {},
        [SQUARE.min(3, keepdims=True)],
    ),
    ("Gather", [N34, Const([[1, 0], [2, 2]])], {"axis": 0}, {}, [N34[[[1, 0], [2, 2]]]]),
    ("Gather", [N34, Const([3, 1], "f4")], {"axis": -1}, {}, [N34[:, [3, 1]]]),
    # The catalogue's order: the indices first.
    (
        "Gather",
        [np.int32([[[1, 0, 11]]]), Const(TABLE_DATA, "f4")],
        {"axis": 1},
        {},
        [TABLE_DATA[:, [[[1, 0, 11]]]]],
    ),
    *(
        (
            f"Reduce{name}",
            [POSITIVE, Const([1, -1])],
            {"keep_dims": "True"},
            {},
            [function(POSITIVE.astype(np.float64), axis=(1, 3), keepdims=True)],
        )
        for name, function in {
            "Max": np.max,
            "Min": np.min,
            "Mean": np.mean,
            "Sum": np.sum,
            "Prod": np.prod,
        }.items()
    ),
    ("ReduceSum", [POSITIVE, Const([2], "f4")], {"keep_dims": "False"}, {}, [POSITIVE.sum(2)]),
    ("ReduceL1", [SQUARE, Const([1])], {"keep_dims": 0}, {}, [np.abs(SQUARE).sum(1)]),
    ("ReduceL2", [SQUARE, Const([1])], {"keep_dims": 0}, {}, [np.sqrt((SQUARE**2).sum(1))]),
    ("ReduceLogSum", [POSITIVE, Const([1])], {"keep_dims": 0}, {}, [np.log(POSITIVE.sum(1))]),
    (
        "ReduceLogSumExp",
        [SQUARE, Const([1])],
        {"keep_dims": 0},
        {},
        [np.log(np.exp(SQUARE).sum(1))],
    ),
    ("ReduceSumSquare", [SQUARE, Const([1])], {"keep_dims": 0}, {}, [(SQUARE**2).sum(1)]),
    (
        "ReduceAnd",
        [np.round(SQUARE), Const([3])],
        {"keep_dims": 1},
        {},
        [np.round(SQUARE).all(3, keepdims=True).astype("f4")],
    ),
    (
        "ReduceOr",
        [np.round(SQUARE), Const([3])],
        {"keep_dims": 1},
        {},
        [np.round(SQUARE).any(3, keepdims=True).astype("f4")],
    ),
]

NEAREST, LINEAR = "caffe.ResampleParameter.NEAREST", "caffe.ResampleParameter.LINEAR"
RESAMPLINGS: list[Row] = [
    (
        "Interp",
        [SQUARE],
        {"height": 9, "width": 7, "align_corners": 1, "pad_beg": 0, "pad_end": 0},
        {},
        [oracles.bilinear(SQUARE, (9, 7), corners=True)],
    ),
    (
        "Interp",
        [SQUARE],
        {"align_corners": 0, "pad_beg": 0, "pad_end": 0, "factor": 2},
        {},
        [oracles.bilinear(SQUARE, (8, 10), corners=False)],
    ),
    (
        "Interp",
        [SQUARE],
        {"align_corners": 1, "width": 3, "height": 2},
        {},
        [oracles.bilinear(SQUARE, (2, 3), corners=True)],
    ),
    (
        "Interp",
        [SQUARE],
        {"align_corners": 1, "width": 6, "height": 4, "pad_beg": -1, "pad_end": -1},
        {},
        [oracles.bilinear(SQUARE[:, :, 1:-1, 1:-1], (4, 6), corners=True)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": NEAREST, "factor": 2, "antialias": 0},
        {},
        [SQUARE.repeat(2, 2).repeat(2, 3)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": NEAREST, "height": 6, "width": 3},
        {},
        [oracles.nearest(SQUARE, (6, 3))],
    ),
    (
        "Resample",
        [SQUARE, Const([2, 3, 8, 15])],
        {"type": NEAREST, "factor": 1},
        {},
        [SQUARE.repeat(2, 2).repeat(3, 3)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": LINEAR, "factor": 2, "antialias": 0},
        {},
        [oracles.triangle(SQUARE, (8, 10), antialias=False)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": LINEAR, "factor": 0.5, "antialias": 1},
        {},
        [oracles.triangle(SQUARE, (2, 3), antialias=True)],
    ),
    ("Upsampling", [SQUARE], {"scale": 3}, {}, [SQUARE.repeat(3, 2).repeat(3, 3)]),
]

STATE, CELL, DATA = real(2, 4), real(2, 4), real(2, 3)
LSTM_W, LSTM_B = real(16, 7), real(16)
GRU_W, GRU_B = real(12, 7), real(12)
LBR_B = real(16)
RNN_W, RNN_B = real(4, 7), real(4)
SEQUENCE = real(2, 5, 3)


def run_lstm(x: Array, h: Array, c: Array) -> tuple[Array, Array, Array]:
    steps = []
    for t in range(x.shape[1]):
        h, c = oracles.lstm(x[:, t], h, c, LSTM_W, LSTM_B)
        steps.append(h)
    return np.stack(steps, 1), h, c


def run_gru(x: Array, h: Array) -> tuple[Array, Array]:
    steps = []
    for t in range(x.shape[1]):
        h = oracles.gru(x[:, t], h, GRU_W, GRU_B, linear_before_reset=False)
        steps.append(h)
    return np.stack(steps, 1), h


def run_rnn(x: Array, h: Array) -> tuple[Array, Array]:
    steps = []
    for t in range(x.shape[1]):
        h = np.tanh(np.concatenate([x[:, t], h], 1) @ RNN_W.T + RNN_B)
        steps.append(h)
    return np.stack(steps, 1), h


ZERO = np.zeros((2, 4), np.float32)
LOGITS = np.float32([[0.1, 0.9, 0.0], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
RECURRENT: list[Row] = [
    (
        "LSTMCell",
        [DATA, STATE, CELL],
        {"hidden_size": 4},
        {"weights": LSTM_W, "biases": LSTM_B},
        list(oracles.lstm(DATA, STATE, CELL, LSTM_W, LSTM_B)),
    ),
    (
        "LSTMCell",
        [DATA, STATE, CELL],
        {},
        {"weights": LSTM_W},
        list(oracles.lstm(DATA, STATE, CELL, LSTM_W, LSTM_B * 0)),
    ),
    (
        "GRUCell",
        [DATA, STATE],
        {"hidden_size": 4},
        {"weights": GRU_W, "biases": GRU_B},
        [oracles.gru(DATA, STATE, GRU_W, GRU_B, linear_before_reset=False)],
    ),
    (
        "GRUCell",
        [DATA, STATE],
        {"hidden_size": 4, "linear_before_reset": 1},
        {"weights": GRU_W, "biases": LBR_B},
        [oracles.gru(DATA, STATE, GRU_W, LBR_B, linear_before_reset=True)],
    ),
    (
        "RNNCell",
        [DATA, STATE],
        {"hidden_size": 4, "activations": "tanh"},
        {"weights": RNN_W, "biases": RNN_B},
        [np.tanh(np.concatenate([DATA, STATE], 1) @ RNN_W.T + RNN_B)],
    ),
    (
        "LSTMSequence",
        [SEQUENCE, STATE, CELL],
        {"hidden_size": 4, "direction": "Forward", "axis": 1},
        {"weights": LSTM_W, "biases": LSTM_B},
        list(run_lstm(SEQUENCE, STATE, CELL)),
    ),
    (
        "LSTMSequence",
        [SEQUENCE.swapaxes(0, 1)],
        {"hidden_size": 4, "direction": "Backward", "axis": 0},
        {"weights": LSTM_W, "biases": LSTM_B},
        [run_lstm(SEQUENCE[:, ::-1], ZERO, ZERO)[0][:, ::-1].swapaxes(0, 1)],
    ),
    (
        "GRUSequence",
        [SEQUENCE, STATE],
        {"hidden_size": 4, "direction": "Forward", "axis": 1},
        {"weights": GRU_W, "biases": GRU_B},
        list(run_gru(SEQUENCE, STATE)),
    ),
    (
        "RNNSequence",
        [SEQUENCE, STATE],
        {"hidden_size": 4, "activations": "tanh"},
        {"weights": RNN_W, "biases": RNN_B},
        list(run_rnn(SEQUENCE, STATE)),
    ),
    (
        "CTCGreedyDecoder",
        [LOGITS.reshape(4, 1, 3), np.ones((4, 1), np.float32)],
        {"ctc_merge_repeated": 1},
        {},
        [np.float32([1, 0, -1, -1]).reshape(1, 4, 1, 1)],
    ),
    (
        "CTCGreedyDecoder",
        [LOGITS.reshape(4, 1, 3), np.ones((4, 1), np.float32)],
        {"ctc_merge_repeated": 0},
        {},
        [np.float32([1, 1, 0, -1]).reshape(1, 4, 1, 1)],
    ),
]

MAP, IMAGE = np.zeros((1, 8, 2, 3), np.float32), np.zeros((1, 3, 32, 48), np.float32)
VARIANCE4 = (0.1, 0.1, 0.2, 0.2)
PRIOR = {"min_size": "8.0", "max_size": "18.0", "aspect_ratio": "2.000000", "flip": 1, "clip": 0}
PRIOR |= {"offset": "0.500000", "variance": "0.100000,0.100000,0.200000,0.200000"}
YOLO = real(1, 3 * (5 + 2), 2, 3)
FINE = real(1, 8, 4, 6)
ROIS = np.float32([[0, 1, 1, 8, 9], [1, 0, 2, 5, 11]])
X8 = real(2, 8, 9, 9)
SCORES = np.float32([[[0.9, 0.8, 0.75, 0.3]]])
BOXES = np.float32([[[0, 0, 10, 10], [0, 1, 10, 11], [20, 20, 30, 30], [40, 40, 41, 41]]])
# One class besides the background: box 1 overlaps box 0, box 3 is below the threshold.
PRIORS = np.float32([[0.1, 0.1, 0.5, 0.5, 0.12, 0.1, 0.52, 0.5, 0.6, 0.6, 0.9, 0.9]])
CONFIDENCES = np.float32([[0.1, 0.9, 0.2, 0.8, 0.4, 0.6]])
DETECTED = np.zeros((1, 1, 3, 7), np.float32)
DETECTED[0, 0, 0] = [0, 1, 0.9, 0.1, 0.1, 0.5, 0.5]
DETECTED[0, 0, 1] = [0, 1, 0.6, 0.6, 0.6, 0.9, 0.9]
DETECTED[0, 0, 2, 0] = -1
RPN_SCORES = RNG.permutation(np.arange(2 * 18 * 3 * 4, dtype=np.float32) / 400 - 0.1)
RPN_SCORES = RPN_SCORES.reshape(2, 18, 3, 4)
RPN_DELTAS = 0.2 * real(2, 36, 3, 4)
FEW = np.where(RPN_SCORES < 0.93, -1, RPN_SCORES).astype(np.float32)
SMALL_SCALES = (0.5, 1.0, 2.0)


def nms_row(
    scores: Array, image: list[float], least: int, counts: tuple[int, int], swap: bool = False
) -> Row:
    """Return a SimplerNMS; the Inference Engine knew scores and deltas by their channels."""
    attributes = {"cls_threshold": "0.7", "max_num_proposals": 300, "iou_threshold": "0.500000"}
    attributes |= {"min_bbox_size": least, "feat_stride": 16, "scale": "0.500000,1.0,2.0"}
    attributes |= {"pre_nms_topn": counts[0], "post_nms_topn": counts[1]}
    inputs = [RPN_DELTAS, scores] if swap else [scores, RPN_DELTAS]
    wanted = oracles.simpler_nms(scores, RPN_DELTAS, image, SMALL_SCALES, 16, least, 0.5, counts)
    return "SimplerNMS", [*inputs, np.float32([image])], attributes, {}, [wanted]


STEPS = {"step_w": "16.0", "step_h": "12.0"}
"""Of a PriorBox, which the current one lacks."""
ROOT2 = 2**0.5
DETECTIONS: list[Row] = [
    nms_row(RPN_SCORES, [48, 64, 1], 8, (50, 12)),
    nms_row(RPN_SCORES, [48, 64, 1.9], 16, (9, 12), swap=True),
    nms_row(FEW, [48.7, 64.2, 2], 4, (100, 20)),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**PRIOR, "step": "16.000000", "img_h": 64, "img_w": 96},
        {},
        [oracles.prior_box((2, 3), (64, 96), 8, 18, 2, 16, VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**PRIOR, "step": "16.000000", "img_size": "64"},
        {},
        [oracles.prior_box((2, 3), (64, 64), 8, 18, 2, 16, VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**PRIOR, **STEPS},
        {},
        [
            oracles.clustered(
                (2, 3),
                (32, 48),
                [(8, 8), (12, 12), (8 * ROOT2, 8 / ROOT2), (8 / ROOT2, 8 * ROOT2)],
                (16, 12),
                VARIANCE4,
            )
        ],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {
            "min_size": "8,4",
            "aspect_ratio": "1.0,4.0",
            "flip": 0,
            "clip": 0,
            "offset": "0.5",
            "variance": VARIANCE4,
            "scale_all_sizes": 0,
            **STEPS,
        },
        {},
        [oracles.clustered((2, 3), (32, 48), [(8, 8), (4, 4), (16, 4)], (16, 12), VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {**PRIOR, "step": "16.000000"},
        {},
        [oracles.prior_box((2, 3), (32, 48), 8, 18, 2, 16, VARIANCE4)],
    ),
    (
        "PriorBox",
        [MAP, IMAGE],
        {
            **PRIOR,
            "step": "0",
            "step_h": "16.0",
            "step_w": "16.0",
            "img_h": 0,
            "img_w": 0,
            "img_size": 0,
            "density": "",
        },
        {},
        [oracles.prior_box((2, 3), (32, 48), 8, 18, 2, 16, VARIANCE4)],
    ),
    (
        "PriorBoxClustered",
        [MAP, IMAGE],
        {
            "width": "8.0,4.0",
            "height": "6.0,12.0",
            "step": "16.0",
            "offset": 0.5,
            "clip": 0,
            "flip": 0,
            "variance": VARIANCE4,
        },
        {},
        [oracles.clustered((2, 3), (32, 48), [(8, 6), (4, 12)], (16, 16), VARIANCE4)],
    ),
    (
        "PriorBoxClustered",
        [MAP, IMAGE],
        {
            "width": "8.0",
            "height": "6.0",
            "step_w": "16.0",
            "step_h": "16.0",
            "img_h": 64,
            "img_w": 96,
            "offset": 0.5,
            "variance": VARIANCE4,
        },
        {},
        [oracles.clustered((2, 3), (64, 96), [(8, 6)], (16, 16), VARIANCE4)],
    ),
    (
        "DetectionOutput",
        [
            np.zeros((1, 12), np.float32),
            CONFIDENCES,
            np.stack([PRIORS, np.full_like(PRIORS, 0.1)], 1),
        ],
        {
            "num_classes": 2,
            "background_label_id": 0,
            "top_k": 400,
            "keep_top_k": 3,
            "normalized": 1,
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
            "share_location": 1,
            "nms_threshold": "0.449999988",
            "confidence_threshold": "0.0100000",
            "eta": "1.0",
            "variance_encoded_in_target": 0,
            "visualize": "False",
        },
        {},
        [DETECTED],
    ),
    (
        "RegionYolo",
        [YOLO],
        {
            "axis": 1,
            "classes": 2,
            "coords": 4,
            "do_softmax": 0,
            "end_axis": 3,
            "mask": "0,1,2",
            "num": 9,
        },
        {},
        [oracles.region_yolo(YOLO, 2, 3)],
    ),
    (
        "RegionYolo",
        [YOLO],
        {
            "axis": 1,
            "classes": 2,
            "coords": 4,
            "do_softmax": 1,
            "end_axis": 3,
            "num": 3,
            "anchors": "1.0,2.0",
        },
        {},
        [oracles.region_softmax(YOLO, 2, 3).reshape(1, -1)],
    ),
    ("ReorgYolo", [FINE], {"stride": 2}, {}, [oracles.reorg_yolo(FINE, 2)]),
    (
        "ROIPooling",
        [X, ROIS],
        {"pooled_h": 2, "pooled_w": 3, "spatial_scale": "0.500000", "method": "max"},
        {},
        [oracles.roi_max(X, ROIS, (2, 3), 0.5)],
    ),
    (
        "PSROIPooling",
        [X8, ROIS],
        {"group_size": 2, "output_dim": 2, "spatial_scale": 0.5},
        {},
        [oracles.psroi_average(X8, ROIS, 2, 2, 0.5)],
    ),
    (
        "NonMaxSuppression",
        [BOXES, SCORES, Const([3]), Const([0.5], "f4"), Const([0.5], "f4")],
        {"center_point_box": 0},
        {},
        [np.int32([[0, 0, 0], [0, 0, 2], [-1, -1, -1]])],
    ),
    (
        "NonMaxSuppression",
        [BOXES, SCORES],
        {"center_point_box": "false"},
        {},
        [np.int32([[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 3], [-1, -1, -1]])],
    ),
]

ROWS = [
    *CONVOLUTIONS,
    *DECONVOLUTIONS,
    *POOLINGS,
    *PRODUCTS,
    *ELEMENTWISE,
    *ACTIVATIONS,
    *NORMALIZATIONS,
    *MOVES,
    *SELECTIONS,
    *RESAMPLINGS,
    *RECURRENT,
    *DETECTIONS,
]
TESTED_ELSEWHERE = {
    *("Input", "Const", "Memory", "Proposal", "TensorIterator"),
}


def identify(row: Row) -> str:
    return row[0]


def check(row: Row, found: Sequence[Array]) -> None:
    expected = row[4]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(one, other, 2e-5, 2e-5)


@pytest.mark.parametrize("row", ROWS, ids=identify)
def test_layer(row: Row, tmp_path: Path) -> None:
    check(row, single(row, tmp_path))


@pytest.mark.parametrize("row", OLD_WINDOWS, ids=identify)
@pytest.mark.parametrize("version", [2, 3])
def test_windows_of_version_2(row: Row, version: int, tmp_path: Path) -> None:
    check(row, single(row, tmp_path, version))


def test_every_layer_of_the_table_is_tested() -> None:
    tested = {row[0].lower() for row in ROWS} | {kind.lower() for kind in TESTED_ELSEWHERE}
    assert {kind.lower() for kind in TABLE} == tested


@pytest.mark.parametrize(
    "row",
    [CONVOLUTIONS[4], DECONVOLUTIONS[2], PRODUCTS[0], ACTIVATIONS[4], RECURRENT[2]],
    ids=identify,
)
def test_blobs_of_f16(row: Row, tmp_path: Path) -> None:
    """They are rounded to f16, and computed in f32 from inputs of f32."""
    found = single(row, tmp_path, precision="FP16")
    for one, other in zip(found, row[4], strict=True):
        assert one.dtype == np.float32
        assert 0 < abs(one - other).max() < 0.05 * max(1, abs(np.asarray(other)).max())


ITERATOR = """<port_map>
    <input axis="1" external_port_id="0" internal_layer_id="1" internal_port_id="0" {range}/>
    <input external_port_id="1" internal_layer_id="2" internal_port_id="1"/>
    <input external_port_id="2" internal_layer_id="2" internal_port_id="2"/>
    <output axis="1" external_port_id="3" internal_layer_id="4" internal_port_id="2" {range}/>
    <output external_port_id="4" internal_layer_id="2" internal_port_id="6"/>
</port_map>
<back_edges>
    <edge from-layer="2" from-port="5" to-layer="2" to-port="1"/>
    <edge from-layer="2" from-port="6" to-layer="2" to-port="2"/>
</back_edges>
<body>
    <layers>
        <layer id="0" name="shape" type="Const">
            <output><port id="1" precision="I32"><dim>2</dim></port></output>
            <blobs>{shape}</blobs>
        </layer>
        <layer id="1" name="squeeze" type="Reshape" precision="FP32">
            <input><port id="0"><dim>2</dim><dim>1</dim><dim>3</dim></port>
            <port id="1"><dim>2</dim></port></input>
            <output><port id="2"><dim>2</dim><dim>3</dim></port></output>
        </layer>
        <layer id="2" name="cell" type="LSTMCell" precision="FP32">
            <data hidden_size="4" activations="sigmoid,tanh,tanh" activations_alpha="" clip="0"/>
            <input><port id="0"><dim>2</dim><dim>3</dim></port>
            <port id="1"><dim>2</dim><dim>4</dim></port>
            <port id="2"><dim>2</dim><dim>4</dim></port></input>
            <output><port id="5"><dim>2</dim><dim>4</dim></port>
            <port id="6"><dim>2</dim><dim>4</dim></port></output>
            <blobs>{weights}{biases}</blobs>
        </layer>
        <layer id="4" name="unsqueeze" type="Reshape" precision="FP32">
            <data dim="2,1,4"/>
            <input><port id="0"><dim>2</dim><dim>4</dim></port></input>
            <output><port id="2"><dim>2</dim><dim>1</dim><dim>4</dim></port></output>
        </layer>
    </layers>
    <edges>
        <edge from-layer="0" from-port="1" to-layer="1" to-port="1"/>
        <edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
        <edge from-layer="2" from-port="5" to-layer="4" to-port="0"/>
    </edges>
</body>"""


def iterator(range_: str = 'start="0"') -> OldIR:
    """An LSTM as Model Optimizer wrote those of TensorFlow and ONNX."""
    ir = OldIR(6)
    inputs = [ir.input(2, 5, 3, name="x0"), ir.input(2, 4, name="x1"), ir.input(2, 4, name="x2")]
    places = {
        "shape": ir.place("custom", np.array([2, 3], np.int32)),
        "weights": ir.place("weights", LSTM_W),
        "biases": ir.place("biases", LSTM_B),
    }
    ir.layer(
        "TensorIterator",
        inputs,
        (2, 5, 4),
        (2, 4),
        name="it",
        inner=ITERATOR.format(range=range_, **places),
    )
    return ir


GIVEN_STATES = {"x0": SEQUENCE, "x1": STATE, "x2": CELL}


@pytest.mark.parametrize("backward", [False, True])
def test_tensor_iterator(backward: bool, tmp_path: Path) -> None:
    ir = iterator('start="-1" end="0" stride="-1"' if backward else 'start="0"')
    model = deconv_ir.load(ir.write(tmp_path))
    deconv_ir.save(model, tmp_path / "new.xml")
    given = SEQUENCE[:, ::-1] if backward else SEQUENCE
    steps, _, cell = run_lstm(given, STATE, CELL)
    for again in (model, deconv_ir.load(tmp_path / "new.xml")):
        found = list(again.run(GIVEN_STATES).values())
        np.testing.assert_allclose(found[0], steps[:, ::-1] if backward else steps, 2e-5, 2e-5)
        np.testing.assert_allclose(found[1], cell, 2e-5, 2e-5)


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ('internal_layer_id="4"', 'internal_layer_id="9"', "names layer 9"),
        (
            'layer_id="2" internal_port_id="2"',
            'layer_id="2" internal_port_id="7"',
            "names input port 7 of layer 2",
        ),
        ('to-port="2"/>', 'to-port="x"/>', "must be a whole number"),
        ('type="LSTMCell"', 'type="Strange"', "Strange (1)"),
        ('hidden_size="4"', 'hidden_size="x"', "hidden_size"),
        ('from-layer="1" from-port="2"', 'from-layer="8" from-port="2"', "names layer 8"),
    ],
)
def test_invalid_bodies(was: str, now: str, message: str, tmp_path: Path) -> None:
    path = iterator().write(tmp_path)
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now))
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(path)
    assert message in str(caught.value)
    assert caught.value.line is not None


def test_memory_keeps_its_value_between_runs(tmp_path: Path) -> None:
    """Catalogue, Memory: a pair of layers with one id, one of which has no output."""
    ir = OldIR(7)
    x = ir.input(1, 3)
    state = ir.layer("Memory", (), (1, 3), attributes={"id": "r_1-2", "index": 1, "size": 2})
    total = ir.layer("Eltwise", [x, state], (1, 3), attributes={"operation": "sum"}, name="total")
    ir.layer("Memory", [total], attributes={"id": "r_1-2", "index": 0, "size": 2})
    ir.layer("ReLU", [total], (1, 3), name="y")
    model = deconv_ir.load(ir.write(tmp_path))
    one = np.ones((1, 3), np.float32)
    kept = deconv_ir.State()
    assert [model.run({"x": one}, state=kept)["y"][0, 0] for _ in range(3)] == [1, 2, 3]
    assert model.run({"x": one})["y"][0, 0] == 1


def test_proposals(tmp_path: Path) -> None:
    """One anchor at each of two places: the better box, then the other (catalogue, Proposal)."""
    ir = OldIR(4)
    scores, deltas = ir.input(1, 2, 1, 2, name="scores"), ir.input(1, 4, 1, 2, name="deltas")
    image = ir.input(1, 3, name="image")
    attributes = {"base_size": 16, "feat_stride": 16, "min_size": 1, "nms_thresh": 0.7}
    attributes |= {"pre_nms_topn": 10, "post_nms_topn": 2, "ratio": "1", "scale": "1.0"}
    ir.layer("Proposal", [scores, deltas, image], (2, 5), attributes=attributes, name="it")
    model = deconv_ir.load(ir.write(tmp_path))
    found = model.run(
        {
            "scores": np.float32([[[[0.9, 0.1]], [[0.1, 0.9]]]]),
            "deltas": np.zeros((1, 4, 1, 2), np.float32),
            "image": np.float32([[64, 64, 1]]),
        }
    )["it"]
    # Faster R-CNN's anchor of 16 pixels, moved by the stride: half of it from its center.
    assert found.tolist() == [[0, 16, 0, 32, 16], [0, 0, 0, 16, 16]]


@pytest.mark.parametrize("row", ROWS, ids=identify)
def test_nothing_is_reported(row: Row, tmp_path: Path) -> None:
    """What a conversion adds to a correct file is no finding."""
    ir, _ = network_of(row)
    result = check_file(ir.write(tmp_path), choose())
    assert not result.findings


def test_nothing_is_reported_of_a_body(tmp_path: Path) -> None:
    assert not check_file(iterator().write(tmp_path), choose()).findings


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('<port id="5"><dim>2</dim><dim>4</dim>', "declared 7, computed 4"),
        ('<port id="1"><dim>2</dim><dim>4</dim>', "brings [2,4] to the input 'cell/input_1'"),
    ],
)
def test_wrong_dims_in_a_body_are_reported(right: str, wrong: str, tmp_path: Path) -> None:
    path = iterator().write(tmp_path)
    text = path.read_text()
    start = text.index(right, text.index("<body>"))
    path.write_text(text[:start] + text[start:].replace(right, right.replace("4", "7"), 1))
    (found,) = check_file(path, choose()).findings
    assert wrong in found.message
    assert found.layer == "'cell' (LSTMCell, id 2)"
    places = text[:start].count("\n") + 1, text[: text.index('name="cell"')].count("\n") + 1
    assert found.line in places  # the port, or its layer
