"""Elementwise operations, products and reductions of oneDNN Graph."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onednn_forms import as_bytes, op, tensor
from onednn_oracle import close, floats, last, run

import deconv_ir


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


UNARY: list[tuple[str, dict[str, Any], Any]] = [
    ("Abs", {}, abs),
    ("Clamp", {"min": -0.5, "max": 0.75}, lambda x: min(0.75, max(-0.5, x))),
    ("Elu", {"alpha": 0.7}, lambda x: x if x > 0 else 0.7 * math.expm1(x)),
    ("Exp", {}, math.exp),
    ("GELU", {}, _gelu),
    (
        "GELU",
        {"mode": "gelu_tanh"},
        lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    ("HardSigmoid", {"alpha": 0.2, "beta": 0.4}, lambda x: max(0, min(1, 0.2 * x + 0.4))),
    ("HardSwish", {}, lambda x: x * max(0, min(6, x + 3)) / 6),
    ("LeakyReLU", {"alpha": 0.1}, lambda x: x if x > 0 else 0.1 * x),
    ("Mish", {}, lambda x: x * math.tanh(math.log1p(math.exp(x)))),
    ("ReLU", {}, lambda x: max(0, x)),
    ("Pow", {"beta": 3.0}, lambda x: x**3),
    ("Reciprocal", {}, lambda x: 1 / x),
    ("Round", {}, round),
    ("Sigmoid", {}, lambda x: 1 / (1 + math.exp(-x))),
    ("SoftPlus", {"beta": 2.0}, lambda x: math.log1p(math.exp(2 * x)) / 2),
    ("Square", {}, lambda x: x * x),
    ("Tanh", {}, math.tanh),
    ("Reorder", {}, float),
    ("TypeCast", {}, float),
]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(("kind", "attributes", "function"), UNARY)
def test_operations_on_one_array(kind: str, attributes: Any, function: Any, dtype: str) -> None:
    """Each element follows the formula of the document; bf16 is rounded once."""
    graph = op(0, kind, [tensor(0, [2, 3, 4], dtype)], [tensor(1, [2, 3, 4], dtype)], **attributes)
    model = deconv_ir.load(as_bytes(graph))
    element = model.inputs["0"].element_type
    assert element is not None
    x = floats(2, 3, 4).astype(element.numpy())
    (found,) = model.run(x).values()
    wanted = np.vectorize(lambda v: float(function(v)))(x.astype(float))
    assert found.dtype == element.numpy()
    close(found, wanted, 2e-6 if dtype == "f32" else 5e-3)


BINARY: list[tuple[str, Any]] = [
    ("Add", np.add),
    ("Subtract", np.subtract),
    ("Multiply", np.multiply),
    ("Divide", np.divide),
    ("Maximum", np.maximum),
    ("Minimum", np.minimum),
    ("SquaredDifference", lambda a, b: (a - b) ** 2),
]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("kind", "function"), BINARY)
def test_operations_on_two_arrays(kind: str, function: Any, mixed: bool) -> None:
    """Broadcast as NumPy does; different float types are computed in f32."""
    second = "bf16" if mixed else "f32"
    graph = op(
        0,
        kind,
        [tensor(0, [2, 3, 4]), tensor(1, [3, 1], second)],
        [tensor(2, [2, 3, 4])],
        auto_broadcast="numpy",
    )
    model = deconv_ir.load(as_bytes(graph))
    element = model.inputs["1"].element_type
    assert element is not None
    a, b = floats(2, 3, 4), floats(3, 1).astype(element.numpy())
    (found,) = model.run([a, b]).values()
    assert found.dtype == np.float32
    close(found, function(a.astype(float), b.astype(float)), 1e-6)


def test_a_bias_of_another_type_leaves_the_type_of_the_data() -> None:
    """BiasAdd gives dst the type of src; sums are in f32."""
    shape = (1, 2, 3)
    graph = op(
        0,
        "BiasAdd",
        [tensor(0, shape, "bf16"), tensor(1, [2])],
        [tensor(2, shape, "bf16")],
        data_format="NCX",
    )
    data = np.ones(shape, ml_dtypes.bfloat16)
    (found,) = run(graph, arrays=[data, np.array([2, 0.5], np.float32)])
    assert found.dtype == data.dtype
    assert found.tolist() == [[[3, 3, 3], [1.5, 1.5, 1.5]]]


@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_operations_by_channel(layout: str) -> None:
    """BiasAdd, PReLU, BatchNormInference and GroupNorm, channels first and last."""
    x = floats(2, 4, 3, 5)
    turn = last if layout == "NXC" else np.asarray
    data = turn(x)
    lists = [tensor(i, [4]) for i in range(1, 5)]
    a, b, m, v = floats(4), floats(4), floats(4), np.abs(floats(4)) + 0.1
    wide = [p.reshape(-1, 1, 1).astype(float) for p in (a, b, m, v)]

    def one(kind: str, count: int, arrays: Any, **attributes: Any) -> Any:
        graph = op(
            0,
            kind,
            [tensor(0, data.shape), *lists[:count]],
            [tensor(9, data.shape)],
            data_format=layout,
            **attributes,
        )
        return run(graph, arrays=[data, *arrays])[0]

    close(one("BiasAdd", 1, [a]), turn(x + wide[0]))
    close(one("PReLU", 1, [a], per_channel_broadcast=True), turn(np.where(x > 0, x, x * wide[0])))
    normal = (x - wide[2]) / np.sqrt(wide[3] + 1e-3) * wide[0] + wide[1]
    close(one("BatchNormInference", 4, [a, b, m, v], epsilon=1e-3), turn(normal))
    grouped = x.astype(float).reshape(2, 2, -1)
    mean, variance = grouped.mean(-1, keepdims=True), grouped.var(-1, keepdims=True)
    normal = ((grouped - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * wide[0] + wide[1]
    close(one("GroupNorm", 2, [a, b], groups=2, keep_stats=False, epsilon=1e-5), turn(normal))


@pytest.mark.parametrize("keep", [False, True])
def test_reductions(keep: bool) -> None:
    """Along axes that an attribute or an input gives; negative ones count from the end."""
    x = floats(2, 3, 4)
    shape = [2, 1, 1] if keep else [2]
    for kind, function in (
        ("ReduceSum", np.sum),
        ("ReduceMean", np.mean),
        ("ReduceMax", np.max),
        ("ReduceMin", np.min),
        ("ReduceProd", np.prod),
        ("ReduceL1", lambda a, axis, keepdims: np.abs(a).sum(axis, keepdims=keepdims)),
        ("ReduceL2", lambda a, axis, keepdims: np.sqrt((a * a).sum(axis, keepdims=keepdims))),
    ):
        graph = op(
            0, kind, [tensor(0, [2, 3, 4])], [tensor(1, shape)], axes=[-1, 1], keep_dims=keep
        )
        (found,) = run(graph, arrays=[x])
        wanted = function(x.astype(float), axis=(1, 2), keepdims=keep)
        close(found, wanted)
        given = op(
            0,
            kind,
            [tensor(0, [2, 3, 4]), tensor(2, [2], "s32")],
            [tensor(1, shape)],
            keep_dims=keep,
        )
        (found,) = run(given, arrays=[x, np.array([1, 2], np.int32)])
        close(found, wanted)


def test_movement_and_products() -> None:
    """StaticReshape, StaticTranspose, Concat, Select, GreaterEqual and MatMul with a bias."""
    x = floats(2, 3, 4)
    graph = op(
        0,
        "StaticReshape",
        [tensor(0, [2, 3, 4])],
        [tensor(1, [2, 12])],
        shape=[0, -1],
        special_zero=True,
    )
    assert np.array_equal(run(graph, arrays=[x])[0], x.reshape(2, 12))
    graph = op(
        0, "StaticTranspose", [tensor(0, [2, 3, 4])], [tensor(1, [4, 2, 3])], order=[-1, 0, 1]
    )
    assert np.array_equal(run(graph, arrays=[x])[0], x.transpose(2, 0, 1))
    graph = op(
        0, "Concat", [tensor(0, [2, 3, 4]), tensor(1, [2, 3, 4])], [tensor(2, [2, 6, 4])], axis=1
    )
    assert np.array_equal(run(graph, arrays=[x, -x])[0], np.concatenate([x, -x], 1))
    chosen = [
        op(
            0,
            "GreaterEqual",
            [tensor(0, [2, 3, 4]), tensor(1, [1])],
            [tensor(2, [2, 3, 4], "boolean")],
        ),
        op(
            1,
            "Select",
            [tensor(2, [2, 3, 4], "boolean"), tensor(0, [2, 3, 4]), tensor(1, [1])],
            [tensor(3, [2, 3, 4])],
        ),
    ]
    zero = np.zeros(1, np.float32)
    assert np.array_equal(run(*chosen, arrays=[x, zero])[0], np.maximum(x, 0))
    a, b, c = floats(3, 2), floats(4, 3), floats(4)
    graph = op(
        0,
        "MatMul",
        [tensor(0, [3, 2]), tensor(1, [4, 3]), tensor(2, [4])],
        [tensor(3, [2, 4])],
        transpose_a=True,
        transpose_b=True,
    )
    wanted = a.T.astype(float) @ b.T.astype(float) + c
    close(run(graph, arrays=[a, b, c])[0], wanted)


def test_integers_are_added_as_integers() -> None:
    """Add and Subtract take s32."""
    graph = op(
        0,
        "Add",
        [tensor(0, [3], "s32"), tensor(1, [1], "s32")],
        [tensor(2, [3], "s32")],
    )
    x = np.array([2**24 + 1, -5, 7], np.int32)
    (found,) = run(graph, arrays=[x, np.array([1], np.int32)])
    assert found.tolist() == [2**24 + 2, -4, 8]


def test_dropout_runs_where_nothing_is_random() -> None:
    """Probability 0 passes the input on, with a mask of ones; others are refused by name."""
    scalars = [tensor(1, [], "s64"), tensor(2, [], "s64"), tensor(3, [])]
    outputs = [tensor(4, [2, 3]), tensor(5, [2, 3], "u8")]
    model = deconv_ir.load(as_bytes(op(0, "Dropout", [tensor(0, [2, 3]), *scalars], outputs)))
    x, seed = floats(2, 3), np.int64(7)
    found = model.run([x, seed, seed, np.float32(0)])
    assert np.array_equal(found["4"], x)
    assert np.array_equal(found["5"], np.ones((2, 3), np.uint8))
    with pytest.raises(deconv_ir.UnsupportedError, match=r"Dropout.*probability 0\.25 is random"):
        model.run([x, seed, seed, np.float32(0.25)])
    for wrong in (-0.5, 1.5, np.nan):
        with pytest.raises(deconv_ir.InputError, match="probability must be from 0 to 1, found"):
            model.run([x, seed, seed, np.float32(wrong)])
    scalars[2] = tensor(3, [2])
    with pytest.raises(deconv_ir.ShapeError, match="probability must have one element"):
        deconv_ir.load(as_bytes(op(0, "Dropout", [tensor(0, [2, 3]), *scalars], outputs)))
