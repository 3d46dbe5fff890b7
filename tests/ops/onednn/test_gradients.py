"""Gradients of oneDNN Graph against differences of the forward formulas in f64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onednn_forms import as_bytes, op, tensor
from onednn_oracle import close, floats, last, run
from support import traced_peak

import deconv_ir
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ops.base import parse_attributes
from deconv_ir.ops.onednn.pool_gradients import AvgPoolBackward, MaxPoolBackward

SHAPE = (2, 3, 4)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gelu(x: Any) -> Any:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ELEMENTWISE: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("Abs", {}, np.abs),
    ("Clamp", {"min": -0.5, "max": 0.75}, lambda x: np.clip(x, -0.5, 0.75)),
    ("Elu", {"alpha": 0.7}, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    ("GELU", {}, gelu),
    ("GELU", {"mode": "gelu_tanh"}, gelu_tanh),
    ("HardSigmoid", {"alpha": 0.6, "beta": 0.4}, lambda x: np.clip(0.6 * x + 0.4, 0, 1)),
    ("HardSwish", {}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("Mish", {}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    ("ReLU", {}, lambda x: np.maximum(x, 0)),
    ("Sigmoid", {}, sigmoid),
    ("SoftPlus", {"beta": 2.0}, lambda x: np.log1p(np.exp(2 * x)) / 2),
    ("Sqrt", {}, np.sqrt),
    ("Tanh", {}, np.tanh),
]
FROM_OUTPUT = ("Clamp", "Elu", "ReLU", "Sigmoid", "Sqrt", "Tanh")
CASES = [
    (kind, attributes, function, use_dst)
    for kind, attributes, function in ELEMENTWISE
    for use_dst in ([False, True] if kind in FROM_OUTPUT else [None])
]


def slope(function: Callable[[Any], Any], x: Any, step: float = 1e-6) -> Any:
    return (function(x + step) - function(x - step)) / (2 * step)


@pytest.mark.parametrize(("kind", "attributes", "function", "use_dst"), CASES)
def test_elementwise(kind: str, attributes: Any, function: Any, use_dst: bool | None) -> None:
    """Gradients are computed from src, or from dst where the document has use_dst."""
    x, grad = floats(*SHAPE) * 2, floats(*SHAPE)
    if kind == "Sqrt":
        x = np.abs(x) + 0.5
    wanted = slope(function, x.astype(float)) * grad
    given = x
    extra = {}
    if use_dst is not None:
        extra = {"use_dst": use_dst}
        given = function(x.astype(float)).astype(np.float32) if use_dst else x
    graph = op(
        0,
        f"{kind}Backward",
        [tensor(0, SHAPE), tensor(1, SHAPE)],
        [tensor(2, SHAPE)],
        **attributes,
        **extra,
    )
    (found,) = run(graph, arrays=[given, grad])
    close(found, wanted, 2e-5)


def test_a_gradient_in_bf16_is_rounded_once() -> None:
    graph = op(
        0,
        "TanhBackward",
        [tensor(0, SHAPE, "bf16"), tensor(1, SHAPE, "bf16")],
        [tensor(2, SHAPE, "bf16")],
    )
    model = deconv_ir.load(as_bytes(graph))
    element = model.inputs["0"].element_type
    assert element is not None
    y, grad = (floats(*SHAPE).astype(element.numpy()) for _ in range(2))
    (found,) = model.run([y, grad]).values()
    wanted = (grad.astype(np.float32) * (1 - y.astype(np.float32) ** 2)).astype(element.numpy())
    np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))


def jacobian(function: Callable[[Any], Any], x: Any, grad: Any, step: float = 1e-6) -> Any:
    """Return the gradient of the sum of grad * function(x)."""
    result = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        shift = np.zeros(x.shape)
        shift[at] = step
        result[at] = ((function(x + shift) - function(x - shift)) * grad).sum() / (2 * step)
    return result


@pytest.mark.parametrize("kind", ["SoftMax", "LogSoftmax"])
def test_softmax(kind: str) -> None:
    """Along axis 1, and -1 by default."""
    axis = 1 if kind == "SoftMax" else -1
    x, grad = floats(*SHAPE), floats(*SHAPE)

    def forward(x: Any) -> Any:
        e = np.exp(x)
        y = e / e.sum(axis, keepdims=True)
        return y if kind == "SoftMax" else np.log(y)

    graph = op(0, f"{kind}Backward", [tensor(0, SHAPE), tensor(1, SHAPE)], [tensor(2, SHAPE)])
    (found,) = run(graph, arrays=[grad, forward(x.astype(float)).astype(np.float32)])
    close(found, jacobian(forward, x.astype(float), grad), 2e-5)


@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_bias(layout: str) -> None:
    grad = floats(2, 3, 4, 5)
    given = last(grad) if layout == "NXC" else grad
    graph = op(0, "BiasAddBackward", [tensor(0, given.shape)], [tensor(1, [3])], data_format=layout)
    (found,) = run(graph, arrays=[given])
    close(found, grad.astype(float).sum((0, 2, 3)))


@pytest.mark.parametrize("shape", [(3,), (1,), (3, 4), (1, 3, 1), (2, 1, 4), (2, 3, 4)])
def test_prelu(shape: tuple[int, ...]) -> None:
    """Slopes for each channel, one for all, and those that broadcast as NumPy does."""
    x, grad, weights = floats(*SHAPE), floats(*SHAPE), floats(*shape)

    def forward(x: Any, w: Any) -> Any:
        wide = w.reshape(-1, 1) if w.shape == (3,) else w
        return np.where(x > 0, x, x * wide)

    graph = op(
        0,
        "PReLUBackward",
        [tensor(0, SHAPE), tensor(1, shape), tensor(2, SHAPE)],
        [tensor(3, SHAPE), tensor(4, shape)],
        data_format="NCX",
    )
    found = run(graph, arrays=[x, weights, grad])
    wide, w = x.astype(float), weights.astype(float)
    close(found[0], jacobian(lambda x: forward(x, w), wide, grad), 2e-5)
    close(found[1], jacobian(lambda w: forward(wide, w), w, grad), 2e-5)


def normal(x: Any, axes: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("kind", ["LayerNorm", "BatchNorm NCX", "BatchNorm NXC"])
def test_normalisation(kind: str, affine: bool) -> None:
    """Gradients of src, gamma and beta, through mean and variance."""
    x, grad = floats(2, 3, 4, 5), floats(2, 3, 4, 5)
    layer = kind == "LayerNorm"
    axes, count = ((3,), 5) if layer else ((0, 2, 3), 3)
    gamma, epsilon = floats(count), 1e-2
    wide = x.astype(float)

    def forward(x: Any, gamma: Any, beta: Any) -> Any:
        if not layer:
            gamma, beta = gamma.reshape(-1, 1, 1), beta.reshape(-1, 1, 1)
        return normal(x, axes, gamma, beta, epsilon)

    turn = last if kind.endswith("NXC") else np.asarray
    statistics = [wide.mean(axes).astype(np.float32), wide.var(axes).astype(np.float32)]
    small = statistics[0].shape
    data = turn(x)
    inputs = [tensor(0, data.shape), tensor(1, data.shape), tensor(2, small), tensor(3, small)]
    outputs = [tensor(10, data.shape)]
    arrays = [data, turn(grad), *statistics]
    factor = np.ones(count)
    if affine:
        factor = gamma.astype(float)
        inputs.append(tensor(4, [count]))
        outputs += [tensor(11, [count]), tensor(12, [count])]
        arrays.append(gamma)
    name, _, layout = kind.partition(" ")
    graph = op(
        0,
        f"{name}{'' if layer else 'Training'}Backward",
        inputs,
        outputs,
        epsilon=epsilon,
        **({"use_affine": affine} if layer else {"data_format": layout}),
    )
    found = run(graph, arrays=arrays)
    zero = np.zeros(count)
    wanted = jacobian(lambda x: forward(x, factor, zero), wide, grad)
    close(found[0], turn(wanted), 1e-4)
    if affine:
        close(found[1], jacobian(lambda g: forward(wide, g, zero), factor, grad), 1e-4)
        close(found[2], jacobian(lambda b: forward(wide, factor, b), zero, grad), 1e-4)


POOLS: list[tuple[str, dict[str, Any]]] = [
    ("MaxPool", {"dilations": [1] * 12}),
    ("MaxPool", {"dilations": [2, 1], "pads_begin": [2, 1]}),
    ("MaxPool", {"auto_pad": "SAME_LOWER"}),
    ("AvgPool", {"exclude_pad": True}),
    ("AvgPool", {"exclude_pad": False}),
    ("AvgPool", {"exclude_pad": True, "auto_pad": "SAME_UPPER"}),
    ("AvgPool", {"exclude_pad": False, "auto_pad": "VALID"}),
]


@pytest.mark.parametrize("layout", ["NCX", "NXC"])
@pytest.mark.parametrize(("kind", "attributes"), POOLS)
def test_pooling(kind: str, attributes: Any, layout: str) -> None:
    """Against differences of the forward operation, which has loops of its own as oracle."""
    window = {
        "strides": [2, 1],
        "kernel": [3, 2],
        "pads_begin": [1, 1],
        "pads_end": [1, 0],
        "data_format": layout,
    } | attributes
    x = np.random.default_rng(5).permutation(2 * 2 * 7 * 6).reshape(2, 2, 7, 6) / 8
    turn = last if layout == "NXC" else np.asarray
    data = turn(x).astype(np.float32)
    pool = op(0, kind, [tensor(0, data.shape)], [tensor(1, [])], **window)
    model = deconv_ir.load(as_bytes(pool))
    (y,) = model.run(data).values()
    grad = floats(*y.shape)
    wanted = np.zeros(data.shape)
    for at in np.ndindex(*data.shape):
        parts = []
        for step in (0.03125, -0.03125):  # smaller than the differences between elements, and exact
            moved = data.copy()
            moved[at] += step
            (found,) = model.run(moved).values()
            parts.append(found.astype(float))
        wanted[at] = ((parts[0] - parts[1]) * grad).sum() / 0.0625
    inputs = [tensor(0, data.shape), tensor(1, y.shape)]
    arrays = [data, grad]
    if kind == "AvgPool":
        inputs, arrays = inputs[1:], arrays[1:]
        window["src_shape"] = list(data.shape) if layout == "NCX" else [0] * 12
    graph = op(0, f"{kind}Backward", inputs, [tensor(2, data.shape)], **window)
    (found,) = run(graph, arrays=arrays)
    close(found, wanted, 1e-4)


def parts(data: int, output: int, mode: str, coordinates: str) -> Any:
    """Return the weight of each element of src in each element of dst, along one axis."""
    found = np.zeros((output, data))
    for y in range(output):
        x = (y + 0.5) * data / output - 0.5
        if coordinates == "align_corners":
            x = 0.0 if output == 1 else y * (data - 1) / (output - 1)
        x = min(max(x, 0.0), data - 1.0)
        low = math.floor(x + 0.5) if mode == "nearest" else math.floor(x)
        far = 0.0 if mode == "nearest" else x - low
        found[y, low] += 1 - far
        if far:
            found[y, low + 1] += far
    return found


RESIZED: list[tuple[Any, Any, dict[str, Any]]] = [
    ((7, 14), (6, 12), {"mode": "nearest", "sizes": [6, 12]}),
    ((7, 14), (6, 12), {"mode": "bilinear", "sizes": [6, 12]}),
    ((5, 3), (5, 8), {"mode": "linear", "scales": [1.0, 2.9]}),
    ((3, 4), (7, 1), {"mode": "linear", "sizes": [7, 1]}),
    ((3, 1, 2), (2, 3, 5), {"mode": "trilinear", "sizes": [2, 3, 5]}),
    ((17,), (21,), {"mode": "linear", "sizes": [21]}),
    ((17,), (21,), {"mode": "linear", "scales": [1.23529]}),  # 20.99993, as in a public file
    ((4,), (8,), {"mode": "nearest", "scales": [2.0]}),
]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("layout", ["NCX", "NXC"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners"])
@pytest.mark.parametrize(("data", "output", "attributes"), RESIZED)
def test_interpolation(
    data: Any, output: Any, attributes: Any, coordinates: str, layout: str, dtype: str
) -> None:
    turn = last if layout == "NXC" else np.asarray
    grad = floats(2, 3, *output).astype(parse_element_type(dtype).numpy())
    wanted = grad.astype(float)
    for axis, (x, y) in enumerate(zip(data, output, strict=True), 2):
        matrix = parts(x, y, attributes["mode"], coordinates)
        wanted = np.moveaxis(np.tensordot(wanted, matrix, (axis, 0)), -1, axis)
    shape = turn(np.empty((2, 3, *data))).shape
    graph = op(
        0,
        "InterpolateBackward",
        [tensor(0, shape, dtype), tensor(1, turn(grad).shape, dtype)],
        [tensor(2, shape, dtype)],
        coordinate_transformation_mode=coordinates,
        data_format=layout,
        **attributes,
    )
    (found,) = run(graph, arrays=[np.zeros(shape, grad.dtype), turn(grad)])
    close(found, turn(wanted), 1e-5 if dtype == "f32" else 2**-8)


def test_an_interpolation_to_another_shape_is_refused() -> None:
    inputs = [tensor(0, [1, 2, 5]), tensor(1, [1, 2, 8])]
    for attributes in ({"sizes": [9]}, {"scales": [1.9]}, {"sizes": [8, 8]}, {}):
        graph = op(0, "InterpolateBackward", inputs, [tensor(2, [1, 2, 5])], mode="linear",
                   data_format="NCX", **attributes)  # fmt: skip
        with pytest.raises(deconv_ir.ShapeError, match=r"diff_dst must have shape|sizes"):
            deconv_ir.load(as_bytes(graph))


def test_the_first_of_equal_elements_has_the_gradient_of_a_maximum() -> None:
    window = {"strides": [1], "kernel": [3], "pads_begin": [0], "pads_end": [0]}
    graph = op(
        0,
        "MaxPoolBackward",
        [tensor(0, [1, 1, 4]), tensor(1, [1, 1, 2])],
        [tensor(2, [1, 1, 4])],
        data_format="NCX",
        **window,
    )
    (found,) = run(graph, arrays=[np.ones((1, 1, 4), np.float32), np.float32([[[2, 5]]])])
    assert found.tolist() == [[[2, 5, 0, 0]]]


def test_a_gradient_of_another_shape_is_refused() -> None:
    window = {"strides": [1], "kernel": [3], "pads_begin": [0], "pads_end": [0]}
    graph = op(
        0,
        "MaxPoolBackward",
        [tensor(0, [1, 1, 4]), tensor(1, [1, 1, 3])],
        [tensor(2, [1, 1, 4])],
        data_format="NCX",
        **window,
    )
    with pytest.raises(deconv_ir.ShapeError, match=r"diff_dst must have shape \[1,1,2\]"):
        deconv_ir.load(as_bytes(graph))


@pytest.mark.parametrize("name", ["f32", "f16"])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1)])
@pytest.mark.parametrize("kind", [AvgPoolBackward, MaxPoolBackward])
def test_the_plan_of_a_pool_gradient_is_about_what_it_takes(
    kind: type[AvgPoolBackward | MaxPoolBackward], window: int, stride: int, name: str
) -> None:
    extent = (64 - window) // stride + 1
    element_type = parse_element_type(name)
    shape, dtype = (1, 8, 64, 64), element_type.numpy()
    attributes = {"strides": f"{stride},{stride}", "kernel": f"{window},{window}",
                  "pads_begin": "0,0", "pads_end": "0,0", "data_format": "NCX"}  # fmt: skip
    arrays = [np.ones((1, 8, extent, extent), dtype)]
    if kind is AvgPoolBackward:
        attributes |= {"exclude_pad": "false", "src_shape": "1,8,64,64"}
    else:
        arrays.insert(0, np.ones(shape, dtype))
    operation, _ = parse_attributes(kind, attributes)
    assert operation is not None
    infos = [TensorInfo(array.shape, element_type) for array in arrays]
    outputs = operation.infer(infos, Context())
    planned = operation.scratch(infos, outputs, Context()) + math.prod(shape) * dtype.itemsize
    taken = traced_peak(lambda: operation.execute(arrays, Context()))
    assert 0.65 * planned < taken < planned
