"""Elementwise operations: results, precision and errors.

Expected values follow from the formula in each operation's document, worked by
hand or taken from Python's `math`.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import I64
from deconv_ir.operations import Context, TensorInfo, find_operation

NAN, INF = math.nan, math.inf

# type, input, output: one row an operation.
UNARY = [
    ("Abs", [-1.5, 0.0, NAN, -INF], [1.5, 0, NAN, INF]),
    ("Negative", [-1.5, 2.0], [1.5, -2]),
    ("Sign", [-3.0, 0.0, 5.0, NAN], [-1, 0, 1, NAN]),
    ("Floor", [-1.5, 1.5], [-2, 1]),
    ("Ceiling", [-1.5, 1.5], [-1, 2]),
    ("ReLU", [-1.0, 0.0, 2.0, NAN, -INF], [0, 0, 2, NAN, 0]),
    ("Exp", [0.0, 1.0, -INF], [1, math.e, 0]),
    ("Log", [1.0, math.e, 0.0, -1.0], [0, 1, -INF, NAN]),
    ("Sqrt", [4.0, 0.0, -1.0], [2, 0, NAN]),
    ("Sin", [0.0, math.pi / 2], [0, 1]),
    ("Cos", [0.0, math.pi], [1, -1]),
    ("Tan", [0.0, math.pi / 4], [0, 1]),
    ("Asin", [0.0, 1.0], [0, math.pi / 2]),
    ("Acos", [1.0, -1.0], [0, math.pi]),
    ("Atan", [0.0, 1.0], [0, math.pi / 4]),
    ("Sinh", [1.0], [math.sinh(1)]),
    ("Cosh", [1.0], [math.cosh(1)]),
    ("Tanh", [0.5, INF], [math.tanh(0.5), 1]),
    ("Asinh-4", [1.0], [math.asinh(1)]),
    ("Acosh-4", [2.0], [math.acosh(2)]),
    ("Atanh-4", [0.5], [math.atanh(0.5)]),
    ("Erf", [0.0, 1.0], [0, math.erf(1)]),
    ("Sigmoid", [0.0, 1.0, -100.0, 100.0], [0.5, 1 / (1 + math.exp(-1)), 0, 1]),
    ("SoftPlus-4", [0.0, 100.0, -100.0], [math.log(2), 100, 0]),
    ("Mish-4", [0.0, 1.0], [0, math.tanh(math.log(1 + math.e))]),
    ("HSwish-4", [-4.0, -1.0, 0.0, 1.0, 4.0], [0, -1 / 3, 0, 2 / 3, 4]),
    ("HSigmoid-5", [-4.0, 0.0, 1.5, 4.0], [0, 0.5, 0.75, 1]),
    ("SoftSign-9", [-1.0, 3.0], [-0.5, 0.75]),
    ("LogicalNot", [True, False], [False, True]),
    ("BitwiseNot-13", [0, -1, 5], [-1, 0, -6]),
    ("IsNaN-10", [NAN, INF, 1.0], [True, False, False]),
    ("IsFinite-10", [NAN, INF, 1.0], [False, False, True]),
    ("IsInf-10", [NAN, INF, -INF], [False, True, True]),
    ("Round-5", [0.5, 1.5, -2.5, 0.49999997], [0, 2, -2, 0]),
    ("Gelu-2", [0.0, 1.0], [0, 0.5 * (1 + math.erf(math.sqrt(0.5)))]),
    ("Swish-4", [1.0], [1 / (1 + math.exp(-1))]),
]

# type, inputs, output.
BINARY = [
    ("Add", [1.0, INF], [2.0, -INF], [3, NAN]),
    ("Subtract", [1, 5], [3, 2], [-2, 3]),
    ("Multiply", [3.0, 0.0], [2.0, INF], [6, NAN]),
    ("Divide", [1.0, 1.0, 0.0], [4.0, 0.0, 0.0], [0.25, INF, NAN]),
    ("Divide", [-7, 7, -7, 7], [2, -2, -2, 2], [-4, -4, 3, 3]),
    ("Maximum", [1.0, NAN], [2.0, 1.0], [2, NAN]),
    ("Minimum", [1.0, NAN], [2.0, 1.0], [1, NAN]),
    ("Mod", [-7, 7, -7], [3, -3, -3], [-1, 1, -1]),
    ("FloorMod", [-7, 7, -7], [3, -3, -3], [2, -2, -1]),
    ("Mod", [-7.5], [2.0], [-1.5]),
    ("FloorMod", [-7.5], [2.0], [0.5]),
    ("Power", [2, -1, 0, 2, -1], [10, 3, 0, -1, -3], [1024, -1, 1, 0, -1]),
    ("Power", [2.0, 4.0], [-1.0, 0.5], [0.5, 2]),
    ("SquaredDifference", [1.0, 5.0], [4.0, 3.0], [9, 4]),
    ("Equal", [1.0, NAN], [1.0, NAN], [True, False]),
    ("NotEqual", [1.0, NAN], [1.0, NAN], [False, True]),
    ("Greater", [1, 2, 3], [2, 2, 2], [False, False, True]),
    ("GreaterEqual", [1, 2, 3], [2, 2, 2], [False, True, True]),
    ("Less", [1, 2, 3], [2, 2, 2], [True, False, False]),
    ("LessEqual", [1, 2, 3], [2, 2, 2], [True, True, False]),
    ("LogicalAnd", [True, True, False], [True, False, False], [True, False, False]),
    ("LogicalOr", [True, True, False], [True, False, False], [True, True, False]),
    ("LogicalXor", [True, True, False], [True, False, False], [False, True, False]),
    ("BitwiseAnd-13", [6, -1], [3, 5], [2, 5]),
    ("BitwiseOr-13", [6, 0], [3, 5], [7, 5]),
    ("BitwiseXor-13", [6, -1], [3, 5], [5, -6]),
    ("BitwiseLeftShift-15", [1, 3], [4, 1], [16, 6]),
    ("BitwiseRightShift-15", [16, 7], [4, 1], [1, 3]),
]


@pytest.mark.parametrize(("kind", "data", "expected"), UNARY)
def test_unary(run, kind: str, data, expected) -> None:
    np.testing.assert_allclose(run(kind, data), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["Floor", "Ceiling"])
def test_known_integers_stay_known_when_they_are_rounded(kind: str) -> None:
    data = TensorInfo((2,), I64, (-3, 64))
    assert find_operation(kind)().infer([data], Context()) == (data,)


@pytest.mark.parametrize(("kind", "a", "b", "expected"), BINARY)
def test_binary(run, kind: str, a, b, expected) -> None:
    np.testing.assert_allclose(run(kind, a, b), expected, rtol=1e-6)


# type, attributes, inputs, output.
WITH_ATTRIBUTES = [
    ("Divide", {"m_pythondiv": "false"}, ([-7, 7, -7, 7], [2, -2, -2, 2]), [-3, -3, 3, 3]),
    ("Round-5", {"mode": "half_away_from_zero"}, ([0.5, -2.5, 0.49999997],), [1, -3, 0]),
    ("IsInf-10", {"detect_negative": "false"}, ([INF, -INF],), [True, False]),
    ("IsInf-10", {"detect_positive": "false"}, ([INF, -INF],), [False, True]),
    ("Clamp", {"min": "-1", "max": "2.5"}, ([-3.0, 1.0, 9.0, NAN],), [-1, 1, 2.5, NAN]),
    ("Clamp", {"min": "-1.5", "max": "2.5"}, ([-3, 1, 9],), [-1, 1, 2]),
    ("Elu", {"alpha": "2"}, ([-1.0, 3.0],), [2 * math.expm1(-1), 3]),
    ("Gelu-7", {"approximation_mode": "TANH"}, ([1.0],), [0.841192]),
    ("Selu", {}, ([-1.0, 2.0], 1.5, 2.0), [3 * math.expm1(-1), 4]),
    ("HardSigmoid", {}, ([-9.0, 1.0, 9.0], 0.5, 0.25), [0, 0.75, 1]),
    ("Swish-4", {}, ([1.0], 2.0), [1 / (1 + math.exp(-2))]),
    ("PReLU", {}, ([[[-1.0, 2.0], [-3.0, -4.0]]], [0.5, 0.1]), [[[-0.5, 2], [-0.3, -0.4]]]),
    ("SoftMax", {"axis": "1"}, ([[0.0, math.log(3)]],), [[0.25, 0.75]]),
    ("SoftMax-8", {"axis": "-1"}, ([[1000.0, 1000.0]],), [[0.5, 0.5]]),
    ("LogSoftmax-5", {"axis": "-1"}, ([[0.0, math.log(3)]],), [[math.log(0.25), math.log(0.75)]]),
    ("Select", {}, ([[True], [False]], [1.0, 2.0], 9.0), [[1, 2], [9, 9]]),
]


@pytest.mark.parametrize(("kind", "attributes", "inputs", "expected"), WITH_ATTRIBUTES)
def test_with_attributes(run, kind: str, attributes, inputs, expected) -> None:
    np.testing.assert_allclose(run(kind, *inputs, **attributes), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("kind", ["Add", "Subtract", "Multiply"])
def test_integers_are_exact_modulo_their_range(run, kind: str, dtype) -> None:
    """Semantics, 'Numbers': two's complement, though OpenVINO's CPU plugin saturates."""
    info = np.iinfo(dtype)
    a = np.array([info.max, info.min, info.max], dtype)
    b = np.array([info.max, 1, 3], dtype)
    exact = {
        "Add": lambda x, y: x + y,
        "Subtract": lambda x, y: x - y,
        "Multiply": lambda x, y: x * y,
    }
    expected = [
        (exact[kind](int(x), int(y)) - int(info.min)) % 2**info.bits + int(info.min)
        for x, y in zip(a, b, strict=True)
    ]
    assert run(kind, a, b).tolist() == expected


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("kind", ["Exp", "Tanh", "Sigmoid", "Mish-4", "HSwish-4", "Gelu-2"])
def test_half_precision_is_rounded_once(run, kind: str, dtype) -> None:
    """Semantics, 'Numbers': computed in f32, rounded once."""
    data = np.linspace(-4, 4, 101).astype(dtype)
    wide = run(kind, data.astype(np.float32))
    np.testing.assert_array_equal(run(kind, data), wide.astype(dtype))
    assert run(kind, data).dtype == dtype


def test_double_precision_is_kept(run) -> None:
    data = np.array([1 / 3])
    np.testing.assert_allclose(run("Exp", data), math.exp(1 / 3), rtol=1e-15)
    np.testing.assert_allclose(run("Erf", data), math.erf(1 / 3), rtol=1e-15)


@pytest.mark.parametrize("kind", ["Exp", "Sqrt", "Tanh"])
def test_integers_are_rounded_to_the_nearest(run, kind: str) -> None:
    data = np.array([0, 1, 2, 3], np.int32)
    exact = {"Exp": math.exp, "Sqrt": math.sqrt, "Tanh": math.tanh}[kind]
    assert run(kind, data).tolist() == [math.floor(exact(v) + 0.5) for v in data.tolist()]


# The rules none and pdpd: shapes of a and b, axis, shape of the result or None.
BROADCASTS = [
    ("none", None, (2, 3), (2, 3), (2, 3)),
    ("none", None, (2, 3), (3,), None),
    ("numpy", None, (2, 1, 4), (3, 1), (2, 3, 4)),
    ("numpy", None, (2, 3), (2,), None),
    ("pdpd", 0, (2, 3, 4), (2, 3), (2, 3, 4)),
    ("pdpd", 1, (2, 3, 4), (3,), (2, 3, 4)),
    ("pdpd", 1, (2, 3, 4), (3, 1), (2, 3, 4)),
    ("pdpd", -1, (2, 3, 4), (3, 4), (2, 3, 4)),
    ("pdpd", 1, (2, 3, 4), (4,), None),
    ("pdpd", 0, (3,), (2, 3), None),
]


@pytest.mark.parametrize(("rule", "axis", "a", "b", "expected"), BROADCASTS)
def test_broadcasting(infer, run, rule: str, axis: int | None, a, b, expected) -> None:
    attributes = {"auto_broadcast": rule}
    if axis is not None:
        attributes["auto_broadcast.auto_broadcast_axis"] = str(axis)
    texts = [f"f32[{','.join(map(str, shape))}]" for shape in (a, b)]
    if expected is None:
        with pytest.raises(ShapeError, match="do not fit"):
            infer("Add", *texts, **attributes)
        return
    assert infer("Add", *texts, **attributes) == f"[{','.join(map(str, expected))}]"
    x, y = np.arange(np.prod(a)).reshape(a) * 1.0, np.arange(np.prod(b)).reshape(b) * 10.0
    start = len(a) - len(b) if axis in (None, -1) else axis
    spread = y.reshape((1,) * start + b + (1,) * (len(a) - start - len(b))) if rule == "pdpd" else y
    np.testing.assert_array_equal(run("Add", x, y, **attributes), x + spread)


REJECTED = [
    ("Add", ("f32[2]", "i32[2]"), "element types differ: a is f32, b is i32"),
    ("Add", ("boolean[2]", "boolean[2]"), "a must be of a numeric type, found boolean"),
    ("LogicalAnd", ("f32[2]", "f32[2]"), "a must be boolean, found f32"),
    ("BitwiseAnd-13", ("f32[2]", "f32[2]"), "a must be of an integer type or boolean, found f32"),
    ("HSwish-4", ("i32[2]",), "data must be of a floating-point type, found i32"),
    ("ReLU", ("boolean[2]",), "data must be of a numeric type, found boolean"),
    ("Select", ("f32[2]", "f32[2]", "f32[2]"), "cond must be boolean, found f32"),
    ("PReLU", ("f32[2,3]", "f32[4]"), r"slope \[4\] cannot be broadcast to data \[2,3\]"),
]


@pytest.mark.parametrize(("kind", "inputs", "message"), REJECTED)
def test_rejected(infer, kind: str, inputs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer(kind, *inputs)


def test_clamp_needs_a_range(infer) -> None:
    with pytest.raises(ShapeError, match=r"min 2.0 is greater than max 1.0"):
        infer("Clamp", "f32[2]", min="2", max="1")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_numbers_keep_their_precision(run, dtype) -> None:
    """Against Python's `math`: exp(x) - 1 and log(1 + exp(x)) stay precise for small numbers."""
    x = np.array([-1e-6, -1e-3, -0.1, -1, -5, -20, -80, -0.0, 3, 90], dtype)
    tolerance = 8 * np.finfo(dtype).eps
    elu = [v if v > 0 else 1.5 * math.expm1(v) for v in map(float, x)]
    np.testing.assert_allclose(run("Elu", x, alpha="1.5"), elu, rtol=tolerance)
    softplus = [max(v, 0) + math.log1p(math.exp(-abs(v))) for v in map(float, x)]
    np.testing.assert_allclose(run("SoftPlus-4", x), softplus, rtol=tolerance)


def test_the_error_function_is_exact_to_a_few_units(run) -> None:
    """Relative errors against Python's `math`: small numbers, the middle, and values close to 1."""
    x = np.concatenate([np.logspace(-30, 0, 500), np.linspace(-5, 5, 2001)]).astype(np.float32)
    expected = [math.erf(v) for v in map(float, x)]
    np.testing.assert_allclose(run("Erf", x), expected, rtol=5e-7, atol=0)
    np.testing.assert_array_equal(run("Erf", [INF, -INF, NAN]), [1, -1, NAN])
