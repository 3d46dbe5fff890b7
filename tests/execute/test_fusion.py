"""A kernel also computes the bias and activation behind it, where the results agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from plan_rows import normal, rows_of
from support import IR

import deconv_ir
from deconv_ir.execute.fusion import Followers
from deconv_ir.execute.listing import as_rows
from deconv_ir.kernels.algorithm import Algorithm, preferred_algorithm
from deconv_ir.kernels.runtime.extension import compiled_module

# NumPy kernels do not add tensors.
ADDS = preferred_algorithm() is Algorithm.COMPILED


def upsampling(
    dtype: str = "f32",
    addend: Sequence[int] = (1, 3, 1, 1),
    *,
    kind: str = "ConvolutionBackpropData",
    addend_first: bool = False,
    tap: bool = False,
) -> IR:
    """x -> kind -> Add of a constant -> ReLU."""
    ir = IR()
    numbers = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
    element = numbers[dtype]
    x = ir.parameter("x", "1,2,5,6", dtype)
    shape = (2, 3, 3, 3) if kind == "ConvolutionBackpropData" else (3, 2, 3, 3)
    w = ir.const((normal(*shape) * 4).astype(element), "w")
    bias = ir.const((normal(*addend) * 4).astype(element), "b")
    strides = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    up = ir.layer(kind, [x, w], strides, name="up")
    add = ir.layer("Add", [bias, up] if addend_first else [up, bias], name="add")
    ir.result(ir.layer("ReLU", [add], name="relu", names="y"))
    if tap:
        ir.result(ir.layer("Tanh", [up], name="tap"))
    return ir


FUNCTIONS: dict[str, tuple[dict[str, str], str]] = {
    "HSwish": ({}, "opset4"),
    "HSigmoid": ({}, "opset5"),
    "Swish": ({}, "opset4"),
    "Sigmoid": ({}, "opset1"),
    "Tanh": ({}, "opset1"),
    "Gelu": ({"approximation_mode": "tanh"}, "opset7"),
    "Mish": ({}, "opset4"),
    "Elu": ({"alpha": "0.75"}, "opset1"),
    "SoftPlus": ({}, "opset4"),
}
# Kernel type, data, filter, strides, pads: rows that are whole vectors, ragged, short, or one
# position; direct sums into the output, through tiles or by channels, and Winograd.
GEOMETRIES = {
    "points": ("Convolution", "1,5,16,16", (19, 5, 1, 1), 1, 0),
    "ragged points": ("Convolution", "2,40,7,7", (37, 40, 1, 1), 1, 0),
    "one position": ("Convolution", "1,33,1,1", (21, 33, 1, 1), 1, 0),
    "every other": ("Convolution", "2,3,19,23", (9, 3, 3, 3), 2, 1),
    "windows": ("Convolution", "1,24,40,44", (24, 24, 3, 3), 1, 1),
    "upsampling": ("ConvolutionBackpropData", "2,12,9,11", (12, 10, 4, 4), 2, 1),
    "beyond the data": ("ConvolutionBackpropData", "1,3,5,6", (3, 2, 2, 2), 3, 0),
    "depthwise": ("GroupConvolution", "2,21,20,36", (21, 1, 1, 3, 3), 1, 1),
    "depthwise, every other": ("GroupConvolution", "1,5,33,49", (5, 1, 1, 5, 5), 2, 2),
    "depthwise, short rows": ("GroupConvolution", "1,40,7,7", (40, 1, 1, 5, 5), 1, 2),
}


def convolution(ir: IR, geometry: str, *, tensor: bool = False) -> tuple[Any, tuple[int, ...]]:
    """x -> convolution -> Add of a constant [-> Add of r]; also return the shape of the result."""
    kind, shape, filter_, stride, pad = GEOMETRIES[geometry]
    transposed = kind == "ConvolutionBackpropData"
    channels = filter_[1] if transposed else filter_[0]
    batch, _, *extents = map(int, shape.split(","))
    kernel = filter_[-1]
    extents = [
        stride * (n - 1) + kernel - 2 * pad if transposed else (n + 2 * pad - kernel) // stride + 1
        for n in extents
    ]
    output = (batch, channels, *extents)
    how = {"strides": stride, "pads_begin": pad, "pads_end": pad, "dilations": 1}
    inputs = [ir.parameter("x", shape), ir.const(normal(*filter_) / 2)]
    other = ir.parameter("r", ",".join(map(str, output))) if tensor else None
    y = ir.layer(kind, inputs, {name: f"{n},{n}" for name, n in how.items()}, name="conv")
    y = ir.layer("Add", [y, ir.const(normal(1, channels, 1, 1))], name="add")
    return ir.layer("Add", [y, other], name="sum") if tensor else y, output


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_the_same_bits_in_a_kernel(
    function: str, geometry: str, tensor: bool, tmp_path: Path
) -> None:
    kind, shape, *_ = GEOMETRIES[geometry]
    transposed = kind == "ConvolutionBackpropData"
    attributes, version = FUNCTIONS[function]
    ir = IR()
    y, output = convolution(ir, geometry, tensor=tensor)
    ir.result(ir.layer(function, [y], attributes, name="act", version=version))
    model = deconv_ir.load(ir.save(tmp_path))
    x = 3 * normal(*map(int, shape.split(",")))
    x[0, 0, 0, 0] = np.nan
    given = [x, normal(*output)] if tensor else [x]
    names = ["add", "sum", "act"] if tensor else ["add", "act"]
    taken = len(names)
    if compiled_module() is None or (tensor and (transposed or not ADDS)):
        taken = 1
    assert rows_of(model, given, outputs=["act"])["conv"].fused == tuple(names[:taken])
    apart = [names[-2], "act"]
    assert rows_of(model, given, outputs=apart)["conv"].fused == tuple(names[:-1][:taken])
    found = model.run(given, outputs=["act"])["act"]
    expected = model.run(given, outputs=apart)["act"]
    np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.skipif(compiled_module() is None, reason="NumPy's kernels have no functions")
@pytest.mark.parametrize("numbers", [("Multiply", "Add"), ("Multiply",), ("Add",)], ids="+".join)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_a_function_is_scaled_in_a_kernel(
    geometry: str, numbers: tuple[str, ...], tmp_path: Path
) -> None:
    ir = IR()
    y, _ = convolution(ir, geometry)
    y = ir.layer("HSwish", [y], name="act", version="opset4")
    scale, offset = np.float32(-0.375), np.float32(1.7)
    for kind in numbers:
        number = ir.const(np.full((1, 1), offset if kind == "Add" else scale))
        y = ir.layer(kind, [number, y], name=kind)
    ir.result(y)
    model = deconv_ir.load(ir.save(tmp_path))
    x = 3 * normal(*map(int, GEOMETRIES[geometry][1].split(",")))
    x[0, 0, 0, 0] = np.nan
    last = numbers[-1]
    assert rows_of(model, [x], outputs=[last])["conv"].fused == ("add", "act", *numbers)
    found = model.run([x], outputs=[last])[last]
    expected = model.run([x], outputs=["act"])["act"].astype(np.float64)
    if "Multiply" in numbers:
        expected = expected * np.float64(scale)
    if "Add" in numbers:
        expected = expected + np.float64(offset)
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=2e-7)


@pytest.mark.parametrize(
    ("shapes", "taken"), [([(1, 19, 1, 1), ()], 0), ([(), (1, 19, 1, 1)], 1), ([(1,) * 5, ()], 0)]
)
def test_what_is_not_one_number_stays_a_layer(
    shapes: list[tuple[int, ...]], taken: int, tmp_path: Path
) -> None:
    ir = IR()
    y, _ = convolution(ir, "points")
    y = ir.layer("Sigmoid", [y], name="act")
    for kind, shape in zip(("Multiply", "Add"), shapes, strict=True):
        y = ir.layer(kind, [y, ir.const(normal(*shape))], name=kind)
    ir.result(y)
    model = deconv_ir.load(ir.save(tmp_path))
    x = normal(1, 5, 16, 16)
    names = ("add", "act", "Multiply", "Add")[: 2 + taken]
    fused = rows_of(model, [x])["conv"].fused
    assert fused == (names if compiled_module() is not None else ("add",))


def layer_by_layer(model: deconv_ir.Model, path: Path, x: np.ndarray) -> np.ndarray:
    """Compute `upsampling` with the sum rounded before and after the addition."""
    up = model.run([x], outputs=["up"])["up"]
    declared = model.graph.find("b")
    assert declared is not None
    bias = np.frombuffer(path.with_suffix(".bin").read_bytes()[-declared.operation.size :], x.dtype)
    added = up + bias.reshape(declared.operation.shape)
    return np.maximum(added, x.dtype.type(0))


@pytest.mark.parametrize("kind", ["ConvolutionBackpropData", "Convolution"])
@pytest.mark.parametrize("addend_first", [False, True])
@pytest.mark.parametrize("addend", [(1, 3, 1, 1), (3, 1, 1), (1, 1, 1, 1), (1,), ()])
def test_bias_and_activation_are_computed_by_the_kernel(
    kind: str, addend: Sequence[int], addend_first: bool, tmp_path: Path
) -> None:
    path = upsampling(addend=addend, kind=kind, addend_first=addend_first).save(tmp_path)
    model = deconv_ir.load(path)
    x = normal(1, 2, 5, 6)
    (row,) = as_rows(model.bind([x]).plan)
    assert (row.layer, row.fused) == ("up", ("add", "relu"))
    np.testing.assert_allclose(
        model.run([x])["y"], layer_by_layer(model, path, x), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("dtype", "unit"), [("f16", 2.0**-10), ("bf16", 2.0**-7), ("i32", 0)], ids=str
)
def test_fused_results_are_those_of_the_layers_within_one_rounding(
    dtype: str, unit: float, tmp_path: Path
) -> None:
    path = upsampling(dtype).save(tmp_path)
    model = deconv_ir.load(path, warn=False)
    x = (normal(1, 2, 5, 6) * 4).astype(model.inputs["x"].element_type.numpy())
    assert rows_of(model, [x])["up"].fused == ("add", "relu")
    found = model.run([x])["y"].astype(np.float64)
    # Separate layers also round after the sum: the error is up to one unit of that sum.
    up = model.run([x], outputs=["up"])["up"].astype(np.float64)
    expected = layer_by_layer(model, path, x).astype(np.float64)
    assert (np.abs(found - expected) <= unit * (np.abs(up) + np.abs(expected))).all()


@pytest.mark.parametrize(
    ("addend", "why"),
    [
        ((1, 3, 11, 1), "it varies along an axis"),
        ((1, 1, 1, 13), "it varies along the last axis"),
        ((2, 3, 1, 1), "it adds batches"),
        ((1, 1, 3, 1, 1), "it adds an axis"),
    ],
)
def test_additions_that_are_no_bias_stay_layers(
    addend: Sequence[int], why: str, tmp_path: Path
) -> None:
    path = upsampling(addend=addend).save(tmp_path)
    model = deconv_ir.load(path)
    x = normal(1, 2, 5, 6)
    assert rows_of(model, [x])["up"].fused == (), why
    np.testing.assert_allclose(
        model.run([x])["y"], layer_by_layer(model, path, x), rtol=1e-5, atol=1e-5
    )


def test_a_tensor_that_something_else_needs_is_not_fused_away(tmp_path: Path) -> None:
    model = deconv_ir.load(upsampling(tap=True).save(tmp_path))
    x = normal(1, 2, 5, 6)
    rows = rows_of(model, [x])
    assert rows["up"].fused == ()
    alone = deconv_ir.load(upsampling().save(tmp_path))
    assert rows_of(alone, [x], outputs=["relu"])["up"].fused == ("add", "relu")
    assert rows_of(alone, [x], outputs=["relu", "add"])["up"].fused == ("add",)
    assert rows_of(alone, [x], outputs=["up", "add"])["up"].fused == ()


@pytest.mark.parametrize(
    ("slope", "fused"), [((1,), ("prelu",)), ((3,), ()), ((1, 1, 1, 1), ("prelu",))]
)
def test_one_slope_is_fused_and_one_a_channel_overwrites(
    slope: Sequence[int], fused: tuple[str, ...], tmp_path: Path
) -> None:
    ir = IR()
    x = ir.parameter("x", "1,2,5,6")
    up = ir.layer("ConvolutionBackpropData", [x, ir.const(normal(2, 3, 2, 2))], name="up")
    slopes = np.abs(normal(*slope))
    ir.result(ir.layer("PReLU", [up, ir.const(slopes)], name="prelu", names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    data = normal(1, 2, 5, 6)
    rows = rows_of(model, [data])
    assert rows["up"].fused == fused
    if not fused:
        assert rows["prelu"].overwrites == "up"
    plain = model.run([data], outputs=["up"])["up"]
    factor = slopes.reshape(1, -1, 1, 1)
    expected = np.where(plain < 0, plain * factor, plain)
    np.testing.assert_allclose(model.run([data])["y"], expected, rtol=1e-5, atol=1e-6)


def residual(
    dtype: str = "f32", shape: str = "2,3,8,9", *, late: bool = False, batch: str = "2"
) -> IR:
    """x -> conv -> Add of a bias -> Add of a tensor made before or after conv -> ReLU."""
    ir = IR()
    x = ir.parameter("x", f"{batch},3,8,9", dtype)
    other = ir.parameter("r", shape, dtype)
    element = {"f32": np.float32, "f16": np.float16}[dtype]
    if not late:
        other = ir.layer("Abs", [other], name="abs")
    weights = ir.const(normal(3, 3, 1, 1).astype(element))
    how = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    y = ir.layer("Convolution", [x, weights], how, name="conv")
    if late:
        other = ir.layer("Abs", [other], name="abs")
    y = ir.layer("Add", [y, ir.const(normal(1, 3, 1, 1).astype(element))], name="bias")
    y = ir.layer("Add", [other, y], name="add")
    ir.result(ir.layer("ReLU", [y], name="relu", names="y"))
    return ir


ALL = ("bias", "add", "relu") if ADDS else ("bias",)


@pytest.mark.parametrize(
    ("how", "fused"),
    [
        ({}, ALL),
        ({"shape": "1,3,8,9"}, ("bias",)),
        ({"shape": "3,1,1"}, ("bias",)),
        ({"late": True}, ("bias",)),
        ({"dtype": "f16"}, ("bias",)),
    ],
    ids=str,
)
def test_a_tensor_of_the_same_shape_is_added_by_the_kernel(
    how: dict[str, Any], fused: tuple[str, ...], tmp_path: Path
) -> None:
    model = deconv_ir.load(residual(**how).save(tmp_path), warn=False)
    rng = np.random.default_rng(5)
    given = [
        rng.standard_normal(tuple(map(int, p.shape))).astype(p.element_type.numpy())
        for p in model.inputs.values()
    ]
    row = rows_of(model, given)["conv"]
    assert row.fused == fused
    assert len(row.inputs) == 2 + ("add" in fused)
    inner = model.run(given, outputs=["bias", "abs", "y"])
    assert rows_of(model, given, outputs=["bias", "abs", "y"])["conv"].fused == ("bias",)
    np.testing.assert_array_equal(inner["y"], np.maximum(inner["bias"] + inner["abs"], 0))
    np.testing.assert_array_equal(model.run(given)["y"], inner["y"])


def test_a_tensor_that_is_broadcast_in_later_runs(tmp_path: Path) -> None:
    model = deconv_ir.load(residual(batch="?", shape="?,3,8,9").save(tmp_path))
    rng = np.random.default_rng(6)
    for first, second in ((2, 2), (1, 1), (1, 3), (3, 1), (3, 3)):
        given = [rng.standard_normal((n, 3, 8, 9), np.float32) for n in (first, second)]
        inner = model.run(given, outputs=["bias", "abs"])
        expected = np.maximum(inner["bias"] + inner["abs"], 0)
        np.testing.assert_allclose(model.run(given)["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [64, 65])
@pytest.mark.parametrize("function", [*FUNCTIONS, "ReLU", "Clamp"])
def test_a_product_takes_a_bias_and_a_function(function: str, columns: int, tmp_path: Path) -> None:
    given = {"ReLU": ({}, "opset1"), "Clamp": ({"min": "-0.5", "max": "1"}, "opset1")}
    attributes, version = (FUNCTIONS | given)[function]
    ir = IR()
    x = ir.parameter("x", "3,17,40")
    y = ir.layer("MatMul", [x, ir.const(normal(40, columns))], name="product")
    y = ir.layer("Add", [y, ir.const(normal(1, 1, columns))], name="add")
    y = ir.layer(function, [y], attributes, name="act", version=version)
    ir.result(y)
    model = deconv_ir.load(ir.save(tmp_path))
    data = normal(3, 17, 40)
    data[0, 0, 0], data[0, 1, 1], data[1, 2] = np.nan, np.inf, -0.0
    compiled = compiled_module() is not None
    together, apart = ["act"], ["add", "act"]
    taken = ("add", "act") if compiled else ()
    assert rows_of(model, [data], outputs=together)["product"].fused == taken
    assert rows_of(model, [data], outputs=apart)["product"].fused == taken[:1]
    found = model.run([data], outputs=together)["act"]
    np.testing.assert_array_equal(found, model.run([data], outputs=apart)["act"], strict=True)


@pytest.mark.parametrize(
    ("layers", "numbers"),
    [((1, 2, 3), {"scale": (8, 0)}), ((2, 3, 4), {"scale": (8, 0), "offset": (9, 0)})],
)
def test_what_a_kernel_cannot_scale_keeps_its_activation(
    layers: tuple[int, ...], numbers: dict[str, tuple[int, int]]
) -> None:
    """Layer 2 is the activation; the layers of the numbers follow it."""
    found = Followers(layers, (7, 0), None, 2, (), **numbers).shortened()
    assert found == Followers(layers[: layers.index(2) + 1], (7, 0), None, 2, ())
