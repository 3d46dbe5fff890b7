"""Products of matrices write and read codes, plain ones, between quantised layers.

The oracle evaluates MatMul-1 and FakeQuantize-1 ("Detailed description") in float64, and rounds
each sum to f32 once.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import RNG, Network, fake_quantize

import deconv_ir
from deconv_ir.kernels.runtime.extension import compiled_module

RANGE, POSITIVE = (-1.28, 1.27), (0.0, 2.55)
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "": lambda a: a,
    "ReLU": lambda a: np.maximum(a, 0),
    "Clamp": lambda a: np.clip(a, np.float32(-0.5), np.float32(1.5)),
    "Sigmoid": lambda a: (1 / (1 + np.exp(-a.astype(float)))).astype(np.float32),
}


def multiply(net: Network, a: Any, b: Any, ta: bool = False, tb: bool = False, **names: str) -> Any:
    """Add a MatMul."""
    turns = {"transpose_a": str(ta).lower(), "transpose_b": str(tb).lower()}
    return net.ir.layer("MatMul", [a, b], turns, **names)


def activate(net: Network, source: Any, kind: str) -> Any:
    """Add an activation."""
    attributes = {"min": "-0.5", "max": "1.5"} if kind == "Clamp" else {}
    return net.ir.layer(kind, [source], attributes) if kind else source


def levels_of(values: Any, ends: tuple[float, float], levels: int = 256) -> Any:
    """Return the results of a FakeQuantize of numbers in f32, in float64."""
    return fake_quantize(values.astype(np.float32).astype(float), *ends, levels)


def nearly(result: Any, expected: Any) -> None:
    """Require results that are rounded once; a tie of a level may change a row a little."""
    rounded = expected.astype(np.float32)
    assert result.shape == rounded.shape
    assert (result == rounded).mean() > 0.9
    assert np.abs(result - rounded).max() <= 0.02 * np.abs(rounded).max()


def stored(model: Any, x: Any, name: str, port: int = 0) -> str:
    """Return the type in which a layer reads its data."""
    return str(rows_of(model, {"x": x})[name].inputs[port].element_type)


def chain(seed: int, tmp_path: Any) -> tuple[Any, Any, Any, Callable[[Any], Any], list[str]]:
    """Draw products between FakeQuantize; return a model, data, other data, and the definition."""
    draw = random.Random(seed)
    batch = draw.choice([(), (2,), (3, 2)])
    rows, inner = draw.choice([1, 5, 37, 250]), draw.choice([16, 33, 130])
    ks = [inner, *(draw.choice([3, 16, 47, 70, 200, 1100]) for _ in range(3))]
    ta = draw.random() < 0.3
    shape = (*batch, inner, rows) if ta else (*batch, rows, inner)
    dynamic = draw.random() < 0.5
    net = Network(",".join("?" for _ in shape) if dynamic else ",".join(map(str, shape)))
    ends = [draw.choice([RANGE, POSITIVE, (-0.7, 1.9), (-2.0, 0.5)]) for _ in ks]
    numbers = [draw.choice([256, 256, 255]) for _ in ks]
    steps: list[Callable[[Any], Any]] = []
    names = []
    now = net.x
    for i, (k, n) in enumerate(itertools.pairwise(ks)):
        tb, biased = draw.random() < 0.5, draw.random() < 0.7
        kind = draw.choice(list(ACTIVATIONS)) if i < 2 else "ReLU"
        weights, values = net.weights(
            *((n, k) if tb else (k, n)), axis=0 if tb else 1, zero_point=draw.choice([0, 0, 25])
        )
        now = net.quantize(now, *ends[i], numbers[i], name=f"q{i}", names=f"q{i}")
        names.append(f"y{i}")
        turned = ta and i == 0
        now = multiply(net, now, weights, turned, tb, name=names[-1])
        bias = RNG.standard_normal(n).astype(np.float32) if biased else np.zeros(n, np.float32)
        if biased:
            now = net.ir.layer("Add", [now, net.ir.const(bias)])
        now = activate(net, now, kind)

        def step(
            x: Any, ends: Any = ends[i], number: int = numbers[i], turned: bool = turned,
            w: Any = values.T if tb else values, bias: Any = bias, kind: str = kind,
        ) -> Any:  # fmt: skip
            data = levels_of(x, ends, number)
            product = (data.swapaxes(-1, -2) if turned else data) @ w + bias
            return ACTIVATIONS[kind](product.astype(np.float32))

        steps.append(step)
    net.ir.result(now)

    def define(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    x = RNG.standard_normal(shape, dtype=np.float32)
    other = np.concatenate([x, -x, x / 2], axis=-1 if ta else -2) if dynamic else -x
    return deconv_ir.load(net.ir.save(tmp_path)), x, other, define, names


@pytest.mark.parametrize("seed", range(24))
def test_chains_of_products_equal_the_definition(tmp_path: Any, seed: int) -> None:
    """Sizes are drawn: no multiples of four or of vectors, few rows, several blocks of terms."""
    model, x, other, define, names = chain(seed, tmp_path)
    for data in (x, other, x):
        (found,) = model.run([data]).values()
        nearly(found, define(data))
    if compiled_module():
        for name in names[1:]:
            assert stored(model, x, name) == "i8"
        rows = rows_of(model, {"x": x})
        assert not any(name.startswith("q") for name in rows)


def test_results_have_the_bits_of_numbers(tmp_path: Any) -> None:
    """A request for the levels keeps them numbers."""
    for seed in range(100, 108):
        folder = tmp_path / str(seed)
        folder.mkdir()
        model, x, _, _, _ = chain(seed, folder)
        (output,) = model.run([x])
        assert np.array_equal(
            model.run([x])[output], model.run([x], outputs=[output, "q1", "q2"])[output]
        )


def no_zero(shape: list[int]) -> tuple[str, list[Any], dict[str, str]]:
    return "Reshape", [np.array(shape)], {"special_zero": "false"}


MOVES: dict[str, tuple[tuple[str, list[Any], dict[str, str]], Callable[[Any], Any]]] = {
    "rows": (no_zero([3, 2, 5, 30]), lambda a: a.reshape(3, 2, 5, 30)),
    "terms": (no_zero([6, 3, 50]), lambda a: a.reshape(6, 3, 50)),
    "one more": (("Unsqueeze", [np.array([1])], {}), lambda a: a[:, None]),
    "leading axes": (("Transpose", [np.array([1, 0, 2])], {}), lambda a: a.transpose(1, 0, 2)),
    "last axes": (("Transpose", [np.array([0, 2, 1])], {}), lambda a: a.transpose(0, 2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("move", MOVES)
def test_plain_codes_are_moved(tmp_path: Any, move: str) -> None:
    (kind, lists, attributes), define = MOVES[move]
    net = Network("6,5,21")
    w, values = net.weights(21, 30, axis=1)
    inner = net.quantize(multiply(net, net.quantize(net.x, *RANGE), w), *RANGE)
    moved = net.ir.layer(kind, [inner, *map(net.ir.const, lists)], attributes, name="moved")
    example = define(np.zeros((6, 5, 30)))
    second, others = net.weights(17, example.shape[-1], axis=0)
    net.ir.result(multiply(net, moved, second, tb=True, name="y"))
    model = deconv_ir.load(net.ir.save(tmp_path))
    for _ in range(2):
        x = RNG.standard_normal((6, 5, 21), dtype=np.float32)
        (found,) = model.run([x]).values()
        nearly(found, define(levels_of(levels_of(x, RANGE) @ values, RANGE)) @ others.T)
    if compiled_module():
        assert stored(model, x, "y") == "i8"


def test_parts_and_joined_tensors_are_codes(tmp_path: Any) -> None:
    """Split along the terms, and Concat of parts in another order."""
    net = Network("6,5,21")
    w, values = net.weights(21, 30, axis=1)
    inner = net.quantize(multiply(net, net.quantize(net.x, *RANGE), w), *POSITIVE)
    index, first = net.ir.layer(
        "Split", [inner, net.ir.const(np.int64(2))], {"num_splits": "3"}, outputs=[""] * 3
    )
    parts = [(index, first + i) for i in (2, 0, 1)]
    whole = net.ir.layer("Concat", parts, {"axis": "2"})
    second, others = net.weights(30, 17, axis=1)
    third, more = net.weights(10, 9, axis=1)
    net.ir.result(multiply(net, whole, second, name="y"))
    net.ir.result(multiply(net, parts[0], third, name="z"))
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = RNG.standard_normal((6, 5, 21), dtype=np.float32)
    found, part = model.run([x]).values()
    levels = levels_of(levels_of(x, RANGE) @ values, POSITIVE)
    nearly(found, levels[..., [*range(20, 30), *range(20)]] @ others)
    nearly(part, levels[..., 20:] @ more)
    if compiled_module():
        assert [stored(model, x, name) for name in ("y", "z")] == ["i8", "i8"]


@pytest.mark.parametrize("reader", ["Add", "Result", "Softmax", "Interpolate", "Pad"])
def test_other_readers_get_numbers(tmp_path: Any, reader: str) -> None:
    """As a residual connection does."""
    net = Network("2,3,6,21")
    w, values = net.weights(21, 30, axis=1)
    inner = net.quantize(multiply(net, net.quantize(net.x, *RANGE), w), *RANGE, name="q")
    second, others = net.weights(30, 30, axis=1)
    net.ir.result(multiply(net, inner, second, name="y"))
    if reader == "Add":
        net.ir.result(net.ir.layer("Add", [inner, net.ir.layer("Tanh", [inner])]))
    elif reader == "Result":
        net.ir.result(inner)
    elif reader == "Pad":
        ends = [net.ir.const(np.array(row)) for row in ([0, 0, 1, 0], [0, 0, 0, 2])]
        padded = net.ir.layer("Pad", [inner, *ends], {"pad_mode": "constant"})
        net.ir.result(multiply(net, padded, net.weights(32, 8, axis=1)[0]))
    elif reader == "Interpolate":
        sizes = [net.ir.const(np.array(row)) for row in ([12, 30], [2.0, 1.0], [2, 3])]
        sizes[1] = net.ir.const(np.array([2.0, 1.0], np.float32))
        wide = net.ir.layer(
            "Interpolate", [inner, *sizes],
            {"mode": "nearest", "shape_calculation_mode": "sizes",
             "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            version="opset4",
        )  # fmt: skip
        net.ir.result(multiply(net, wide, net.weights(30, 8, axis=1)[0]))
    else:
        net.ir.result(net.ir.layer("SoftMax", [inner], {"axis": "1"}))
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = RNG.standard_normal((2, 3, 6, 21), dtype=np.float32)
    found, other = model.run([x]).values()
    levels = levels_of(levels_of(x, RANGE) @ values, RANGE)
    nearly(found, levels @ others)
    exact = list(deconv_ir.load(tmp_path / "model.xml", accuracy="float64").run([x]).values())[1]
    assert np.abs(other - exact).max() <= 0.02 * np.abs(exact).max()
    assert stored(model, x, "y") == "f32"


@pytest.mark.skipif(compiled_module() is None, reason="codes are for compiled kernels")
def test_joined_layers_say_why_a_tensor_is_numbers(tmp_path: Any) -> None:
    """A FakeQuantize that is computed with the addition that reads it."""
    net = Network("2,6,21")
    first = multiply(net, net.quantize(net.x, *RANGE), net.weights(21, 30, axis=1)[0])
    inner = net.quantize(first, *RANGE)
    product = multiply(net, inner, net.weights(30, 30, axis=1)[0])
    net.ir.result(net.ir.layer("Add", [product, inner], name="sum"))
    model = deconv_ir.load(net.ir.save(tmp_path))
    row = rows_of(model, {"x": np.zeros((2, 6, 21), np.float32)})["sum"]
    assert row.type == "FakeQuantize+Add"
    assert row.reason == "layer 'sum' (Add) does not read codes"


def test_several_products_read_codes_of_one_quantiser(tmp_path: Any) -> None:
    """Queries, keys and values of one tensor; a product alone packs its data."""
    net = Network("?,40")
    data = net.quantize(net.ir.layer("Tanh", [net.x]), -0.9, 1.0, name="q")
    drawn = {name: net.weights(40, 24, axis=1) for name in ("a", "b", "c")}
    for name, (w, _) in drawn.items():
        net.ir.result(multiply(net, data, w, name=name))
    alone = net.quantize(net.x, *RANGE, name="alone")
    w, values = net.weights(40, 11, axis=1)
    net.ir.result(multiply(net, alone, w, name="d"))
    model = deconv_ir.load(net.ir.save(tmp_path))
    for rows in (3, 9000, 1):
        x = RNG.standard_normal((rows, 40), dtype=np.float32)
        *found, last = model.run([x]).values()
        levels = levels_of(np.tanh(x), (-0.9, 1.0))
        for (_, own), result in zip(drawn.values(), found, strict=True):
            nearly(result, levels @ own)
        nearly(last, levels_of(x, RANGE) @ values)
    if compiled_module():
        rows_found = rows_of(model, {"x": x})
        assert [stored(model, x, name) for name in "abcd"] == ["i8", "i8", "i8", "f32"]
        assert rows_found["q"].precision == "u8"
        assert "alone" not in rows_found


def test_convolutions_and_products_of_one_tensor_read_numbers(tmp_path: Any) -> None:
    """Their codes have other layouts."""
    net = Network("2,8,6,12")
    w, values = net.weights(8, 8, 1, 1)
    inner = net.quantize(net.convolution(net.quantize(net.x, *RANGE), w, pad=0), *RANGE)
    net.ir.result(net.convolution(inner, w, pad=0))
    second, others = net.weights(12, 16, axis=1)
    net.ir.result(multiply(net, inner, second, name="y"))
    model = deconv_ir.load(net.ir.save(tmp_path))
    x = RNG.standard_normal((2, 8, 6, 12), dtype=np.float32)
    first, found = model.run([x]).values()
    levels = levels_of(np.einsum("ncyx,oc->noyx", levels_of(x, RANGE), values[..., 0, 0]), RANGE)
    nearly(found, levels @ others)
    nearly(first, np.einsum("ncyx,oc->noyx", levels, values[..., 0, 0]))
    assert stored(model, x, "y") == "f32"


def test_code_tensors_are_bytes_of_the_plan(tmp_path: Any) -> None:
    """A tensor of codes takes a quarter of the same numbers."""
    net = Network("512,64")
    now, last = net.x, 64
    for columns in (4096, 64):
        w, _ = net.weights(last, columns, axis=1)
        now, last = multiply(net, net.quantize(now, *RANGE), w), columns
    net.ir.result(now)
    x = np.zeros((512, 64), np.float32)
    path = net.ir.save(tmp_path)
    plans = [deconv_ir.load(path, accuracy=a).bind([x]).plan for a in ("fast", "direct")]
    if compiled_module():
        assert plans[0].tensor_bytes < plans[1].tensor_bytes // 3


def test_not_a_number_is_the_lowest_code(tmp_path: Any) -> None:
    net = Network("9,16")
    w = np.full((16, 20), 1, np.int8)
    wide = net.ir.layer("Convert", [net.ir.const(w)], {"destination_type": "f32"})
    weights = net.ir.layer("Multiply", [wide, net.ir.const(np.float32(1))])
    bias = net.ir.const(np.array([np.nan, np.inf, -np.inf, 0] * 5, np.float32))
    sums = net.ir.layer("Add", [multiply(net, net.quantize(net.x, *RANGE), weights), bias])
    second, values = net.weights(20, 16, axis=1)
    net.ir.result(multiply(net, net.quantize(sums, *RANGE), second))
    x = np.zeros((9, 16), np.float32)
    (found,) = net.run(tmp_path, x)
    levels = fake_quantize(np.array([-5.0, 5.0, -5.0, 0.0] * 5), *RANGE)
    assert np.abs(found - levels @ values).max() < 1e-5
